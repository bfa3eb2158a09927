//! What several kernels do over a workgroup: sums and running sums.
//!
//! With subgroups, each one makes a sum, and every invocation adds up those of the others through workgroup memory; without, invocations add
//! over distances that double. Nothing depends on a subgroup's size.

use trefoil::prelude::*;

/// The sum of `value` over a workgroup of `SIZE` invocations, the same for all. It uses `SIZE` elements of `scratch` from `slot * SIZE` on; the next call needs
/// another slot, or a barrier before it.
#[device]
pub fn sum_all<const SIZE: usize>(value: f32, slot: usize, scratch: &mut [f32]) -> f32 {
    let first = slot * SIZE;
    if const { target::has(Feature::Subgroups) } {
        let part = subgroup_add(value);
        if subgroup_lane() == 0 {
            scratch[first + subgroup_index()] = part;
        }
        barrier();
        let mut sum = 0.0;
        for subgroup in 0..SIZE / subgroup_size() {
            sum += scratch[first + subgroup];
        }
        sum
    } else {
        let local = first + local_index();
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

/// The sums of `value` over the invocations up to this one, and over all, in a workgroup of `SIZE`. It uses the first `SIZE` elements of `scratch`, and begins and ends with a barrier.
#[device]
pub fn running_sum<const SIZE: usize, T: Number>(value: T, scratch: &mut [T]) -> Vec2<T> {
    let lane = local_index();
    barrier();
    if const { target::has(Feature::Subgroups) } {
        let within = subgroup_inclusive_add(value);
        if subgroup_lane() + 1 == subgroup_size() {
            scratch[subgroup_index()] = within;
        }
        barrier();
        let mut before = T::lit(0.0);
        let mut all = T::lit(0.0);
        for subgroup in 0..SIZE / subgroup_size() {
            if subgroup == subgroup_index() {
                before = all;
            }
            all += scratch[subgroup];
        }
        barrier();
        Vec2::new(before + within, all)
    } else {
        scratch[lane] = value;
        barrier();
        let mut distance = 1;
        while distance < SIZE {
            let below = if lane < distance { T::lit(0.0) } else { scratch[lane - distance] };
            barrier();
            scratch[lane] += below;
            barrier();
            distance *= 2;
        }
        let sums = Vec2::new(scratch[lane], scratch[SIZE - 1]);
        barrier();
        sums
    }
}
