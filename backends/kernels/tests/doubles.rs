//! Doubles of norms, against those of the standard library.

use trefoil_kernels::norm::doubles::{exp_not_above_one, log_from_one};

#[test]
fn near_the_hosts() {
    for step in 0..7500 {
        let x = -f64::from(step) * 0.0997;
        let (given, expected) = (exp_not_above_one(x), x.exp());
        assert!((given - expected).abs() <= 4.0 * f64::EPSILON * expected + 5e-324, "exp {x}: {given:e}, {expected:e}");
        let x = 1.0 + f64::from(step * step) * 0.377;
        let (given, expected) = (log_from_one(x), x.ln());
        assert!((given - expected).abs() <= 4.0 * f64::EPSILON * expected.max(1.0), "ln {x}: {given}, {expected}");
    }
    assert_eq!(exp_not_above_one(f64::NEG_INFINITY), 0.0);
    assert!(exp_not_above_one(f64::NAN).is_nan());
}
