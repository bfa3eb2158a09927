//! Mathematical functions of one lane, without branches, so that loops over lanes become vectors.
//!
//! The harder ones compute in `f64`, where short polynomials leave an error far below that of the final rounding to `f32`: results
//! are within one unit in the last place. Nothing here asks for a fused multiply-add, which is slow where the machine has none.

use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E};

/// Adding and subtracting this rounds an `f64` of moderate size to an integer, ties to even.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// 2 to the power of a number; exact scaling, so that results may be denormal, infinite or zero.
#[inline(always)]
fn power_of_two(x: f64) -> f64 {
    // Beyond this everything is 0 or infinite in f32; NaN stays, since clamp keeps it.
    let x = x.clamp(-200.0, 200.0);
    let whole = (x + ROUND) - ROUND;
    let r = (x - whole) * LN_2;
    // The exponential's series: |r| <= 0.35, so the next term is below 1e-10.
    let p = 1.0 / 40320.0;
    let p = p * r + 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    // The low bits of the shifted sum hold the integer.
    let bits = (x + ROUND).to_bits().wrapping_add(1023) << 52;
    p * f64::from_bits(bits)
}

/// The logarithm to base e of a positive finite number; the results for others are set by the callers.
#[inline(always)]
fn natural(x: f64) -> f64 {
    // The mantissa in [sqrt(1/2), sqrt(2)), and the exponent that goes with it.
    let shifted = x.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd);
    let exponent = (shifted as i64 >> 52) as i32;
    let mantissa = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(0x3fe6_a09e_667f_3bcd));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let p = 1.0 / 15.0;
    let p = p * t + 1.0 / 13.0;
    let p = p * t + 1.0 / 11.0;
    let p = p * t + 1.0 / 9.0;
    let p = p * t + 1.0 / 7.0;
    let p = p * t + 1.0 / 5.0;
    let p = p * t + 1.0 / 3.0;
    let p = p * t + 1.0;
    2.0 * s * p + f64::from(exponent) * LN_2
}

/// What logarithms give for zero, negative numbers, infinity and NaN.
#[inline(always)]
fn with_limits(x: f32, value: f32) -> f32 {
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

/// e to the power of x.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    power_of_two(f64::from(x) * LOG2_E) as f32
}

/// 2 to the power of x.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    power_of_two(f64::from(x)) as f32
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    with_limits(x, natural(f64::from(x)) as f32)
}

/// Logarithm to base 2.
#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    with_limits(x, (natural(f64::from(x)) * LOG2_E) as f32)
}

/// x to the power of y, by the standard library: its many special cases matter more than speed.
#[inline(always)]
pub(super) fn powf(x: f32, y: f32) -> f32 {
    x.powf(y)
}

/// Sine and cosine of a moderate angle share this: the quarter turn that it is nearest to, and both polynomials of the rest.
#[inline(always)]
fn quarter_turn(x: f32) -> (u64, f64, f64) {
    let x = f64::from(x);
    let turned = x * FRAC_2_PI + ROUND;
    let whole = turned - ROUND;
    // Pi / 2 in two pieces; the first has 33 bits, so that its product is exact.
    let r = x - whole * 1.570_796_326_734_125_6;
    let r = r - whole * 6.077_100_506_506_192e-11;
    let t = r * r;
    let s = -1.0 / 39_916_800.0;
    let s = s * t + 1.0 / 362_880.0;
    let s = s * t - 1.0 / 5040.0;
    let s = s * t + 1.0 / 120.0;
    let s = s * t - 1.0 / 6.0;
    let s = s * t * r + r;
    let c = 1.0 / 479_001_600.0;
    let c = c * t - 1.0 / 3_628_800.0;
    let c = c * t + 1.0 / 40320.0;
    let c = c * t - 1.0 / 720.0;
    let c = c * t + 1.0 / 24.0;
    let c = c * t - 0.5;
    let c = c * t + 1.0;
    (turned.to_bits(), s, c)
}

/// Angles up to here are reduced by [`quarter_turn`]; larger ones go to the standard library.
pub(super) const MODERATE_ANGLE: f32 = 1.0e6;

