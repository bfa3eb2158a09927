//! Scans of doubles and of integers of 64 bits.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{part_of, scan, walk_of};
use trefoil_kernels_common::longs::{largest_double, smallest_double};
use trefoil_kernels_common::quads::{set_two_pairs, two_pairs};

/// The value of the subgroup's lane so many before, of 64 bits.
#[device]
pub fn long_up(a: u64, distance: u32) -> u64 {
    let low = subgroup_shuffle_up(a as u32, distance);
    let high = subgroup_shuffle_up((a >> 32) as u32, distance);
    (high as u64) << 32 | low as u64
}

operators! {
    /// Sums of long integers, which wrap.
    scan_sum_longs(u64, 0, requires(Int64)) { u64, [0], [|a, b| a + b], [long_up] }
    /// Products of long integers, which wrap.
    scan_product_longs(u64, 0, requires(Int64)) { u64, [1], [|a, b| a * b], [long_up] }
    /// The largest long integers so far.
    scan_max_u64(u64, 0, requires(Int64)) { u64, [0], [|a, b| max(a, b)], [long_up] }
    /// The largest long integers so far.
    scan_max_i64(i64, 0, requires(Int64)) {
        i64, [i64::MIN], [|a, b| max(a, b)], [|a, d| long_up(a as u64, d) as i64]
    }
    /// The smallest long integers so far.
    scan_min_u64(u64, 0, requires(Int64)) { u64, [u64::MAX], [|a, b| min(a, b)], [long_up] }
    /// The smallest long integers so far.
    scan_min_i64(i64, 0, requires(Int64)) {
        i64, [i64::MAX], [|a, b| min(a, b)], [|a, d| long_up(a as u64, d) as i64]
    }
    /// Sums of doubles.
    scan_sum_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [0.0], [|a, b| a + b], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// Products of doubles.
    scan_product_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [1.0], [|a, b| a * b], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// The largest doubles so far; a NaN stays.
    scan_max_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [f64::NEG_INFINITY], [largest_double], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
    /// The smallest doubles so far; a NaN stays.
    scan_min_f64(f64, 0.0, requires(Float64, Int64)) {
        f64, [f64::INFINITY], [smallest_double], [|a, d| bitcast::<f64>(long_up(bitcast::<u64>(a), d))]
    }
}
