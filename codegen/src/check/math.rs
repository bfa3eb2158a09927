//! The mathematical library of one lane, by Rust's own functions of `f64`.

use super::scalar::{binary, canonical, float, integer, rounded};
use crate::ir::{BinaryOperator as B, MathFunction as M, Scalar};
use crate::meaning;

/// The error function by its series, which converges everywhere but adds up to what is large far out: there by what is missing to 1, as a continued fraction; beyond 6 it is 1 in `f64`.
fn erf(x: f64) -> f64 {
    let size = x.abs();
    if size > 6.0 {
        return 1f64.copysign(x);
    }
    if size > 2.0 {
        let fraction = (1..=120).rev().fold(0.0, |rest, n| f64::from(n) / 2.0 / (size + rest));
        let missing = (-size * size).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / (size + fraction);
        return (1.0 - missing).copysign(x);
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

/// The smaller or larger of two numbers; if one is NaN, the other.
fn extreme(scalar: Scalar, x: u64, y: u64, wanted: B) -> u64 {
    if scalar.is_float() {
        let (a, b) = (float(scalar, x), float(scalar, y));
        if a.is_nan() || b.is_nan() {
            return if a.is_nan() { y } else { x };
        }
    }
    if binary(wanted, scalar, x, y) != 0 { x } else { y }
}

/// A function of floats that gives one of the same type.
fn of_floats(function: M, x: f64, y: f64, z: f64) -> f64 {
    match function {
        M::Abs => x.abs(),
        M::Signum => x.signum(),
        M::Floor => x.floor(),
        M::Ceil => x.ceil(),
        M::RoundTiesEven => x.round_ties_even(),
        M::Trunc => x.trunc(),
        M::Sqrt => x.sqrt(),
        M::InverseSqrt => 1.0 / x.sqrt(),
        M::Exp => x.exp(),
        M::Exp2 => x.exp2(),
        M::Ln => x.ln(),
        M::Log2 => x.log2(),
        M::Powf => x.powf(y),
        M::Sin => x.sin(),
        M::Cos => x.cos(),
        M::Tan => x.tan(),
        M::Tanh => x.tanh(),
        M::Atan => x.atan(),
        M::Atan2 => x.atan2(y),
        M::Erf => erf(x),
        M::MulAdd => x.mul_add(y, z),
        M::Round => x.round(),
        M::Fract => x.fract(),
        M::Copysign => x.copysign(y),
        M::RemEuclid => x.rem_euclid(y),
        M::Asin => x.asin(),
        M::Acos => x.acos(),
        M::Sinh => x.sinh(),
        M::Cosh => x.cosh(),
        M::Asinh => meaning::asinh(x),
        M::Acosh => meaning::acosh(x),
        M::Atanh => meaning::atanh(x),
        M::ExpM1 => x.exp_m1(),
        M::Ln1p => x.ln_1p(),
        M::Log10 => x.log10(),
        M::Cbrt => x.cbrt(),
        M::Hypot => x.hypot(y),
        _ => x,
    }
}

/// A function that works lane by lane.
pub(super) fn lanewise(function: M, scalar: Scalar, operands: &[u64]) -> u64 {
    let of = |index: usize| operands.get(index).copied().unwrap_or(0);
    let (x, y, z) = (of(0), of(1), of(2));
    match function {
        M::Min => return extreme(scalar, x, y, B::Less),
        M::Max => return extreme(scalar, x, y, B::Greater),
        M::Clamp if scalar.is_float() && float(scalar, x).is_nan() => return x,
        M::Clamp => return extreme(scalar, extreme(scalar, x, y, B::Greater), z, B::Less),
        _ => {}
    }
    if !scalar.is_float() {
        return of_integers(function, scalar, [x, y, z, of(3)]);
    }
    match function {
        M::IsNan => u64::from(float(scalar, x).is_nan()),
        M::IsInfinite => u64::from(float(scalar, x).is_infinite()),
        // Rounded as the formula is in `f32`, operation by operation.
        M::Mix | M::Step | M::Smoothstep => {
            let [x, y, z] = [x, y, z].map(|word| float(scalar, word) as f32);
            let value = match function {
                M::Mix => meaning::mix(x, y, z),
                M::Step => meaning::step(x, y),
                _ => meaning::smoothstep(x, y, z),
            };
            rounded(scalar, f64::from(value))
        }
        M::NearestHalf => rounded(scalar, float(Scalar::F16, rounded(Scalar::F16, float(scalar, x)))),
        M::NearestBrain => rounded(scalar, float(Scalar::BF16, rounded(Scalar::BF16, float(scalar, x)))),
        M::PackHalf => rounded(Scalar::F16, float(scalar, x)),
        M::MulAdd if scalar == Scalar::F32 => {
            let [x, y, z] = [x, y, z].map(|word| f32::from_bits(word as u32));
            u64::from(x.mul_add(y, z).to_bits())
        }
        M::RemEuclid if scalar == Scalar::F32 => {
            let [x, y] = [x, y].map(|word| f32::from_bits(word as u32));
            u64::from(x.rem_euclid(y).to_bits())
        }
        _ => rounded(scalar, of_floats(function, float(scalar, x), float(scalar, y), float(scalar, z))),
    }
}

fn of_integers(function: M, scalar: Scalar, [x, y, z, w]: [u64; 4]) -> u64 {
    let signed = scalar.is_signed();
    let (word, amount) = (x as u32, y as u32);
    let bits = match function {
        M::Abs => return canonical(scalar, x.cast_signed().wrapping_abs().cast_unsigned()),
        M::Signum => return canonical(scalar, integer(scalar, x).signum() as u64),
        M::RemEuclid if y == 0 => return 0,
        M::RemEuclid => return canonical(scalar, integer(scalar, x).rem_euclid(integer(scalar, y)) as u64),
        M::CountOnes => return u64::from(word.count_ones()),
        M::LeadingZeros => return u64::from(word.leading_zeros()),
        M::TrailingZeros => return u64::from(word.trailing_zeros()),
        M::UnpackHalf => return rounded(Scalar::F32, float(Scalar::F16, x & 0xffff)),
        M::ReverseBits => word.reverse_bits(),
        M::RotateLeft => word.rotate_left(amount % 32),
        M::RotateRight => word.rotate_right(amount % 32),
        M::ExtractBits if signed => meaning::extract_bits(word.cast_signed(), amount, z as u32).cast_unsigned(),
        M::ExtractBits => meaning::extract_bits(word, amount, z as u32),
        M::InsertBits => meaning::insert_bits(word, amount, z as u32, w as u32),
        // Both are extended by their signs, so that 64 bits hold the product.
        M::MulHigh if signed => ((x.cast_signed() * y.cast_signed()) >> 32) as u32,
        M::MulHigh => ((x * y) >> 32) as u32,
        _ => word,
    };
    canonical(scalar, u64::from(bits))
}

/// A function of vectors or words as a whole, by the scalars of its arguments one after the other; the first has so many.
pub(super) fn whole(function: M, scalar: Scalar, lanes: usize, operands: &[u64]) -> Vec<u64> {
    let op = |operator, x, y| binary(operator, scalar, x, y);
    let (a, rest) = operands.split_at(lanes);
    let dot = |a: &[u64], b: &[u64]| {
        let products = a.iter().zip(b).map(|(a, b)| op(B::Multiply, *a, *b));
        products.reduce(|sum, product| op(B::Add, sum, product)).unwrap_or(0)
    };
    let sqrt = |x: u64| rounded(scalar, float(scalar, x).sqrt());
    match function {
        M::Dot => return vec![dot(a, rest)],
        M::Length => return vec![sqrt(dot(a, a))],
        M::Distance => {
            let apart: Vec<u64> = a.iter().zip(rest).map(|(a, b)| op(B::Subtract, *a, *b)).collect();
            return vec![sqrt(dot(&apart, &apart))];
        }
        M::Normalize => {
            let factor = rounded(scalar, 1.0 / float(scalar, dot(a, a)).sqrt());
            return a.iter().map(|a| op(B::Multiply, *a, factor)).collect();
        }
        M::Reflect => {
            let twice = op(B::Multiply, rounded(scalar, 2.0), dot(rest, a));
            let along = a.iter().zip(rest);
            return along.map(|(v, n)| op(B::Subtract, *v, op(B::Multiply, *n, twice))).collect();
        }
        _ => {}
    }
    let floats = |words: &[u64]| words.iter().map(|word| f32::from_bits(*word as u32)).collect::<Vec<_>>();
    let of_floats = |values: &[f32]| values.iter().map(|value| u64::from(value.to_bits())).collect::<Vec<_>>();
    let at = |index: usize| operands.get(index).copied().unwrap_or(0);
    let word = at(0) as u32;
    let four = || {
        let given = floats(operands);
        std::array::from_fn::<f32, 4, _>(|lane| given.get(lane).copied().unwrap_or(0.0))
    };
    let two = || {
        let [x, y, ..] = four();
        [x, y]
    };
    let one = |word: u32| vec![u64::from(word)];
    match function {
        M::Cross => {
            let three = |from: usize| std::array::from_fn(|lane| f32::from_bits(at(from + lane) as u32));
            of_floats(&meaning::cross(three(0), three(3)))
        }
        M::Dot4I8 => {
            let sum = meaning::dot4_i8(word, at(1) as u32, at(2) as i32);
            vec![canonical(Scalar::I32, u64::from(sum.cast_unsigned()))]
        }
        M::Dot4U8 => one(meaning::dot4_u8(word, at(1) as u32, at(2) as u32)),
        M::Pack4x8Snorm => one(meaning::pack4x8snorm(four())),
        M::Pack4x8Unorm => one(meaning::pack4x8unorm(four())),
        M::Pack4xI8 => one(meaning::pack4xi8(std::array::from_fn(|lane| at(lane) as i32))),
        M::Pack4xU8 => one(meaning::pack4xu8(std::array::from_fn(|lane| at(lane) as u32))),
        M::Pack2x16Float => one(meaning::pack2x16float(two())),
        M::Pack2x16Snorm => one(meaning::pack2x16snorm(two())),
        M::Pack2x16Unorm => one(meaning::pack2x16unorm(two())),
        M::Unpack4x8Snorm => of_floats(&meaning::unpack4x8snorm(word)),
        M::Unpack4x8Unorm => of_floats(&meaning::unpack4x8unorm(word)),
        M::Unpack4xI8 => meaning::unpack4xi8(word).map(|byte| i64::from(byte).cast_unsigned()).to_vec(),
        M::Unpack4xU8 => meaning::unpack4xu8(word).map(u64::from).to_vec(),
        M::Unpack2x16Float => of_floats(&meaning::unpack2x16float(word)),
        M::Unpack2x16Snorm => of_floats(&meaning::unpack2x16snorm(word)),
        M::Unpack2x16Unorm => of_floats(&meaning::unpack2x16unorm(word)),
        _ => operands.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_within_its_last_places() {
        for (x, wanted) in [
            (-1.0, -0.842_700_792_949_714_9),
            (1.9, 0.992_790_429_235_257_5),
            (2.1, 0.997_020_533_343_667),
            (5.079_364_137_727_214_5, 0.999_999_999_999_319_5),
        ] {
            assert!((erf(x) - wanted).abs() <= 4.0 * f64::EPSILON / 2.0, "erf({x}) is {:?}", erf(x));
        }
    }
}