/// Sine of an angle up to [`MODERATE_ANGLE`].
#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (turn, s, c) = quarter_turn(x);
    let value = if turn & 1 == 0 { s } else { c };
    // A zero keeps its sign.
    let value = if turn & 2 == 0 { value } else { -value } as f32;
    if x == 0.0 { x } else { value }
}

/// Cosine of an angle up to [`MODERATE_ANGLE`].
#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (turn, s, c) = quarter_turn(x);
    let value = if turn & 1 == 0 { c } else { s };
    (if turn.wrapping_add(1) & 2 == 0 { value } else { -value }) as f32
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let e = power_of_two(a.min(20.0) * (-2.0 * LOG2_E));
    let value = (1.0 - e) / (1.0 + e);
    // Near zero the difference cancels.
    let value = if a < 1.0e-3 { a - a * a * a / 3.0 } else { value };
    let value = (value as f32).copysign(x);
    if x.is_nan() { x } else { value }
}

/// erf(x) / x as a polynomial in x^2 / 8 - 1, fitted at Chebyshev's points for |x| <= 4; lowest power first.
const ERF: [f64; 23] = [
    0.3535309956433873,
    -0.17657623330398162,
    0.13167511689970954,
    -0.10771044229999155,
    0.0902089938742607,
    -0.07472787165489346,
    0.05988690940533405,
    -0.045765039977330564,
    0.03306059023160343,
    -0.022474034167960896,
    0.014349838744793716,
    -0.008604344389977994,
    0.0048526949526103615,
    -0.0025830608892374574,
    0.0012946162582011314,
    -0.0006048218335854472,
    0.00027243006275966757,
    -0.00012652705961954783,
    5.100673675769941e-05,
    -1.2620675843209025e-05,
    4.862857749685646e-06,
    -4.589222371578217e-06,
    1.5259534120559693e-06,
];

/// The error function; beyond 4 it is 1 in `f32`.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let a = f64::from(x).clamp(-4.0, 4.0);
    let u = a * a * 0.125 - 1.0;
    let mut p = ERF[22];
    let mut i = 22;
    while i > 0 {
        i -= 1;
        p = p * u + ERF[i];
    }
    (p * a) as f32
}

/// The `f32` of a half. Without a branch, so that a loop over lanes becomes vectors: the crate `half` asks each time what the processor has.
#[inline(always)]
pub(super) fn half_to_f32(bits: u32) -> f32 {
    let sign = (bits & 0x8000) << 16;
    let rest = (bits & 0x7fff) << 13;
    // Multiplying by 2^112 moves the exponent; it is exact for normal and denormal halves.
    let finite = f32::from_bits(rest) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits(rest | 0x7f80_0000);
    let value = if rest >= 0x0f80_0000 { special } else { finite };
    f32::from_bits(value.to_bits() | sign)
}

/// The bits of the half nearest to a number, ties to even.
#[inline(always)]
pub(super) fn f32_to_half(value: f32) -> u32 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub(0x3800_0000).wrapping_add(0xfff + odd) >> 13;
    // The unit in the last place of 0.5 + x is that of a denormal half.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    let large = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    let all = if magnitude > 0x7f80_0000 { 0x7e00 } else { large };
    sign | all
}

/// The bits of the `bf16` nearest to a number, ties to even; a NaN stays one.
#[inline(always)]
pub(super) fn f32_to_brain(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { (bits >> 16) | 0x40 } else { rounded }
}

/// The quotient of integers, by division of `f64`: the rounded quotient of two 32-bit integers never reaches the next integer, and vectors
/// have no integer division, nor a conversion that asks whether a number fits.
#[inline(always)]
pub(super) fn divide_u32(x: u32, y: u32) -> u32 {
    let quotient = f64::from(x) / f64::from(y.max(1));
    // SAFETY: the divisor is 1 or more, so that this is from 0 to the largest integer.
    let quotient: u32 = unsafe { quotient.to_int_unchecked() };
    if y == 0 { 0 } else { quotient }
}

