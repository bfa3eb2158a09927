//! Constants of 16-bit floats are the nearest to the number written, with one rounding.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use half::{bf16, f16};
use trefoil_codegen::ir::{Literal, Scalar};

fn bits(scalar: Scalar, value: f64) -> u64 {
    Literal::float(scalar, value).unwrap().bits()
}

#[test]
fn what_lies_a_little_beyond_a_tie_is_no_tie() {
    for (scalar, digits) in [(Scalar::F16, 10), (Scalar::BF16, 7)] {
        let one = bits(scalar, 1.0);
        let half_step = 2f64.powi(-digits - 1);
        for tiny in [2f64.powi(-22), 2f64.powi(-30), 2f64.powi(-40), 2f64.powi(-52)] {
            assert_eq!(bits(scalar, 1.0 + half_step), one, "a tie goes to even");
            assert_eq!(bits(scalar, 1.0 + half_step + tiny), one + 1, "{tiny}");
            assert_eq!(bits(scalar, 1.0 + half_step - tiny), one, "{tiny}");
            assert_eq!(bits(scalar, 1.0 + 3.0 * half_step - tiny), one + 1, "{tiny}");
            assert_eq!(bits(scalar, -(1.0 + 3.0 * half_step)), bits(scalar, -1.0) + 2, "a tie goes to even");
        }
    }
}

#[test]
fn every_16_bit_float_is_itself_and_so_is_what_rounds_to_it() {
    for pattern in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(pattern), bf16::from_bits(pattern));
        for (scalar, value) in [(Scalar::F16, half.to_f64()), (Scalar::BF16, brain.to_f64())] {
            if value.is_nan() {
                assert!(Literal::float(scalar, value).unwrap().as_float().unwrap().is_nan());
            } else {
                assert_eq!(bits(scalar, value), u64::from(pattern));
                if value != 0.0 && value.is_finite() {
                    assert_eq!(bits(scalar, f64::from_bits(value.to_bits() + 1)), u64::from(pattern), "{value}");
                }
            }
        }
    }
    assert_eq!(bits(Scalar::F16, 65520.0), u64::from(f16::INFINITY.to_bits()));
    assert_eq!(bits(Scalar::F16, 65_519.999_999_999), u64::from(f16::MAX.to_bits()));
    assert_eq!(bits(Scalar::F16, 2f64.powi(-25)), 0);
    assert_eq!(bits(Scalar::F16, 2f64.powi(-25) * (1.0 + f64::EPSILON)), 1);
    assert_eq!(bits(Scalar::BF16, 1e-60), 0);
    assert_eq!(bits(Scalar::BF16, f64::MAX), u64::from(bf16::INFINITY.to_bits()));
}
