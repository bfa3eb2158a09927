//! The bodies of codes in IR, on the bits of `f32`.

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{BinaryOperator as O, Expression, Handle, Literal, Local, MathFunction, Scalar};

use super::{Decode, Encode, Float, Format, Rounding};
use crate::op::Map;

type Value = Handle<Expression>;

/// A builder of words.
struct Words<'b, 'm>(&'b mut FunctionBuilder<'m>);

impl Words<'_, '_> {
    /// A value that is wanted more than once.
    fn bind(&mut self, value: Value) -> Handle<Local> {
        self.0.bind("w", value)
    }

    fn word(&mut self, of: Handle<Local>) -> Value {
        self.0.local(of)
    }

    /// An operation with a number.
    fn with(&mut self, operator: O, of: Value, number: u32) -> Value {
        let number = self.0.u32(number);
        self.0.binary(operator, of, number)
    }

    fn select(&mut self, condition: Value, accept: Value, number: u32) -> Value {
        let number = self.0.u32(number);
        self.0.select(condition, accept, number)
    }
}

impl Map for Encode {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        let x = builder.local(elements[0]);
        let mut words = Words(&mut *builder);
        let code = match self.narrow.format() {
            Format::Integer { bits, signed } => self.integer(&mut words, x, bits, signed),
            Format::Scale => {
                let bits = words.0.bitcast(x, Scalar::U32);
                self.scale(&mut words, bits)
            }
            Format::Float(float) => {
                let bits = words.0.bitcast(x, Scalar::U32);
                self.float(&mut words, bits, float)
            }
        };
        builder.convert(code, Scalar::U8)
    }
}

impl Encode {
    /// The code of a float's bits.
    fn float(&self, words: &mut Words<'_, '_>, bits: Value, float: Float) -> Value {
        let Float { exponent_bits, mantissa_bits, bias, largest, infinity, nan, one_zero } = float;
        let cut = 23 - mantissa_bits;
        let bits = words.bind(bits);
        let whole = words.word(bits);
        let magnitude = words.with(O::And, whole, 0x7fff_ffff);
        let magnitude = words.bind(magnitude);

        // A normal number: the digits that are cut off are rounded to even, which may carry into the exponent, and the bias is exchanged.
        let of = words.word(magnitude);
        let last = words.with(O::ShiftRight, of, cut);
        let last = words.with(O::And, last, 1);
        let of = words.word(magnitude);
        let sum = words.0.binary(O::Add, of, last);
        let sum = words.with(O::Add, sum, (1 << (cut - 1)) - 1);
        let sum = words.with(O::ShiftRight, sum, cut);
        let normal = words.with(O::Subtract, sum, ((127 - bias) as u32) << mantissa_bits);

        // A smaller one: its digits in units of the least number, of which any 25 are none at all.
        let of = words.word(magnitude);
        let digits = words.with(O::And, of, 0x7f_ffff);
        let digits = words.with(O::Or, digits, 0x80_0000);
        let digits = words.bind(digits);
        let of = words.word(magnitude);
        let exponent = words.with(O::ShiftRight, of, 23);
        let least = words.0.u32((128 - bias) as u32 + cut);
        let far = words.0.binary(O::Subtract, least, exponent);
        let most = words.0.u32(25);
        let far = words.0.math(MathFunction::Min, vec![far, most]);
        let far = words.bind(far);
        let (of, by) = (words.word(digits), words.word(far));
        let last = words.0.binary(O::ShiftRight, of, by);
        let last = words.with(O::And, last, 1);
        let by = words.word(far);
        let before = words.with(O::Subtract, by, 1);
        let one = words.0.u32(1);
        let half = words.0.binary(O::ShiftLeft, one, before);
        let half = words.with(O::Subtract, half, 1);
        let of = words.word(digits);
        let sum = words.0.binary(O::Add, of, half);
        let sum = words.0.binary(O::Add, sum, last);
        let by = words.word(far);
        let small = words.0.binary(O::ShiftRight, sum, by);

        let of = words.word(magnitude);
        let is_small = words.with(O::Less, of, ((128 - bias) as u32) << 23);
        let code = words.0.select(is_small, small, normal);
        let code = words.bind(code);
        let of = words.word(code);
        let is_within = words.with(O::LessEqual, of, largest);
        let beyond = if self.saturates() { largest } else { infinity.unwrap_or(nan) };
        let of = words.word(code);
        let code = words.select(is_within, of, beyond);
        let of = words.word(magnitude);
        let is_number = words.with(O::LessEqual, of, 0x7f80_0000);
        let code = words.select(is_number, code, nan);

        let whole = words.word(bits);
        let sign = words.with(O::ShiftRight, whole, 31);
        let sign = words.with(O::ShiftLeft, sign, exponent_bits + mantissa_bits);
        if !one_zero {
            return words.0.binary(O::Or, code, sign);
        }
        let code = words.bind(code);
        let of = words.word(code);
        let signed = words.0.binary(O::Or, of, sign);
        let of = words.word(code);
        let is_zero = words.with(O::Equal, of, 0);
        let zero = words.0.u32(0);
        words.0.select(is_zero, zero, signed)
    }

