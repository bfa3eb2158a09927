//! What norms need of doubles.

use trefoil_dsl::prelude::*;

/// Above 1 / sqrt(x) of every double other than 0.
#[device]
const LARGEST: f64 = 1.0e300;

/// As [`super::rows::bounded_inverse_root`], with 1 / `least` as the bound, or a large number if that is 0.
#[device]
pub fn bounded_inverse_root_f64(x: f64, least: f64) -> f64 {
    let exact = 1.0 / sqrt(x);
    let bound = if least > 0.0 { 1.0 / least } else { LARGEST };
    select(is_nan(x), x, select(exact > bound, bound, exact))
}
