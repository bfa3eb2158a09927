//! Functions that kernels seldom use, one lane at a time: from the words of the arguments to those of the result.
//!
//! What is hot has an instruction of its own, of which the processor makes vectors; these are exact rather than fast.

use crate::ir::{MathFunction, Scalar};
use crate::meaning::{self, Word};

/// The most words of one argument or result.
pub(super) const MOST: usize = 4;
/// The most arguments.
pub(super) const ARGUMENTS: usize = 4;

/// The words of an argument.
pub(super) type Words = [u32; MOST];

/// Functions of one number; those that end in rounding compute in `f64`.
fn float(function: MathFunction) -> Option<fn(f32) -> f32> {
    use MathFunction as M;
    macro_rules! wide {
        ($name:ident) => {
            |x| f64::from(x).$name() as f32
        };
    }
    Some(match function {
        M::Round => f32::round,
        M::Fract => f32::fract,
        M::Asin => wide!(asin),
        M::Acos => wide!(acos),
        M::Sinh => wide!(sinh),
        M::Cosh => wide!(cosh),
        M::Asinh => wide!(asinh),
        M::Acosh => wide!(acosh),
        M::Atanh => wide!(atanh),
        M::ExpM1 => wide!(exp_m1),
        M::Ln1p => wide!(ln_1p),
        M::Log10 => wide!(log10),
        M::Cbrt => wide!(cbrt),
        _ => return None,
    })
}

/// Functions of two numbers.
fn floats(function: MathFunction) -> Option<fn(f32, f32) -> f32> {
    Some(match function {
        MathFunction::RemEuclid => f32::rem_euclid,
        MathFunction::Hypot => |x, y| f64::from(x).hypot(f64::from(y)) as f32,
        MathFunction::Step => meaning::step,
        _ => return None,
    })
}

/// Functions of integers, lane by lane.
fn integer<W: Word>(function: MathFunction, given: &[Words; ARGUMENTS]) -> Option<W> {
    let word = |at: usize| W::from_bits(given[at][0]);
    let (x, amount) = (given[0][0], given[1][0]);
    Some(match function {
        MathFunction::ReverseBits => W::from_bits(x.reverse_bits()),
        MathFunction::RotateLeft => W::from_bits(x.rotate_left(amount % 32)),
        MathFunction::RotateRight => W::from_bits(x.rotate_right(amount % 32)),
        MathFunction::ExtractBits => meaning::extract_bits(word(0), amount, given[2][0]),
        MathFunction::InsertBits => meaning::insert_bits(word(0), word(1), given[2][0], given[3][0]),
        MathFunction::MulHigh => word(0).mul_high(word(1)),
        _ => return None,
    })
}

/// Evaluates a function whose first argument is made of `lanes` words of a scalar.
pub(super) fn evaluate(function: MathFunction, scalar: Scalar, lanes: usize, given: &[Words; ARGUMENTS]) -> Words {
    use MathFunction as M;
    let numbers = |at: usize| given[at].map(f32::from_bits);
    let one = |word: u32| [word, 0, 0, 0];
    let number = |value: f32| one(value.to_bits());
    let (a, b, c) = (numbers(0), numbers(1), numbers(2));
    if scalar == Scalar::F32 {
        if let Some(float) = float(function) {
            return number(float(a[0]));
        }
        if let Some(floats) = floats(function) {
            return number(floats(a[0], b[0]));
        }
    } else if scalar == Scalar::I32 {
        if let Some(value) = integer::<i32>(function, given) {
            return one(value.bits());
        }
    } else if let Some(value) = integer::<u32>(function, given) {
        return one(value);
    }
    let dot = |x: &[f32; MOST], y: &[f32; MOST]| meaning::dot(&x[..lanes], &y[..lanes]);
    let each = |f: &dyn Fn(usize) -> f32| std::array::from_fn(|lane| if lane < lanes { f(lane).to_bits() } else { 0 });
    let two = |words: [u32; 2]| [words[0], words[1], 0, 0];
    let word = given[0][0];
    match function {
        M::RemEuclid if scalar == Scalar::I32 => {
            let (x, y) = (word.cast_signed(), given[1][0].cast_signed());
            one(if y == 0 { 0 } else { x.wrapping_rem_euclid(y).cast_unsigned() })
        }
        M::RemEuclid => one(word.checked_rem(given[1][0]).unwrap_or(0)),
        M::Mix => number(meaning::mix(a[0], b[0], c[0])),
        M::Smoothstep => number(meaning::smoothstep(a[0], b[0], c[0])),
        M::Length => number(dot(&a, &a).sqrt()),
        M::Distance => {
            let apart = std::array::from_fn(|lane| a[lane] - b[lane]);
            number(dot(&apart, &apart).sqrt())
        }
        M::Normalize => {
            let scale = 1.0 / dot(&a, &a).sqrt();
            each(&|lane| a[lane] * scale)
        }
        M::Reflect => {
            let twice = 2.0 * dot(&b, &a);
            each(&|lane| a[lane] - b[lane] * twice)
        }
        M::Cross => {
            let [x, y, z] = meaning::cross([a[0], a[1], a[2]], [b[0], b[1], b[2]]);
            [x, y, z, 0.0].map(f32::to_bits)
        }
        M::Dot4I8 => one(meaning::dot4_i8(word, given[1][0], given[2][0].cast_signed()).cast_unsigned()),
        M::Dot4U8 => one(meaning::dot4_u8(word, given[1][0], given[2][0])),
        M::Pack4x8Snorm => one(meaning::pack4x8snorm(a)),
        M::Pack4x8Unorm => one(meaning::pack4x8unorm(a)),
        M::Pack4xI8 => one(meaning::pack4xi8(given[0].map(u32::cast_signed))),
        M::Pack4xU8 => one(meaning::pack4xu8(given[0])),
        M::Pack2x16Float => one(meaning::pack2x16float([a[0], a[1]])),
        M::Pack2x16Snorm => one(meaning::pack2x16snorm([a[0], a[1]])),
        M::Pack2x16Unorm => one(meaning::pack2x16unorm([a[0], a[1]])),
        M::Unpack4x8Snorm => meaning::unpack4x8snorm(word).map(f32::to_bits),
        M::Unpack4x8Unorm => meaning::unpack4x8unorm(word).map(f32::to_bits),
        M::Unpack4xI8 => meaning::unpack4xi8(word).map(i32::cast_unsigned),
        M::Unpack4xU8 => meaning::unpack4xu8(word),
        M::Unpack2x16Float => two(meaning::unpack2x16float(word).map(f32::to_bits)),
        M::Unpack2x16Snorm => two(meaning::unpack2x16snorm(word).map(f32::to_bits)),
        M::Unpack2x16Unorm => two(meaning::unpack2x16unorm(word).map(f32::to_bits)),
        // The others have instructions.
        _ => one(0),
    }
}
