//! What kernels that give a workgroup a row have in common: reductions over its invocations, and reads of the row.
//!
//! With subgroups, each subgroup leaves its part in `scratch` and every invocation adds the parts up. Where there are eight of them, as on most GPUs, that is two loads and no loop:
//! its time counts, since memory waits meanwhile.

use trefoil_dsl::prelude::*;

/// The sum of `value` over a workgroup of `SIZE` invocations, the same for all of them. It uses `SIZE` elements of `scratch` from `slot * SIZE` on, and passes one barrier where
/// subgroups are there; there is none at the end, so that the next call needs another slot, or a barrier before it.
#[device]
pub fn workgroup_sum<const SIZE: usize>(value: f32, slot: usize, scratch: &mut [f32]) -> f32 {
    let first = slot * SIZE;
    let local = first + local_index();
    if const { target::has(Feature::Subgroups) } {
        let partial = subgroup_add(value);
        if subgroup_lane() == 0 {
            scratch[first + subgroup_index()] = partial;
        }
        barrier();
        if subgroup_size() * 8 == SIZE {
            let low = scratch.vec4(first / 4);
            let high = scratch.vec4(first / 4 + 1);
            let both = low + high;
            (both.x + both.y) + (both.z + both.w)
        } else {
            let mut total = 0.0;
            for subgroup in 0..SIZE / subgroup_size() {
                total += scratch[first + subgroup];
            }
            total
        }
    } else {
        scratch[local] = value;
        barrier();
        let mut half = SIZE / 2;
        while half > 0 {
            if local_index() < half {
                scratch[local] += scratch[local + half];
            }
            barrier();
            half /= 2;
        }
        scratch[first]
    }
}

/// The largest `value` over a workgroup of `SIZE` invocations, as [`workgroup_sum`].
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

/// Four elements of a row of `quads` groups of four; zeros past its end, past the last row, and of an empty slice. There is no branch around the read: compilers wait for
/// a read in a branch before they go on.
#[device]
pub fn row_quad(x: &[f32], row: usize, quad: usize, quads: usize) -> Vec4<f32> {
    x.vec4(select(quad < quads, row * quads + quad, x.len()))
}
