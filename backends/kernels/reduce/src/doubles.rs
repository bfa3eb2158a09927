//! Reductions of doubles.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::longs::{
    LongPlace, double_not_zero, double_over, largest_double, order_of_double, smallest_double,
};
use trefoil_kernels_common::quads::two_pairs;
use trefoil_kernels_common::statistics::{DoubleExponentials, DoubleMoments};

operators! {
    /// The sum of doubles over the divisor.
    elements! reduce_sum_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + x], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    parts! join_sum_f64(requires(Float64)) {
        f64 => f64, [0.0], [|a, _| a], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    /// The sum of absolute values of doubles.
    elements! reduce_l1_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + abs(x)], [|a, b| a + b], [|a, n| double_over(a, n)]
    }
    /// The root of the sum of the squares of doubles.
    elements! reduce_l2_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [0.0], [|a, x, _| a + x * x], [|a, b| a + b], [|a, _| sqrt(a)]
    }
    parts! join_l2_f64(requires(Float64)) { f64 => f64, [0.0], [|a, _| a], [|a, b| a + b], [|a, _| sqrt(a)] }
    /// The product of doubles.
    elements! reduce_product_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [1.0], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a]
    }
    parts! join_product_f64(requires(Float64)) { f64 => f64, [1.0], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// The largest double, or NaN if there is one.
    elements! reduce_max_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [f64::NEG_INFINITY], [|a, x, _| largest_double(a, x)], [largest_double], [|a, _| a]
    }
    parts! join_max_f64(requires(Float64)) {
        f64 => f64, [f64::NEG_INFINITY], [|a, _| a], [largest_double], [|a, _| a]
    }
    /// The smallest double, or NaN if there is one.
    elements! reduce_min_f64(f64, 0.0, requires(Float64)) {
        f64 => f64, [f64::INFINITY], [|a, x, _| smallest_double(a, x)], [smallest_double], [|a, _| a]
    }
    parts! join_min_f64(requires(Float64)) {
        f64 => f64, [f64::INFINITY], [|a, _| a], [smallest_double], [|a, _| a]
    }
    /// The logarithm of the sum of the exponentials of doubles.
    elements! reduce_logsumexp_f64(f64, 0.0, requires(Float64, Int64)) {
        DoubleExponentials => f64, [DoubleExponentials::NONE], [|a, x, _| a.push(x)], [|a, b| a.join(b)],
        [|a, _| a.largest + ln(a.sum)]
    }
    parts! join_logsumexp_f64(requires(Float64, Int64)) {
        DoubleExponentials => f64, [DoubleExponentials::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, _| a.largest + ln(a.sum)]
    }
    /// The sum of squared distances of doubles from their mean, over the divisor.
    elements! reduce_variance_f64(f64, 0.0, requires(Float64), no quads) {
        DoubleMoments => f64, [DoubleMoments::NONE], [|a, x, _| a.push(x)], [|a, b| a.join(b)],
        [|a, n| double_over(a.squares, n)]
    }
    parts! join_variance_f64(requires(Float64)) {
        DoubleMoments => f64, [DoubleMoments::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, n| double_over(a.squares, n)]
    }
    /// How many doubles are not 0.
    elements! reduce_count_f64(f64, 0.0, requires(Float64, Int64)) {
        u32 => u32, [0], [|a, x, _| a + double_not_zero(x)], [|a, b| a + b], [|a, _| a]
    }
    /// Where the largest double is, the first of several; a NaN is larger than all others.
    elements! reduce_argmax_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_double(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest double is, the first of several; a NaN is smaller than all others.
    elements! reduce_argmin_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_double(-x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest double is, the last of several; a NaN is larger than all others.
    elements! reduce_last_argmax_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_double(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest double is, the last of several; a NaN is smaller than all others.
    elements! reduce_last_argmin_f64(f64, 0.0, requires(Float64, Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_double(-x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
}
