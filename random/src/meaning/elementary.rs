//! Functions that no device computes exactly: the exact result over an interval, wider by what the language allows a device.
//!
//! Ends are computed in doubles, by Rust's library, whose last place or two are taken into the width of `f64`. An argument for which the language states no accuracy says nothing.

use std::f64::consts::{LN_2, PI};

use trefoil_codegen::ir::{MathFunction, Scalar};

use crate::interval::{Interval, Reject};

/// The accuracy that GPUs have about 1 of logarithms, and of sines and cosines, as numbers.
const OF_LOGARITHMS: f64 = 1.0 / 2_097_152.0;
const OF_ANGLES: f64 = 1.0 / 2048.0;
/// What `f64` may be off, Rust's own library included.
const OF_DOUBLES: f64 = 8.0;

const OUTSIDE: Reject = "an argument is where a function has no stated accuracy";

fn within(x: Interval, low: f64, high: f64) -> Result<Interval, Reject> {
    if x.low >= low && x.high <= high { Ok(x) } else { Err(OUTSIDE) }
}

/// What a function gives, if it is one of these.
pub(super) fn elementary(function: MathFunction, scalar: Scalar, x: &[Interval]) -> Result<Interval, Reject> {
    use MathFunction as M;
    let double = scalar == Scalar::F64;
    let units = |single: f64| if double { OF_DOUBLES } else { single };
    let rising = |x: Interval, of: fn(f64) -> f64, single: f64| x.rising(of).widened(scalar, units(single), 0.0);
    // Of a number's logarithm near 1 the last place says nothing.
    let logarithm = |x: Interval, of: fn(f64) -> f64| {
        let near = !double && x.low <= 2.0 && x.high >= 0.5;
        x.rising(of).widened(scalar, units(3.0), if near { OF_LOGARITHMS } else { 0.0 })
    };
    let exponential = |x: Interval, of: fn(f64) -> f64| rising(x, of, 3.0 + 2.0 * x.low.abs().max(x.high.abs()));
    let angle = |x: Interval, double_width: f64| if double { double_width } else { OF_ANGLES * x.low.abs().max(1.0) };
    let first = x[0];
    match function {
        M::Exp => exponential(within(first, -80.0, 80.0)?, f64::exp),
        M::Exp2 => exponential(within(first, -80.0, 80.0)?, f64::exp2),
        M::ExpM1 => rising(within(first, -80.0, 80.0)?, f64::exp_m1, 4.0),
        M::Ln => logarithm(within(first, 1e-30, 1e30)?, f64::ln),
        M::Log2 => logarithm(within(first, 1e-30, 1e30)?, f64::log2),
        M::Log10 => rising(within(first, 1e-30, 1e30)?, f64::log10, 4.0),
        M::Ln1p => rising(within(first, -0.99, 1e30)?, f64::ln_1p, 4.0),
        M::Sinh => rising(within(first, -80.0, 80.0)?, f64::sinh, 5.0),
        M::Cosh => {
            let size = within(first, -80.0, 80.0)?.abs();
            rising(size, f64::cosh, 5.0)
        }
        M::Tanh => rising(first, f64::tanh, 5.0),
        M::Asinh => rising(first, f64::asinh, 5.0),
        M::Acosh => rising(within(first, 1.0, 1e30)?, f64::acosh, 5.0),
        M::Atanh => rising(within(first, -0.99, 0.99)?, f64::atanh, 5.0),
        M::Erf => rising(first, error_function, 4.0),
        M::Asin => rising(within(first, -1.0, 1.0)?, f64::asin, 4.0),
        M::Acos => {
            let x = within(first, -1.0, 1.0)?;
            Interval::between(x.high.acos(), x.low.acos()).widened(scalar, units(4.0), 0.0)
        }
        M::Atan => rising(first, f64::atan, 4096.0),
        M::Cbrt => rising(first, f64::cbrt, 3.0),
        M::Sin => sine(within(first, -PI, PI)?).widened(scalar, units(2.0), angle(first, 0.0)),
        M::Cos => cosine(within(first, -PI, PI)?).widened(scalar, units(2.0), angle(first, 0.0)),
        M::Tan => {
            let x = within(first, -1.5, 1.5)?;
            if double {
                return x.rising(f64::tan).widened(scalar, OF_DOUBLES, 0.0);
            }
            let over = sine(x).widened(scalar, 2.0, OF_ANGLES)?;
            over.divide(cosine(x).widened(scalar, 2.0, OF_ANGLES)?, scalar)
        }
        M::Atan2 => {
            // To the right of 0 the quadrant is known.
            let (y, x) = (first, within(x[1], 1e-3, 1e30)?);
            let ends = [(y.low, x.low), (y.low, x.high), (y.high, x.low), (y.high, x.high)].map(|(y, x)| y.atan2(x));
            Interval::around(&ends).widened(scalar, units(4096.0), 0.0)
        }
        M::Powf => {
            let (base, power) = (within(first, 1e-3, 1e3)?, within(x[1], -8.0, 8.0)?);
            let ends = [
                base.low.powf(power.low),
                base.low.powf(power.high),
                base.high.powf(power.low),
                base.high.powf(power.high),
            ];
            let result = Interval::around(&ends);
            if double {
                return result.widened(scalar, OF_DOUBLES, 0.0);
            }
            // As exact as `exp2(y * log2(x))`: the exponent's error counts times ln(2), in units of the result.
            let size = base.low.log2().abs().max(base.high.log2().abs());
            let most = power.low.abs().max(power.high.abs());
            let single = f64::from(f32::EPSILON);
            let exponent = most * (OF_LOGARITHMS + 3.0 * size * single) + most * size * single;
            result.widened(scalar, 4.0 + 2.0 * most * size + LN_2 * exponent / single * 2.0, 0.0)
        }
        M::Hypot => {
            let squares = first.abs().rising(|x| x * x);
            let others = x[1].abs().rising(|x| x * x);
            let sum = Interval::between(squares.low + others.low, squares.high + others.high);
            sum.rising(f64::sqrt).widened(scalar, 10.0, 0.0)
        }
        M::IsNan | M::IsInfinite => Err("a bool is no float"),
        _ => Err("a function that is not known"),
    }
}

