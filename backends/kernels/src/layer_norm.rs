//! Layer normalisation along rows, with an optional residual that is added first.
//!
//! One workgroup takes one row. Mean and variance are computed one after the other from values held in registers (or read again), so that nothing
//! cancels. An empty `residual`, `gamma` or `beta` stands for none.

use trefoil_dsl::prelude::*;

use crate::workgroup::{row_quad, workgroup_sum};

/// y = (v - mean(v)) / sqrt(variance(v) + epsilon) * gamma + beta for each row v = x + residual (or x) of `columns` elements; at most
/// `1024 * HELD` of them, a multiple of 4.
#[kernel(workgroup(256), instances(HELD = [1, 2, 4, 8], RESIDUAL = [false, true]))]
pub fn layer_norm_held<const HELD: usize, const RESIDUAL: bool>(
    x: &[f32],
    residual: &[f32],
    gamma: &[f32],
    beta: &[f32],
    y: &mut [f32],
    columns: usize,
    epsilon: f32,
) {
    let mut scratch = workgroup_array::<f32>(2 * 256);
    let quads = columns / 4;
    let scale = 1.0 / (columns as f32);
    let mut held = [Vec4::splat(0.0); HELD];
    for k in unroll(0..HELD) {
        held[k] = row_quad(x, group_index(), local_index() + k * 256, quads);
    }
    if RESIDUAL {
        for k in unroll(0..HELD) {
            held[k] = held[k] + row_quad(residual, group_index(), local_index() + k * 256, quads);
        }
    }
    let mut sum = 0.0;
    for k in unroll(0..HELD) {
        sum += (held[k].x + held[k].y) + (held[k].z + held[k].w);
    }
    let mean = workgroup_sum::<256>(sum, 0, &mut scratch) * scale;
    let mut squares = 0.0;
    for k in unroll(0..HELD) {
        let centred = held[k] - Vec4::splat(mean);
        held[k] = centred;
        squares += select(local_index() + k * 256 < quads, centred.dot(centred), 0.0);
    }
    let variance = workgroup_sum::<256>(squares, 1, &mut scratch) * scale;
    let factor = inverse_sqrt(variance + epsilon);
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 256;
        let stretch = select(gamma.is_empty(), Vec4::splat(1.0), gamma.vec4(quad));
        let value = held[k] * factor * stretch + beta.vec4(quad);
        if quad < quads {
            y.set_vec4(group_index() * quads + quad, value);
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
    let mut scratch = workgroup_array::<f32>(2 * 256);
    let first = group_index() * columns;
    let mut sum = 0.0;
    for column in (local_index()..columns).step_by(256) {
        let mut value = x[first + column];
        if !residual.is_empty() {
            value += residual[first + column];
        }
        sum += value;
    }
    let scale = 1.0 / (columns as f32);
    let mean = workgroup_sum::<256>(sum, 0, &mut scratch) * scale;
    let mut squares = 0.0;
    for column in (local_index()..columns).step_by(256) {
        let mut value = x[first + column];
        if !residual.is_empty() {
            value += residual[first + column];
        }
        squares += (value - mean) * (value - mean);
    }
    let variance = workgroup_sum::<256>(squares, 1, &mut scratch) * scale;
    let factor = inverse_sqrt(variance + epsilon);
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
