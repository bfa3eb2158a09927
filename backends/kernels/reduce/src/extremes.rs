//! The largest and smallest of floats of up to 32 bits, and where they are. Places of 32-bit integers are joined by the same kernels.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::shapes::{join_parts, reduce, walk_of};
use trefoil_kernels_common::quads::quad;
use trefoil_kernels_common::values::{Place, largest, order_of, smallest};

operators! {
    /// The largest float, or NaN if there is one.
    elements! reduce_max(f32, f16, bf16 as T) {
        f32 => T, [f32::NEG_INFINITY], [|a, x, _| largest(a, x.to_f32())], [largest], [|a, _| T::from_f32(a)]
    }
    parts! join_max(f32, f16, bf16 as T) {
        f32 => T, [f32::NEG_INFINITY], [|a, _| a], [largest], [|a, _| T::from_f32(a)]
    }
    /// The smallest float, or NaN if there is one.
    elements! reduce_min(f32, f16, bf16 as T) {
        f32 => T, [f32::INFINITY], [|a, x, _| smallest(a, x.to_f32())], [smallest], [|a, _| T::from_f32(a)]
    }
    parts! join_min(f32, f16, bf16 as T) {
        f32 => T, [f32::INFINITY], [|a, _| a], [smallest], [|a, _| T::from_f32(a)]
    }
    /// Where the largest float is, the first of several; a NaN is larger than all others.
    elements! reduce_argmax(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE], [|a, x, i| a.push(order_of(x.to_f32()), i)],
        [|a, b| a.best(b)], [|a, _| a.index], [|a, x, i, by| a.push_four(x.to_f32(), i, by)]
    }
    /// Where the smallest float is, the first of several; a NaN is smaller than all others.
    elements! reduce_argmin(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE], [|a, x, i| a.push(order_of(-x.to_f32()), i)],
        [|a, b| a.best(b)], [|a, _| a.index], [|a, x, i, by| a.push_four(-x.to_f32(), i, by)]
    }
    parts! join_places() {
        Place => u32, [Place::NONE], [|a, by| a.moved(by)], [|a, b| a.best(b)], [|a, _| a.index]
    }
    /// Where the largest float is, the last of several; a NaN is larger than all others.
    elements! reduce_last_argmax(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of(x.to_f32()), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    /// Where the smallest float is, the last of several; a NaN is smaller than all others.
    elements! reduce_last_argmin(f32, f16, bf16 as T, volatile(spirv(x))) {
        Place => u32, [Place::NONE_YET], [|a, x, i| a.last_best(Place { order: order_of(-x.to_f32()), index: i })],
        [|a, b| a.last_best(b)], [|a, _| a.index]
    }
    parts! join_last_places() {
        Place => u32, [Place::NONE_YET], [|a, by| a.moved(by)], [|a, b| a.last_best(b)], [|a, _| a.index]
    }
}
