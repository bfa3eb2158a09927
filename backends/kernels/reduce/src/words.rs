//! Reductions of integers of 32 bits.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::quads::quad;
use trefoil_kernels_common::values::{Place, order_of_signed};

operators! {
    /// The sum of integers, which wraps.
    elements! reduce_sum_words(u32) { u32 => u32, [0], [|a, x, _| a + x], [|a, b| a + b], [|a, _| a] }
    parts! join_sum_words() { u32 => u32, [0], [|a, _| a], [|a, b| a + b], [|a, _| a] }
    /// The product of integers, which wraps.
    elements! reduce_product_words(u32) { u32 => u32, [1], [|a, x, _| a * x], [|a, b| a * b], [|a, _| a] }
    parts! join_product_words() { u32 => u32, [1], [|a, _| a], [|a, b| a * b], [|a, _| a] }
    /// How many integers are not 0.
    elements! reduce_count_words(u32) { u32 => u32, [0], [|a, x, _| a + (x != 0) as u32], [|a, b| a + b], [|a, _| a] }
    /// The largest integer.
    elements! reduce_max_u32(u32) { u32 => u32, [0], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a] }
    parts! join_max_u32() { u32 => u32, [0], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The largest integer.
    elements! reduce_max_i32(i32) { i32 => i32, [i32::MIN], [|a, x, _| max(a, x)], [|a, b| max(a, b)], [|a, _| a] }
    parts! join_max_i32() { i32 => i32, [i32::MIN], [|a, _| a], [|a, b| max(a, b)], [|a, _| a] }
    /// The smallest integer.
    elements! reduce_min_u32(u32) { u32 => u32, [u32::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a] }
    parts! join_min_u32() { u32 => u32, [u32::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// The smallest integer.
    elements! reduce_min_i32(i32) { i32 => i32, [i32::MAX], [|a, x, _| min(a, x)], [|a, b| min(a, b)], [|a, _| a] }
    parts! join_min_i32() { i32 => i32, [i32::MAX], [|a, _| a], [|a, b| min(a, b)], [|a, _| a] }
    /// Where the largest integer is, the first of several.
    elements! reduce_argmax_u32(u32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: x, index: i })], [|a, b| a.best(b)],
        [|a, _| a.index]
    }
    /// Where the largest integer is, the first of several.
    elements! reduce_argmax_i32(i32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: order_of_signed(x), index: i })],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the first of several.
    elements! reduce_argmin_u32(u32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: !x, index: i })], [|a, b| a.best(b)],
        [|a, _| a.index]
    }
    /// Where the smallest integer is, the first of several.
    elements! reduce_argmin_i32(i32) {
        Place => u32, [Place::NONE], [|a, x, i| a.best(Place { order: !order_of_signed(x), index: i })],
        [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the largest integer is, the last of several.
    elements! reduce_last_argmax_u32(u32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: x, index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the largest integer is, the last of several.
    elements! reduce_last_argmax_i32(i32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of_signed(x), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the last of several.
    elements! reduce_last_argmin_u32(u32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: !x, index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest integer is, the last of several.
    elements! reduce_last_argmin_i32(i32) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: !order_of_signed(x), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
}