    /// The power of two of a float's bits.
    fn scale(&self, words: &mut Words<'_, '_>, bits: Value) -> Value {
        let magnitude = words.with(O::And, bits, 0x7fff_ffff);
        let magnitude = words.bind(magnitude);
        // What must be added so that a number carries into the next power; of the smallest, whose powers are half as far apart, it is another.
        let (carry, small) = match self.rounding {
            Rounding::Up => (0x7f_ffff, 0x40_0001),
            Rounding::Nearest => (0x40_0000, 0x60_0000),
            Rounding::Down | Rounding::TowardZero => (0, 0x80_0000),
        };
        let of = words.word(magnitude);
        let normal = words.with(O::Add, of, carry);
        let normal = words.with(O::ShiftRight, normal, 23);
        let of = words.word(magnitude);
        let is_second = words.with(O::GreaterEqual, of, small);
        let second = words.0.convert(is_second, Scalar::U32);
        let of = words.word(magnitude);
        let is_normal = words.with(O::GreaterEqual, of, 0x80_0000);
        let code = words.0.select(is_normal, normal, second);
        let most = words.0.u32(if self.saturates() { 254 } else { 255 });
        let code = words.0.math(MathFunction::Min, vec![code, most]);
        let of = words.word(magnitude);
        let is_finite = words.with(O::Less, of, 0x7f80_0000);
        words.select(is_finite, code, 255)
    }

    /// The bits of an integer, or of what a float is cast to.
    fn integer(&self, words: &mut Words<'_, '_>, x: Value, bits: u32, signed: bool) -> Value {
        let least = if signed { -(1i64 << (bits - 1)) } else { 0 };
        let most = least + (1 << bits) - 1;
        let x = match self.rounding {
            Rounding::Nearest if self.from.is_float() => words.0.math(MathFunction::RoundTiesEven, vec![x]),
            _ => x,
        };
        let is_unsigned = self.from.is_integer() && !self.from.scalar().is_signed();
        let wide = if is_unsigned { Scalar::U32 } else { Scalar::I32 };
        let same = words.0.type_of(x).scalar() == Some(wide);
        let mut whole = if same { x } else { words.0.convert(x, wide) };
        if self.saturates() {
            let mut bound = |function, bound: i64, words: &mut Words<'_, '_>| {
                let literal = if is_unsigned { Literal::U32(bound.max(0) as u32) } else { Literal::I32(bound as i32) };
                let bound = words.0.literal(literal);
                whole = words.0.math(function, vec![whole, bound]);
            };
            bound(MathFunction::Max, least, words);
            bound(MathFunction::Min, most, words);
        }
        let whole = if is_unsigned { whole } else { words.0.convert(whole, Scalar::U32) };
        words.with(O::And, whole, (1 << bits) - 1)
    }
}

impl Map for Decode {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        let code = builder.local(elements[0]);
        let code = builder.convert(code, Scalar::U32);
        let mut words = Words(&mut *builder);
        let value = match self.narrow.format() {
            Format::Integer { bits, signed } => {
                // The code's sign is brought to the top and down again.
                let top = words.with(O::ShiftLeft, code, 32 - bits);
                let top = if signed { words.0.convert(top, Scalar::I32) } else { top };
                words.with(O::ShiftRight, top, 32 - bits)
            }
            Format::Scale => scale(&mut words, code),
            Format::Float(of) => float(&mut words, code, of),
        };
        let to = self.to.computed();
        if builder.type_of(value).scalar() == Some(to) { value } else { builder.convert(value, to) }
    }
}

/// The float of a narrow float's code.
fn float(words: &mut Words<'_, '_>, code: Value, of: Float) -> Value {
    let Float { exponent_bits, mantissa_bits, bias, largest, infinity, one_zero, .. } = of;
    let width = exponent_bits + mantissa_bits;
    let cut = 23 - mantissa_bits;
    let code = words.bind(code);
    let whole = words.word(code);
    let magnitude = words.with(O::And, whole, (1 << width) - 1);
    let magnitude = words.bind(magnitude);
    let size = words.word(magnitude);
    let normal = words.with(O::ShiftLeft, size, cut);
    let normal = words.with(O::Add, normal, ((127 - bias) as u32) << 23);
    // Multiples of the least number, which is normal in 32 bits.
    let size = words.word(magnitude);
    let small = words.0.convert(size, Scalar::F32);
    let least = words.0.f32(2f32.powi(1 - bias - mantissa_bits as i32));
    let small = words.0.binary(O::Multiply, small, least);
    let small = words.0.bitcast(small, Scalar::U32);
    let size = words.word(magnitude);
    let is_small = words.with(O::Less, size, 1 << mantissa_bits);
    let mut bits = words.0.select(is_small, small, normal);
    if largest < (1 << width) - 1 {
        let size = words.word(magnitude);
        let is_number = words.with(O::LessEqual, size, infinity.unwrap_or(largest));
        bits = words.select(is_number, bits, 0x7fc0_0000);
    }
    if let Some(infinity) = infinity {
        let size = words.word(magnitude);
        let is_other = words.with(O::NotEqual, size, infinity);
        bits = words.select(is_other, bits, 0x7f80_0000);
    }
    let whole = words.word(code);
    let sign = words.with(O::ShiftRight, whole, width);
    let sign = words.with(O::ShiftLeft, sign, 31);
    bits = words.0.binary(O::Or, bits, sign);
    if one_zero {
        let whole = words.word(code);
        let is_number = words.with(O::NotEqual, whole, 1 << width);
        bits = words.select(is_number, bits, 0x7fc0_0000);
    }
    words.0.bitcast(bits, Scalar::F32)
}

/// The power of two of a code.
fn scale(words: &mut Words<'_, '_>, code: Value) -> Value {
    let code = words.bind(code);
    let whole = words.word(code);
    let normal = words.with(O::ShiftLeft, whole, 23);
    let whole = words.word(code);
    let is_normal = words.with(O::Greater, whole, 0);
    let bits = words.select(is_normal, normal, 0x40_0000);
    let whole = words.word(code);
    let is_number = words.with(O::NotEqual, whole, 255);
    let bits = words.select(is_number, bits, 0x7fc0_0000);
    words.0.bitcast(bits, Scalar::F32)
}
