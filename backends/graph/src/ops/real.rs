//! Functions of one or two real numbers in `f64`, for references: by series, not by the approximations that kernels use.

/// The error function, within a few ulp of `f64`: by its power series without signs near zero, else by what it lacks of 1.
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    let value = if size < NEAR { series(size) } else { 1.0 - tail(size) };
    value.copysign(x)
}

/// The share of the normal distribution below x, (1 + erf(x / sqrt(2))) / 2, which does not cancel where it goes to 0.
pub(super) fn normal_share(x: f64) -> f64 {
    let size = x.abs();
    let root = size * std::f64::consts::FRAC_1_SQRT_2;
    let beyond = 0.5 * if root < NEAR { 1.0 - series(root) } else { power(size, 0.5) * over_power(root) };
    if x < 0.0 { beyond } else { 1.0 - beyond }
}

/// Up to where the series serves: there the error function is a half.
const NEAR: f64 = 0.5;

/// The error function of a number that is not negative: 2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * 5 * .. (2n+1)).
fn series(x: f64) -> f64 {
    let (mut power, mut sum) = (x, x);
    for n in 1..40 {
        power *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += power;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// 1 - erf(x), not too near zero.
fn tail(x: f64) -> f64 {
    power(x, 1.0) * over_power(x)
}

/// e^(-factor x^2). The square is in two parts, of which the first is exact: a rounded one would cost as many ulp as it is large. Beyond 40 it is less than any number.
fn power(x: f64, factor: f64) -> f64 {
    let x = x.min(40.0);
    let upper = f64::from(x as f32);
    (-factor * upper * upper).exp() * (-factor * (x - upper) * (x + upper)).exp()
}

/// (1 - erf(x)) e^(x^2) by its continued fraction, which is the longer the smaller x is: 1 / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ..)))).
fn over_power(x: f64) -> f64 {
    let mut denominator = x;
    for n in (1..=(160.0 / (x * x)) as u32 + 40).rev() {
        denominator = x + f64::from(n) / 2.0 / denominator;
    }
    std::f64::consts::FRAC_2_SQRT_PI / 2.0 / denominator
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
    use super::{acosh, erf, normal_share, round_ties_even};

    #[test]
    fn known_values() {
        for (x, y) in [(0.0, 0.0), (0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9)] {
            assert!((erf(x) - y).abs() < 1e-15 && (erf(-x) + y).abs() < 1e-15);
        }
        assert!((erf(2.0) - 0.995_322_265_018_952_7).abs() < 1e-14);
        assert!((erf(3.0) - 0.999_977_909_503_001_4).abs() < 1e-15);
        for (x, y) in [
            (-1.0, 0.158_655_253_931_457_05),
            (-4.0, 3.167_124_183_311_992_4e-5),
            (-12.5, 3.732_564_298_877_713e-36),
            (-30.0, 4.906_713_927_148_187e-198),
            (4.0, 0.999_968_328_758_166_9),
        ] {
            assert!((normal_share(x) / y - 1.0).abs() < 1e-15, "{x}");
        }
        assert!(normal_share(f64::NAN).is_nan() && erf(f64::NAN).is_nan());
        assert_eq!([normal_share(-1e300), normal_share(0.0), erf(f64::INFINITY), erf(-1e300)], [0.0, 0.5, 1.0, -1.0]);
        assert!(acosh(1.0) == 0.0 && acosh(0.5).is_nan() && (acosh(1e-3f64.cosh()) - 1e-3).abs() < 1e-13);
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 0.4].map(round_ties_even), [0.0, 2.0, 2.0, 0.0, -2.0, 0.0]);
        assert_eq!([0.4, -0.4, -0.5].map(|x| round_ties_even(x).is_sign_negative()), [false, true, true]);
    }
}
