//! Reductions of one axis: x is `[outer, n, inner]`, y is `[outer, inner]`.

use trefoil_dsl::prelude::*;

use crate::workgroup::{workgroup_max, workgroup_sum};

/// y = scale * the sum along rows of `n` elements (inner = 1): one workgroup a row.
#[kernel(workgroup(256))]
pub fn sum_rows(x: &[f32], y: &mut [f32], n: usize, scale: f32) {
    let mut scratch = workgroup_array::<f32>(256);
    let first = group_index() * n;
    let mut sum = 0.0;
    for i in (local_index()..n).step_by(256) {
        sum += x[first + i];
    }
    let total = workgroup_sum::<256>(sum, 0, &mut scratch);
    if local_index() == 0 {
        y[group_index()] = total * scale;
    }
}

/// y = the largest element along rows of `n` elements (inner = 1): one workgroup a row.
#[kernel(workgroup(256))]
pub fn max_rows(x: &[f32], y: &mut [f32], n: usize) {
    let mut scratch = workgroup_array::<f32>(256);
    let first = group_index() * n;
    let mut largest = f32::NEG_INFINITY;
    for i in (local_index()..n).step_by(256) {
        largest = max(largest, x[first + i]);
    }
    let total = workgroup_max::<256>(largest, 0, &mut scratch);
    if local_index() == 0 {
        y[group_index()] = total;
    }
}

/// y = scale * the sum along an axis that is not the last: one invocation an element of y.
#[kernel(workgroup(64))]
pub fn sum_columns(x: &[f32], y: &mut [f32], n: usize, inner: usize, scale: f32) {
    let i = global_index();
    if i < y.len() {
        let first = i / inner * n * inner + i % inner;
        let mut sum = 0.0;
        for j in 0..n {
            sum += x[first + j * inner];
        }
        y[i] = sum * scale;
    }
}

/// y = the largest element along an axis that is not the last: one invocation an element of y.
#[kernel(workgroup(64))]
pub fn max_columns(x: &[f32], y: &mut [f32], n: usize, inner: usize) {
    let i = global_index();
    if i < y.len() {
        let first = i / inner * n * inner + i % inner;
        let mut largest = f32::NEG_INFINITY;
        for j in 0..n {
            largest = max(largest, x[first + j * inner]);
        }
        y[i] = largest;
    }
}
