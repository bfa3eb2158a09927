//! What norms need of doubles.

use trefoil_dsl::prelude::*;

/// As [`super::rows::bounded_inverse_root`].
#[device]
pub fn bounded_inverse_root_f64(x: f64, bound: f64) -> f64 {
    let exact = 1.0 / sqrt(x);
    select(is_nan(x), x, select(exact > bound, bound, exact))
}
