//! Reductions over the invocations of a workgroup, for every family.

use trefoil_dsl::prelude::*;

/// The sum of `value` over a workgroup of `SIZE` invocations, the same for all of them. `scratch` holds `SIZE` elements; the function may be
/// called again at once with the same.
#[device]
pub fn workgroup_sum<const SIZE: usize>(value: f32, scratch: &mut [f32]) -> f32 {
    let local = local_index();
    if const { target::has(Feature::Subgroups) } {
        let partial = subgroup_add(value);
        if subgroup_lane() == 0 {
            scratch[subgroup_index()] = partial;
        }
        barrier();
        let mut total = 0.0;
        for subgroup in 0..SIZE / subgroup_size() {
            total += scratch[subgroup];
        }
        barrier();
        total
    } else {
        scratch[local] = value;
        barrier();
        let mut half = SIZE / 2;
        while half > 0 {
            if local < half {
                scratch[local] += scratch[local + half];
            }
            barrier();
            half /= 2;
        }
        let total = scratch[0];
        barrier();
        total
    }
}

/// The largest `value` over a workgroup of `SIZE` invocations, as [`workgroup_sum`].
#[device]
pub fn workgroup_max<const SIZE: usize>(value: f32, scratch: &mut [f32]) -> f32 {
    let local = local_index();
    if const { target::has(Feature::Subgroups) } {
        let partial = subgroup_max(value);
        if subgroup_lane() == 0 {
            scratch[subgroup_index()] = partial;
        }
        barrier();
        let mut largest = f32::NEG_INFINITY;
        for subgroup in 0..SIZE / subgroup_size() {
            largest = max(largest, scratch[subgroup]);
        }
        barrier();
        largest
    } else {
        scratch[local] = value;
        barrier();
        let mut half = SIZE / 2;
        while half > 0 {
            if local < half {
                scratch[local] = max(scratch[local], scratch[local + half]);
            }
            barrier();
            half /= 2;
        }
        let largest = scratch[0];
        barrier();
        largest
    }
}
