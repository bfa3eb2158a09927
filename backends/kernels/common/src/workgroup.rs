//! What kernels of several families do with a value of each invocation of a workgroup.
//!
//! With subgroups, each subgroup leaves its part in `scratch` and every invocation takes the parts together. Where there are eight of them, as on most GPUs, that is two loads and no loop:
//! its time counts, since memory waits meanwhile.

use trefoil_dsl::prelude::*;

/// The largest `value` over a workgroup of `SIZE` invocations, the same for all of them. It uses `SIZE` elements of `scratch` from `slot * SIZE` on, and passes one barrier where
/// subgroups are there; there is none at the end, so that the next call needs another slot, or a barrier before it.
#[device]
pub fn workgroup_max<const SIZE: usize>(value: f32, slot: usize, scratch: &mut [f32]) -> f32 {
    let first = slot * SIZE;
    let local = first + local_index();
    if const { target::has(Feature::Subgroups) } {
        let partial = subgroup_max(value);
        if subgroup_lane() == 0 {
            scratch[first + subgroup_index()] = partial;
        }
        barrier();
        if subgroup_size() * 8 == SIZE {
            let both = max(scratch.vec4(first / 4), scratch.vec4(first / 4 + 1));
            max(max(both.x, both.y), max(both.z, both.w))
        } else {
            let mut largest = f32::NEG_INFINITY;
            for subgroup in 0..SIZE / subgroup_size() {
                largest = max(largest, scratch[first + subgroup]);
            }
            largest
        }
    } else {
        scratch[local] = value;
        barrier();
        let mut half = SIZE / 2;
        while half > 0 {
            if local_index() < half {
                scratch[local] = max(scratch[local], scratch[local + half]);
            }
            barrier();
            half /= 2;
        }
        scratch[first]
    }
}

/// The sum of `value` over the invocations before this one in a workgroup of `SIZE`; `all` becomes that over all. It uses `SIZE` elements of `scratch`, and begins with a
/// barrier.
#[device]
pub fn sum_before<const SIZE: usize, T: Number>(value: T, all: &mut T, scratch: &mut [T]) -> T {
    let lane = local_index();
    barrier();
    if const { target::has(Feature::Subgroups) } {
        let with = subgroup_inclusive_add(value);
        let below = subgroup_shuffle_up(with, 1);
        if subgroup_lane() + 1 == subgroup_size() {
            scratch[subgroup_index()] = with;
        }
        barrier();
        let mut start = T::lit(0.0);
        let mut sum = T::lit(0.0);
        for subgroup in 0..SIZE / subgroup_size() {
            if subgroup == subgroup_index() {
                start = sum;
            }
            sum += scratch[subgroup];
        }
        *all = sum;
        select(subgroup_lane() == 0, start, start + below)
    } else {
        scratch[lane] = value;
        barrier();
        let mut distance = 1;
        while distance < SIZE {
            let mut sum = scratch[lane];
            if lane >= distance {
                sum = scratch[lane - distance] + sum;
            }
            barrier();
            scratch[lane] = sum;
            barrier();
            distance *= 2;
        }
        *all = scratch[SIZE - 1];
        select(lane == 0, T::lit(0.0), scratch[lane - 1])
    }
}
