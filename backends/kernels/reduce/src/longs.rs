//! Reductions of integers of 64 bits, and the joining of places of doubles.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::longs::{LongPlace, order_of_signed_long};
use trefoil_kernels_common::quads::two_pairs;

operators! {
    /// The sum of long integers, which wraps.
    elements! reduce_sum_longs(u64, 0, requires(Int64)) { u64 => u64, [0], [|a, x, _| a + x], [|a, b| a + b], [|a, _| a] }
    parts! join_sum_longs(requires(Int64)) { u64 => u64, [0], [|a, _| a], [|a, b| a + b], [|a, _| a] }
    /// The product of long integers, which wraps.
    elements! reduce_product_longs(u64, 0, requires(Int64)) {
        u64 => u64, [1], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a]
    }
    parts! join_product_longs(requires(Int64)) { u64 => u64, [1], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// How many long integers are not 0.
    elements! reduce_count_longs(u64, 0, requires(Int64)) {
        u32 => u32, [0], [|a, x, _| a + (x != 0) as u32], [|a, b| a + b], [|a, _| a]
    }
    /// The largest long integer.
    elements! reduce_max_u64(u64, 0, requires(Int64)) {
        u64 => u64, [0], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a]
    }
    parts! join_max_u64(requires(Int64)) { u64 => u64, [0], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The largest long integer.
    elements! reduce_max_i64(i64, 0, requires(Int64)) {
        i64 => i64, [i64::MIN], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a]
    }
    parts! join_max_i64(requires(Int64)) { i64 => i64, [i64::MIN], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The smallest long integer.
    elements! reduce_min_u64(u64, 0, requires(Int64)) {
        u64 => u64, [u64::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a]
    }
    parts! join_min_u64(requires(Int64)) { u64 => u64, [u64::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// The smallest long integer.
    elements! reduce_min_i64(i64, 0, requires(Int64)) {
        i64 => i64, [i64::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a]
    }
    parts! join_min_i64(requires(Int64)) { i64 => i64, [i64::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// Where the largest long integer is, the first of several.
    elements! reduce_argmax_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: x, index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the first of several.
    elements! reduce_argmax_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the first of several.
    elements! reduce_argmin_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: !x, index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the first of several.
    elements! reduce_argmin_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, x, i| a.best(LongPlace { order: !order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    parts! join_long_places(requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE], [|a, by| a.moved(by)], [|a, b| a.best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the last of several.
    elements! reduce_last_argmax_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: x, index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the largest long integer is, the last of several.
    elements! reduce_last_argmax_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the last of several.
    elements! reduce_last_argmin_u64(u64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: !x, index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    /// Where the smallest long integer is, the last of several.
    elements! reduce_last_argmin_i64(i64, 0, requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, x, i| a.last_best(LongPlace { order: !order_of_signed_long(x), index: i as u64 })],
        [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
    parts! join_last_long_places(requires(Int64)) {
        LongPlace => u32, [LongPlace::NONE_YET], [|a, by| a.moved(by)], [|a, b| a.last_best(b)], [|a, _| a.index as u32]
    }
}
