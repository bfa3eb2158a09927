//! Arithmetic of one lane, by the tables of the essay in [`crate::ir`].
//!
//! A scalar of any type is 64 bits here: signed integers are extended by their sign, everything else by zeros, and floats are their bits. So integers of
//! all widths are compared as what they are extended to, and an operation is done in 64 bits and cut to the type again ([`canonical`]).

use half::{bf16, f16};

use crate::ir::{BinaryOperator as B, Scalar, UnaryOperator};

/// The bits of a scalar as this module holds them.
pub(super) const fn canonical(scalar: Scalar, bits: u64) -> u64 {
    match scalar {
        Scalar::Bool => bits & 1,
        Scalar::I8 => bits as i8 as u64,
        Scalar::I16 => bits as i16 as u64,
        Scalar::I32 => bits as i32 as u64,
        Scalar::U8 => bits as u8 as u64,
        Scalar::U16 | Scalar::F16 | Scalar::BF16 => bits as u16 as u64,
        Scalar::U32 | Scalar::Index | Scalar::F32 => bits as u32 as u64,
        Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::Generic(_) => bits,
    }
}

/// The value of a float, exactly.
pub(super) fn float(scalar: Scalar, word: u64) -> f64 {
    match scalar {
        Scalar::F16 => f16::from_bits(word as u16).to_f64(),
        Scalar::BF16 => bf16::from_bits(word as u16).to_f64(),
        Scalar::F32 => f64::from(f32::from_bits(word as u32)),
        _ => f64::from_bits(word),
    }
}

/// The float of a type nearest to a value; halves are rounded from the `f32`, since they are computed in it.
pub(super) fn rounded(scalar: Scalar, value: f64) -> u64 {
    match scalar {
        Scalar::F16 => u64::from(f16::from_f32(value as f32).to_bits()),
        Scalar::BF16 => u64::from(bf16::from_f32(value as f32).to_bits()),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The value of an integer or `bool`.
pub(super) const fn integer(scalar: Scalar, word: u64) -> i128 {
    if scalar.is_signed() { word.cast_signed() as i128 } else { word as i128 }
}

/// As an author would write it.
pub(super) fn shown(scalar: Scalar, word: u64) -> String {
    match scalar {
        Scalar::Bool => (word != 0).to_string(),
        scalar if scalar.is_float() => format!("{:?}", float(scalar, word)),
        scalar => integer(scalar, word).to_string(),
    }
}

/// An operation on one value.
pub(super) fn unary(operator: UnaryOperator, scalar: Scalar, x: u64) -> u64 {
    match operator {
        UnaryOperator::Not => canonical(scalar, !x),
        UnaryOperator::Negate if scalar.is_float() => x ^ 1 << (scalar.bits() - 1),
        UnaryOperator::Negate => canonical(scalar, x.wrapping_neg()),
    }
}

/// An operation on two floats.
fn of_floats(operator: B, scalar: Scalar, x: u64, y: u64) -> u64 {
    let (a, b) = (float(scalar, x), float(scalar, y));
    if operator.is_comparison() {
        return u64::from(compare(operator, a.partial_cmp(&b)));
    }
    if scalar == Scalar::F64 {
        return arithmetic(operator, a, b).to_bits();
    }
    // An `f64` has more than twice the digits of an `f32` and two, so that rounding twice is rounding once.
    rounded(scalar, arithmetic(operator, a, b))
}

fn arithmetic(operator: B, a: f64, b: f64) -> f64 {
    match operator {
        B::Add => a + b,
        B::Subtract => a - b,
        B::Multiply => a * b,
        B::Divide => a / b,
        _ => a % b,
    }
}

fn compare(operator: B, order: Option<std::cmp::Ordering>) -> bool {
    let Some(order) = order else { return operator == B::NotEqual };
    match operator {
        B::Equal => order.is_eq(),
        B::NotEqual => order.is_ne(),
        B::Less => order.is_lt(),
        B::LessEqual => order.is_le(),
        B::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// An operation on two values.
pub(super) fn binary(operator: B, scalar: Scalar, x: u64, y: u64) -> u64 {
    if scalar.is_float() {
        return of_floats(operator, scalar, x, y);
    }
    if operator.is_comparison() {
        let order = if scalar.is_signed() { x.cast_signed().cmp(&y.cast_signed()) } else { x.cmp(&y) };
        return u64::from(compare(operator, Some(order)));
    }
    let amount = (y % u64::from(scalar.bits())) as u32;
    let value = match operator {
        B::Add => x.wrapping_add(y),
        B::Subtract => x.wrapping_sub(y),
        B::Multiply => x.wrapping_mul(y),
        B::Divide | B::Remainder if y == 0 => 0,
        B::Divide if scalar.is_signed() => x.cast_signed().wrapping_div(y.cast_signed()).cast_unsigned(),
        B::Remainder if scalar.is_signed() => x.cast_signed().wrapping_rem(y.cast_signed()).cast_unsigned(),
        B::Divide => x / y,
        B::Remainder => x % y,
        B::And => x & y,
        B::Or => x | y,
        B::Xor => x ^ y,
        B::ShiftLeft => x << amount,
        B::ShiftRight if scalar.is_signed() => (x.cast_signed() >> amount).cast_unsigned(),
        _ => x >> amount,
    };
    canonical(scalar, value)
}

/// Whether the exact result of an operation on integers does not fit into their type.
pub(super) fn overflows(operator: B, scalar: Scalar, x: u64, y: u64) -> bool {
    let (a, b) = (integer(scalar, x), integer(scalar, y));
    let exact = match operator {
        B::Add => a + b,
        B::Subtract => a - b,
        // Two numbers of 64 bits give one of 128.
        B::Multiply => match a.checked_mul(b) {
            Some(exact) => exact,
            None => return true,
        },
        B::Divide if b != 0 => a / b,
        _ => return false,
    };
    let [least, most] = scalar.limits();
    exact < least || exact > most
}

/// `x as to`
pub(super) fn convert(from: Scalar, to: Scalar, x: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        (true, true) if from == to => x,
        (true, true) => rounded(to, float(from, x)),
        (true, false) => {
            let [least, most] = to.limits();
            // A cast of a float saturates, and gives 0 for a NaN.
            let value = (float(from, x) as i128).clamp(least, most);
            canonical(to, value as u64)
        }
        (false, true) => match to {
            Scalar::F64 => (integer(from, x) as f64).to_bits(),
            _ => rounded(to, f64::from(integer(from, x) as f32)),
        },
        (false, false) if to == Scalar::Bool => u64::from(x != 0),
        (false, false) => canonical(to, x),
    }
}
