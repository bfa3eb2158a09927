//! What [`super::plain`] needs of doubles.

use trefoil_dsl::prelude::*;

use super::plain::SIZE;

/// As [`super::capped`].
#[device]
pub fn capped_double(product: f64, cap: f32) -> f64 {
    if cap > 0.0 { tanh(product / cap as f64) * cap as f64 } else { product }
}

/// As [`super::weight`].
#[device]
pub fn weight_of_double(score: f64, largest: f64) -> f64 {
    exp(score - select(largest == f64::NEG_INFINITY, 0.0, largest))
}

/// The largest of `largest` and the scores of the first `count` invocations of a workgroup, by way of `scratch`; it passes one barrier.
#[device]
pub fn largest_double(score: f64, largest: f64, count: usize, scratch: &mut [f64]) -> f64 {
    scratch[local_index()] = score;
    barrier();
    let mut most = largest;
    for other in 0..min(SIZE, count) {
        most = max(most, scratch[other]);
    }
    most
}
