//! What codes mean and which code a number gets, in `f64` and by trying every code.

use super::{Encode, Format, Narrow, Rounding};

/// The number of a code.
pub(super) fn value(narrow: Narrow, code: u8) -> f64 {
    let code = u32::from(code) & ((1 << narrow.bits()) - 1);
    match narrow.format() {
        Format::Scale if code == 255 => f64::NAN,
        Format::Scale => 2f64.powi(code as i32 - 127),
        Format::Integer { bits, signed } if signed && code >> (bits - 1) == 1 => {
            f64::from(code) - f64::from(1u32 << bits)
        }
        Format::Integer { .. } => f64::from(code),
        Format::Float(float) => {
            let is_negative = code >> (float.exponent_bits + float.mantissa_bits) == 1;
            let magnitude = code & ((1 << (float.exponent_bits + float.mantissa_bits)) - 1);
            let (exponent, mantissa) = (magnitude >> float.mantissa_bits, magnitude & ((1 << float.mantissa_bits) - 1));
            let part = f64::from(mantissa) / f64::from(1u32 << float.mantissa_bits);
            let value = match exponent {
                _ if float.one_zero && is_negative && magnitude == 0 => f64::NAN,
                _ if float.infinity == Some(magnitude) => f64::INFINITY,
                _ if magnitude > float.largest => f64::NAN,
                0 => part * 2f64.powi(1 - float.bias),
                _ => (1.0 + part) * 2f64.powi(exponent as i32 - float.bias),
            };
            if is_negative { -value } else { value }
        }
    }
}

/// The sizes of the codes from 0 up to the largest, and what would follow on it.
pub(super) fn sizes(narrow: Narrow) -> Vec<f64> {
    let largest = match narrow.format() {
        Format::Integer { .. } => return Vec::new(),
        Format::Scale => 254u8,
        Format::Float(float) => float.largest as u8,
    };
    let [last, before] = [largest, largest - 1].map(|code| value(narrow, code));
    let next = if matches!(narrow.format(), Format::Scale) { 2.0 * last } else { 2.0 * last - before };
    (0..=largest).map(|code| value(narrow, code)).chain([next]).collect()
}

/// The place of the neighbour that a size becomes.
fn rounded(sizes: &[f64], size: f64, rounding: Rounding, is_scale: bool) -> u32 {
    let last = sizes.len() - 1;
    if size >= sizes[last] {
        return last as u32;
    }
    let below = sizes.partition_point(|of| *of <= size).max(1) - 1;
    let (low, high) = (sizes[below], sizes[below + 1]);
    let up = match rounding {
        Rounding::Up => size > low,
        Rounding::Down | Rounding::TowardZero => false,
        // Halfway lies the even one, or of powers of two the larger.
        Rounding::Nearest if size - low == high - size => is_scale || below % 2 == 1,
        Rounding::Nearest => size - low > high - size,
    };
    below as u32 + u32::from(up)
}

/// The code of a number, by the type's [`sizes`].
pub(super) fn code(op: &Encode, sizes: &[f64], value: f64) -> u8 {
    let Encode { narrow, rounding, .. } = *op;
    let saturates = op.saturates();
    let code = match narrow.format() {
        Format::Integer { bits, signed } => {
            let whole = if rounding == Rounding::Nearest { value.round_ties_even() } else { value.trunc() };
            // Floats are cast to 32 bits.
            let whole = if op.from.is_float() { i128::from(whole as i32) } else { whole as i128 };
            let least = if signed { -(1 << (bits - 1)) } else { 0 };
            let whole = if saturates { whole.clamp(least, least + (1 << bits) - 1) } else { whole };
            whole as u32 & ((1 << bits) - 1)
        }
        Format::Scale if !value.is_finite() => 255,
        Format::Scale => match rounded(sizes, value.abs().max(sizes[0]), rounding, true) {
            255 if saturates => 254,
            code => code,
        },
        Format::Float(float) => {
            let sign = u32::from(value.is_sign_negative()) << (float.exponent_bits + float.mantissa_bits);
            let beyond = if saturates { float.largest } else { float.infinity.unwrap_or(float.nan) };
            let magnitude = match value.abs() {
                size if size.is_nan() => float.nan,
                size => {
                    Some(rounded(sizes, size, rounding, false)).filter(|code| *code <= float.largest).unwrap_or(beyond)
                }
            };
            if float.one_zero && magnitude == 0 { 0 } else { magnitude | sign }
        }
    };
    code as u8
}
