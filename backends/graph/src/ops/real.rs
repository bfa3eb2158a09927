//! Functions of one or two real numbers in `f64`, for references: by series, not by the approximations that kernels use.

/// The error function, within a few ulp of `f64`: its power series near zero, its continued fraction elsewhere.
pub(super) fn erf(x: f64) -> f64 {
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
    if size > 6.0 {
        return 1f64.copysign(x);
    }
    // erfc(x) = exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ..))))
    let mut tail = size;
    for n in (1..200).rev() {
        tail = size + f64::from(n) / 2.0 / tail;
    }
    (1.0 - (-size * size).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / tail).copysign(x)
}

/// The nearest integer, ties to even, away from what the processor's own rounding mode may be.
pub(super) fn round_ties_even(x: f64) -> f64 {
    let down = x.floor();
    match x - down {
        rest if rest < 0.5 => down,
        rest if rest > 0.5 => down + 1.0,
        0.5 => down + down.rem_euclid(2.0),
        _ => x,
    }
}

#[cfg(test)]
mod tests {
    use super::{erf, round_ties_even};

    #[test]
    fn known_values() {
        for (x, y) in [(0.0, 0.0), (0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9)] {
            assert!((erf(x) - y).abs() < 1e-15 && (erf(-x) + y).abs() < 1e-15);
        }
        assert!((erf(2.0) - 0.995_322_265_018_952_7).abs() < 1e-14);
        assert!((erf(3.0) - 0.999_977_909_503_001_4).abs() < 1e-15);
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 0.4].map(round_ties_even), [0.0, 2.0, 2.0, 0.0, -2.0, 0.0]);
    }
}
