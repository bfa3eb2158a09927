//! What floats of up to 32 bits come to: sums, products and what is made of these.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::quads::quad;
use trefoil_kernels_common::statistics::{Exponentials, Moments};
use trefoil_kernels_common::values::{not_zero, over};

operators! {
    /// The sum of floats over the divisor.
    elements! reduce_sum(f32, f16, bf16 as T, volatile(cuda(x))) {
        f32 => T, [0.0], [|a, x, _| a + x.to_f32()], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    parts! join_sum(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, _| a], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    /// The sum of absolute values of floats over the divisor.
    elements! reduce_l1(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, x, _| a + abs(x.to_f32())], [|a, b| a + b], [|a, n| T::from_f32(over(a, n))]
    }
    /// The root of the sum of the squares of floats.
    elements! reduce_l2(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, x, _| a + x.to_f32() * x.to_f32()], [|a, b| a + b], [|a, _| T::from_f32(sqrt(a))]
    }
    parts! join_l2(f32, f16, bf16 as T) {
        f32 => T, [0.0], [|a, _| a], [|a, b| a + b], [|a, _| T::from_f32(sqrt(a))]
    }
    /// The product of floats.
    elements! reduce_product(f32, f16, bf16 as T) {
        f32 => T, [1.0], [|a, x, _| a * x.to_f32()], [|a, b| a * b], [|a, _| T::from_f32(a)]
    }
    parts! join_product(f32, f16, bf16 as T) {
        f32 => T, [1.0], [|a, _| a], [|a, b| a * b], [|a, _| T::from_f32(a)]
    }
    /// The logarithm of the sum of the exponentials of floats.
    elements! reduce_logsumexp(f32, f16, bf16 as T) {
        Exponentials => T, [Exponentials::NONE], [|a, x, _| a.push(x.to_f32())], [|a, b| a.join(b)],
        [|a, _| T::from_f32(a.largest + ln(a.sum))]
    }
    parts! join_logsumexp(f32, f16, bf16 as T) {
        Exponentials => T, [Exponentials::NONE], [|a, _| a], [|a, b| a.join(b)],
        [|a, _| T::from_f32(a.largest + ln(a.sum))]
    }
    /// The sum of squared distances of floats from their mean, over the divisor.
    elements! reduce_variance(f32, f16, bf16 as T) {
        Moments => T, [Moments::NONE], [|a, x, _| a.push(x.to_f32())], [|a, b| a.join(b)],
        [|a, n| T::from_f32(over(a.squares, n))]
    }
    parts! join_variance(f32, f16, bf16 as T) {
        Moments => T, [Moments::NONE], [|a, _| a], [|a, b| a.join(b)], [|a, n| T::from_f32(over(a.squares, n))]
    }
    /// How many floats are not 0.
    elements! reduce_count(f32, f16, bf16 as T) {
        u32 => u32, [0], [|a, x, _| a + not_zero(x.to_f32())], [|a, b| a + b], [|a, _| a]
    }
}