/// As [`divide_u32`]; `MIN / -1` is `MIN`.
#[inline(always)]
pub(super) fn divide_i32(x: i32, y: i32) -> i32 {
    let quotient = f64::from(x) / f64::from(if y == 0 { 1 } else { y });
    // 2^31, the only quotient that does not fit, wraps through i64.
    // SAFETY: the divisor is 1 or more in size, so that this is no larger than 2^31.
    let quotient = unsafe { quotient.to_int_unchecked::<i64>() } as i32;
    if y == 0 { 0 } else { quotient }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error in units in the last place over numbers spread between two bounds.
    fn worst(low: f32, high: f32, found: fn(f32) -> f32, exact: fn(f64) -> f64) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for i in 0..100_000u32 {
            let x = low + (high - low) * (i as f32 / 99_999.0);
            let (found, exact) = (f64::from(found(x)), exact(f64::from(x)));
            let unit = f64::from(f32::EPSILON) * exact.abs().max(f64::from(f32::MIN_POSITIVE));
            let error = (found - exact).abs() / unit;
            if error > worst.0 {
                worst = (error, x);
            }
        }
        worst
    }

    /// The error function by its series, which converges everywhere; good to more digits than `f32` has up to 3.
    fn erf_series(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..80 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn functions_are_within_a_unit_of_the_exact_ones() {
        type Row = (&'static str, f32, f32, fn(f32) -> f32, fn(f64) -> f64);
        let rows: [Row; 10] = [
            ("exp", -87.0, 88.0, exp, f64::exp),
            ("exp2", -125.0, 127.0, exp2, f64::exp2),
            ("ln", 1.0e-3, 10.0, ln, f64::ln),
            ("ln", 1.0e-30, 1.0e30, ln, f64::ln),
            ("log2", 1.0e-3, 10.0, log2, f64::log2),
            ("sin", -100.0, 100.0, sin, f64::sin),
            ("cos", -100_000.0, 100_000.0, cos, f64::cos),
            ("tanh", -10.0, 10.0, tanh, f64::tanh),
            ("tanh", -2.0e-3, 2.0e-3, tanh, f64::tanh),
            ("erf", -3.0, 3.0, erf, erf_series),
        ];
        for (name, low, high, found, exact) in rows {
            let (error, x) = worst(low, high, found, exact);
            assert!(error <= 1.0, "{name}({x}) is off by {error} units in the last place");
        }
    }

    #[test]
    fn quotients_of_integers_are_theirs() {
        let near = |of: i64| (-2..=2).map(move |beside| of + beside);
        let kinds = [0, 3, 10, 1 << 16, 1 << 24, (1 << 31) - 1, 1 << 31, 3 << 30, (1 << 32) - 1];
        let numbers: Vec<u32> = kinds.into_iter().flat_map(near).map(|number| number as u32).collect();
        for (x, y) in numbers.iter().flat_map(|x| numbers.iter().map(move |y| (*x, *y))) {
            assert_eq!(divide_u32(x, y), x.checked_div(y).unwrap_or(0), "{x} / {y}");
            let (x, y) = (x.cast_signed(), y.cast_signed());
            assert_eq!(divide_i32(x, y), if y == 0 { 0 } else { x.wrapping_div(y) }, "{x} / {y}");
        }
    }

    #[test]
    fn limits_are_right() {
        assert_eq!(
            [exp(f32::INFINITY), exp(f32::NEG_INFINITY), exp(0.0), exp(200.0)],
            [f32::INFINITY, 0.0, 1.0, f32::INFINITY]
        );
        assert_eq!(exp2(-149.0), f32::from_bits(1), "denormals are results");
        assert_eq!([ln(0.0), ln(1.0), ln(f32::INFINITY)], [f32::NEG_INFINITY, 0.0, f32::INFINITY]);
        assert!(ln(-1.0).is_nan() && ln(f32::NAN).is_nan() && exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
        assert!((ln(f32::from_bits(1)) + 103.278_93).abs() < 1.0e-4, "denormals are arguments");
        assert_eq!([tanh(100.0), tanh(-100.0), tanh(0.0)], [1.0, -1.0, 0.0]);
        assert_eq!([erf(10.0), erf(f32::NEG_INFINITY), erf(0.0)], [1.0, -1.0, 0.0]);
        assert!(erf(f32::NAN).is_nan());
        assert!(sin(-0.0).is_sign_negative());
    }
}
