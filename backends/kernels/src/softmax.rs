//! Softmax along rows.
//!
//! One workgroup takes one row. Short rows are held in registers, so that memory is read once and written once; long rows are read three times. The vector kernels need a row length that is a multiple of 4.

use trefoil_dsl::prelude::*;

use crate::workgroup::{row_quad, workgroup_max, workgroup_sum};

/// y = softmax of each row of `columns` elements; at most `1024 * HELD` of them, a multiple of 4.
#[kernel(workgroup(256), instances(HELD = [1, 2, 4, 8]))]
pub fn softmax_held<const HELD: usize>(x: &[f32], y: &mut [f32], columns: usize) {
    let mut scratch = workgroup_array::<f32>(2 * 256);
    let quads = columns / 4;
    let mut held = [Vec4::splat(0.0); HELD];
    for k in unroll(0..HELD) {
        held[k] = row_quad(x, group_index(), local_index() + k * 256, quads);
    }
    let mut largest = f32::NEG_INFINITY;
    for k in unroll(0..HELD) {
        let inside = local_index() + k * 256 < quads;
        let value = select(inside, held[k], Vec4::splat(f32::NEG_INFINITY));
        held[k] = value;
        largest = max(largest, max(max(value.x, value.y), max(value.z, value.w)));
    }
    largest = workgroup_max::<256>(largest, 0, &mut scratch);
    let mut sum = 0.0;
    for k in unroll(0..HELD) {
        let value = exp(held[k] - Vec4::splat(largest));
        held[k] = value;
        sum += (value.x + value.y) + (value.z + value.w);
    }
    let scale = 1.0 / workgroup_sum::<256>(sum, 1, &mut scratch);
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 256;
        if quad < quads {
            y.set_vec4(group_index() * quads + quad, held[k] * scale);
        }
    }
}

/// y = softmax of each row of `columns` elements, of any number.
#[kernel(workgroup(256))]
pub fn softmax_any(x: &[f32], y: &mut [f32], columns: usize) {
    let mut scratch = workgroup_array::<f32>(2 * 256);
    let first = group_index() * columns;
    let mut largest = f32::NEG_INFINITY;
    for column in (local_index()..columns).step_by(256) {
        largest = max(largest, x[first + column]);
    }
    largest = workgroup_max::<256>(largest, 0, &mut scratch);
    let mut sum = 0.0;
    for column in (local_index()..columns).step_by(256) {
        sum += exp(x[first + column] - largest);
    }
    let scale = 1.0 / workgroup_sum::<256>(sum, 1, &mut scratch);
    for column in (local_index()..columns).step_by(256) {
        y[first + column] = exp(x[first + column] - largest) * scale;
    }
}
