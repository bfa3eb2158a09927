//! Functions of one or two real numbers in `f64`, for references: by series, not by the approximations that kernels use.

/// The error function, within a few ulp of `f64`: its power series near zero, its continued fraction elsewhere.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    if size < 2.5 {
        // 2 / sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1))
        let (mut power, mut sum) = (size, size);
        for n in 1..120 {
            power *= -size * size / f64::from(n);
            sum += power / f64::from(2 * n + 1);
        }
        return (std::f64::consts::FRAC_2_SQRT_PI * sum).copysign(x);
    }
    (1.0 - tail(size)).copysign(x)
}

/// 1 - erf(x), which does not cancel where erf goes to 1.
pub(super) fn erfc(x: f64) -> f64 {
    if x < 2.5 || x.is_nan() { 1.0 - erf(x) } else { tail(x) }
}

/// erfc of at least 2.5, by its continued fraction: exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ..))))
fn tail(x: f64) -> f64 {
    let mut denominator = x;
    for n in (1..200).rev() {
        denominator = x + f64::from(n) / 2.0 / denominator;
    }
    (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / denominator
}

/// The inverse hyperbolic sine; far out by the logarithm, since Rust's overflows there.
pub(super) fn asinh(x: f64) -> f64 {
    if x.abs() > 1e150 { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
}

/// The inverse hyperbolic tangent, whose sign is taken off, since Rust's cancels near -1.
pub(super) fn atanh(x: f64) -> f64 {
    x.abs().atanh().copysign(x)
}

/// The inverse hyperbolic cosine by the sine of half of it, which does not cancel near 1; NaN below.
pub(super) fn acosh(x: f64) -> f64 {
    2.0 * asinh((0.5 * x - 0.5).sqrt())
}

/// A function that goes to 0 at minus infinity, where its formula may have no value.
pub(super) fn vanishing(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    if x == f64::NEG_INFINITY { 0.0 } else { f(x) }
}

/// The nearest integer, ties to even, away from what the processor's own rounding mode may be; of negative numbers near zero, the negative zero.
pub(super) fn round_ties_even(x: f64) -> f64 {
    let down = x.floor();
    let nearest = match x - down {
        rest if rest < 0.5 => down,
        rest if rest > 0.5 => down + 1.0,
        0.5 => down + down.rem_euclid(2.0),
        _ => x,
    };
    nearest.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::{acosh, erf, erfc, round_ties_even};

    #[test]
    fn known_values() {
        for (x, y) in [(0.0, 0.0), (0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9)] {
            assert!((erf(x) - y).abs() < 1e-15 && (erf(-x) + y).abs() < 1e-15);
        }
        assert!((erf(2.0) - 0.995_322_265_018_952_7).abs() < 1e-14);
        assert!((erf(3.0) - 0.999_977_909_503_001_4).abs() < 1e-15);
        assert!((erfc(1.0) - 0.157_299_207_050_285_1).abs() < 1e-15);
        assert!((erfc(4.0) / 1.541_725_790_028_002e-8 - 1.0).abs() < 1e-13);
        assert!((erfc(-4.0) - 2.0).abs() < 1e-7 && erfc(f64::INFINITY) == 0.0 && erf(f64::INFINITY) == 1.0);
        assert!(acosh(1.0) == 0.0 && acosh(0.5).is_nan() && (acosh(1e-3f64.cosh()) - 1e-3).abs() < 1e-13);
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 0.4].map(round_ties_even), [0.0, 2.0, 2.0, 0.0, -2.0, 0.0]);
        assert_eq!([0.4, -0.4, -0.5].map(|x| round_ties_even(x).is_sign_negative()), [false, true, true]);
    }
}
