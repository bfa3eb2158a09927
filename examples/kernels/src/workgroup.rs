//! What several kernels do over a workgroup: sums, and sums of the invocations before.
//!
//! With subgroups, each one makes a sum of its own, and every invocation adds up those of the others through workgroup memory; without, invocations add over
//! distances that double or halve. Nothing depends on a subgroup's size.

use trefoil::prelude::*;

/// The sum of `value` over a workgroup of `SIZE` invocations, the same for all. It uses `SIZE` elements of `scratch` from `slot * SIZE` on; the next call needs
/// another slot, or a barrier before it.
#[device]
pub fn sum_all<const SIZE: usize, T: Number>(value: T, slot: usize, scratch: &mut [T]) -> T {
    let first = slot * SIZE;
    if const { target::has(Feature::Subgroups) } {
        let part = subgroup_add(value);
        if subgroup_lane() == 0 {
            scratch[first + subgroup_index()] = part;
        }
        barrier();
        let mut sum = T::lit(0.0);
        for subgroup in 0..SIZE / subgroup_size() {
            sum += scratch[first + subgroup];
        }
        sum
    } else {
        let own = first + local_index();
        scratch[own] = value;
        barrier();
        let mut half = SIZE / 2;
        while half > 0 {
            if local_index() < half {
                scratch[own] += scratch[own + half];
            }
            barrier();
            half /= 2;
        }
        scratch[first]
    }
}

/// Four times [`trefoil::kernels::workgroup::sum_before`] at once. It uses `4 * SIZE` elements of `scratch`.
#[device]
pub fn four_sums_before<const SIZE: usize, T: Number>(value: Vec4<T>, all: &mut Vec4<T>, scratch: &mut [T]) -> Vec4<T> {
    let lane = local_index();
    barrier();
    if const { target::has(Feature::Subgroups) } {
        let with = subgroup_inclusive_add(value);
        let below = subgroup_shuffle_up(with, 1);
        if subgroup_lane() + 1 == subgroup_size() {
            scratch.set_vec4(subgroup_index(), with);
        }
        barrier();
        let mut start = Vec4::splat(T::lit(0.0));
        let mut sum = Vec4::splat(T::lit(0.0));
        for subgroup in 0..SIZE / subgroup_size() {
            if subgroup == subgroup_index() {
                start = sum;
            }
            sum += scratch.vec4(subgroup);
        }
        *all = sum;
        select(subgroup_lane() == 0, start, start + below)
    } else {
        scratch.set_vec4(lane, value);
        barrier();
        let mut distance = 1;
        while distance < SIZE {
            let mut sum = scratch.vec4(lane);
            if lane >= distance {
                sum = scratch.vec4(lane - distance) + sum;
            }
            barrier();
            scratch.set_vec4(lane, sum);
            barrier();
            distance *= 2;
        }
        *all = scratch.vec4(SIZE - 1);
        select(lane == 0, Vec4::splat(T::lit(0.0)), scratch.vec4(lane - 1))
    }
}
