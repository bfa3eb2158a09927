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

/// What turns an invocation's exponentials into shares of the workgroup's sum. Each of `SIZE` invocations has summed `exp(x - own)` of its elements x to `sum`, with
/// a finite `own`; it gets the factor `exp(own - largest own) / (sum of all, relative to the largest own)`. `scratch` holds `2 * SIZE` elements.
#[device]
pub fn workgroup_exponentials<const SIZE: usize>(own: f32, sum: f32, scratch: &mut [f32]) -> f32 {
    if const { target::has(Feature::Subgroups) } {
        let reference = subgroup_max(own);
        let partial = subgroup_add(sum * exp(own - reference));
        if subgroup_lane() == 0 {
            scratch[2 * subgroup_index()] = reference;
            scratch[2 * subgroup_index() + 1] = partial;
        }
        barrier();
        let mut largest = reference;
        for subgroup in 0..SIZE / subgroup_size() {
            largest = max(largest, scratch[2 * subgroup]);
        }
        let mut total = 0.0;
        for subgroup in 0..SIZE / subgroup_size() {
            total += scratch[2 * subgroup + 1] * exp(scratch[2 * subgroup] - largest);
        }
        exp(own - largest) / total
    } else {
        let largest = workgroup_max::<SIZE>(own, scratch);
        let shrink = exp(own - largest);
        let total = workgroup_sum::<SIZE>(sum * shrink, scratch);
        shrink / total
    }
}

/// Mean and sum of squared distances from it over a workgroup of `SIZE` invocations: each has `count` elements, their `sum`, and the sum of `squares` of their
/// distances from their own mean, so that nothing cancels. `total` is the number of all elements. `scratch` holds `3 * SIZE` elements.
#[device]
pub fn workgroup_moments<const SIZE: usize>(
    count: f32,
    sum: f32,
    squares: f32,
    total: f32,
    scratch: &mut [f32],
) -> Vec2<f32> {
    let own = sum / max(count, 1.0);
    if const { target::has(Feature::Subgroups) } {
        let partial_count = subgroup_add(count);
        let partial_sum = subgroup_add(sum);
        let away = own - partial_sum / max(partial_count, 1.0);
        let partial_squares = subgroup_add(squares + count * away * away);
        if subgroup_lane() == 0 {
            scratch[3 * subgroup_index()] = partial_count;
            scratch[3 * subgroup_index() + 1] = partial_sum;
            scratch[3 * subgroup_index() + 2] = partial_squares;
        }
        barrier();
        let mut all = 0.0;
        for subgroup in 0..SIZE / subgroup_size() {
            all += scratch[3 * subgroup + 1];
        }
        let mean = all / total;
        let mut all_squares = 0.0;
        for subgroup in 0..SIZE / subgroup_size() {
            let part_count = scratch[3 * subgroup];
            let part_away = scratch[3 * subgroup + 1] / max(part_count, 1.0) - mean;
            all_squares += scratch[3 * subgroup + 2] + part_count * part_away * part_away;
        }
        Vec2::new(mean, all_squares)
    } else {
        let mean = workgroup_sum::<SIZE>(sum, scratch) / total;
        let away = own - mean;
        Vec2::new(mean, workgroup_sum::<SIZE>(squares + count * away * away, scratch))
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