/// The sines of angles from -π to π.
fn sine(x: Interval) -> Interval {
    let mut ends = Interval::hull(x.low.sin(), x.high.sin());
    if x.holds(PI / 2.0) {
        ends.high = 1.0;
    }
    if x.holds(-PI / 2.0) {
        ends.low = -1.0;
    }
    ends
}

/// The cosines of angles from -π to π.
fn cosine(x: Interval) -> Interval {
    let mut ends = Interval::hull(x.low.cos(), x.high.cos());
    if x.holds(0.0) {
        ends.high = 1.0;
    }
    ends
}

/// The error function: the series around 0, and beyond it the continued fraction of what is missing to 1.
fn error_function(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 2.5 {
        // 2 / sqrt(π) * exp(-x²) * (x + 2x³/3 + 4x⁵/15 + ...), whose terms have one sign.
        let (mut term, mut sum, mut number) = (size, size, 0.0);
        while term > sum * 1e-18 && number < 200.0 {
            number += 1.0;
            term *= 2.0 * size * size / (2.0 * number + 1.0);
            sum += term;
        }
        2.0 / PI.sqrt() * (-size * size).exp() * sum
    } else {
        let mut fraction = 0.0;
        for number in (1..=100).rev() {
            fraction = f64::from(number) / 2.0 / (size + fraction);
        }
        1.0 - (-size * size).exp() / (PI.sqrt() * (size + fraction))
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_tables() {
        for (x, wanted) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (-1.0, -0.842_700_792_949_714_9),
            (2.4, 0.999_311_486_103_354_9),
            (2.6, 0.999_763_965_583_470_6),
            (4.0, 0.999_999_984_582_742_1),
        ] {
            let found = error_function(x);
            assert!((found - wanted).abs() <= 4.0 * f64::EPSILON, "erf({x}) is {found}, not {wanted}");
        }
    }

    #[test]
    fn intervals_hold_what_a_device_may_give() {
        let of = |function, x: f64| elementary(function, Scalar::F32, &[Interval::point(x)]).unwrap();
        assert!(of(MathFunction::Exp, 1.0).holds(f64::from(1f32.exp())));
        assert!(of(MathFunction::Sin, 0.5).holds(0.5f64.sin() + 0.0004));
        assert!(!of(MathFunction::Sin, 0.5).holds(0.5f64.sin() + 0.001));
        assert!(elementary(MathFunction::Sin, Scalar::F32, &[Interval::point(7.0)]).is_err());
        let wide = elementary(MathFunction::Cos, Scalar::F32, &[Interval::hull(-0.5, 0.25)]).unwrap();
        assert!(wide.holds(1.0) && wide.holds(0.5f64.cos()));
        let tan = of(MathFunction::Tan, 1.0);
        assert!(tan.holds(1f64.tan()) && tan.high - tan.low < 0.02);
    }
}
