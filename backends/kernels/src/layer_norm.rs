//! Layer normalisation along rows, with an optional residual that is added first.
//!
//! One workgroup takes one row. Each invocation computes mean and squares of its own elements, one after the other from values held in registers (or read again), and
//! the workgroup puts them together, so that nothing cancels and one barrier is enough where subgroups are there. An empty `residual`, `gamma` or `beta`
//! stands for none.

use trefoil_dsl::prelude::*;

use crate::workgroup::workgroup_moments;

/// y = (v - mean(v)) / sqrt(variance(v) + epsilon) * gamma + beta for each row v = x + residual of `columns` elements; at most `512 * HELD` of
/// them, a multiple of 4.
#[kernel(workgroup(128), instances(HELD = [1, 2, 4, 8, 16]))]
pub fn layer_norm_held<const HELD: usize>(
    x: &[f32],
    residual: &[f32],
    gamma: &[f32],
    beta: &[f32],
    y: &mut [f32],
    columns: usize,
    epsilon: f32,
) {
    let mut scratch = workgroup_array::<f32>(3 * 128);
    let quads = columns / 4;
    let first = group_index() * quads;
    let mut held = [Vec4::splat(0.0); HELD];
    let mut sum = 0.0;
    let mut count = 0.0;
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 128;
        if quad < quads {
            let mut value = x.vec4(first + quad);
            if !residual.is_empty() {
                value = value + residual.vec4(first + quad);
            }
            held[k] = value;
            sum += (value.x + value.y) + (value.z + value.w);
            count += 4.0;
        }
    }
    let own = sum / max(count, 1.0);
    let mut squares = 0.0;
    for k in unroll(0..HELD) {
        if local_index() + k * 128 < quads {
            let centred = held[k] - Vec4::splat(own);
            squares += centred.dot(centred);
        }
    }
    let moments = workgroup_moments::<128>(count, sum, squares, columns as f32, &mut scratch);
    let mean = moments.x;
    let factor = inverse_sqrt(moments.y / (columns as f32) + epsilon);
    // What is read is read before anything is written, so that no read waits for a write.
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 128;
        if quad < quads {
            let mut value = (held[k] - Vec4::splat(mean)) * factor;
            if !gamma.is_empty() {
                value = value * gamma.vec4(quad);
            }
            if !beta.is_empty() {
                value = value + beta.vec4(quad);
            }
            held[k] = value;
        }
    }
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 128;
        if quad < quads {
            y.set_vec4(first + quad, held[k]);
        }
    }
}

/// As [`layer_norm_held`], for any number of columns.
#[kernel(workgroup(256))]
pub fn layer_norm_any(
    x: &[f32],
    residual: &[f32],
    gamma: &[f32],
    beta: &[f32],
    y: &mut [f32],
    columns: usize,
    epsilon: f32,
) {
    let mut scratch = workgroup_array::<f32>(3 * 256);
    let first = group_index() * columns;
    let mut sum = 0.0;
    let mut count = 0.0;
    for column in (local_index()..columns).step_by(256) {
        let mut value = x[first + column];
        if !residual.is_empty() {
            value += residual[first + column];
        }
        sum += value;
        count += 1.0;
    }
    let own = sum / max(count, 1.0);
    let mut squares = 0.0;
    for column in (local_index()..columns).step_by(256) {
        let mut value = x[first + column];
        if !residual.is_empty() {
            value += residual[first + column];
        }
        squares += (value - own) * (value - own);
    }
    let moments = workgroup_moments::<256>(count, sum, squares, columns as f32, &mut scratch);
    let mean = moments.x;
    let factor = inverse_sqrt(moments.y / (columns as f32) + epsilon);
    for column in (local_index()..columns).step_by(256) {
        let mut value = x[first + column];
        if !residual.is_empty() {
            value += residual[first + column];
        }
        value = (value - mean) * factor;
        if !gamma.is_empty() {
            value *= gamma[column];
        }
        if !beta.is_empty() {
            value += beta[column];
        }
        y[first + column] = value;
    }
}
