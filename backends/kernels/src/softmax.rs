//! Softmax along rows.
//!
//! One workgroup takes one row. Short rows are held in registers, so that memory is read once and written once; long rows are read twice. Each
//! invocation takes exponentials relative to the largest element of its own, and the workgroup settles on one reference and one sum together: one
//! barrier where subgroups are there. The vector kernels need a row length that is a multiple of 4.

use trefoil_dsl::prelude::*;

use crate::workgroup::workgroup_exponentials;

/// y = softmax of each row of `columns` elements; at most `512 * HELD` of them, a multiple of 4.
#[kernel(workgroup(128), instances(HELD = [1, 2, 4, 8, 16]))]
pub fn softmax_held<const HELD: usize>(x: &[f32], y: &mut [f32], columns: usize) {
    let mut scratch = workgroup_array::<f32>(2 * 128);
    let quads = columns / 4;
    let first = group_index() * quads;
    let mut held = [Vec4::splat(f32::NEG_INFINITY); HELD];
    // The smallest finite number, so that an invocation without elements adds zeros and no NaN.
    let mut own = f32::MIN;
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 128;
        if quad < quads {
            let value = x.vec4(first + quad);
            held[k] = value;
            own = max(own, max(max(value.x, value.y), max(value.z, value.w)));
        }
    }
    let mut sum = 0.0;
    for k in unroll(0..HELD) {
        let value = exp(held[k] - Vec4::splat(own));
        held[k] = value;
        sum += (value.x + value.y) + (value.z + value.w);
    }
    let scale = workgroup_exponentials::<128>(own, sum, &mut scratch);
    for k in unroll(0..HELD) {
        let quad = local_index() + k * 128;
        if quad < quads {
            y.set_vec4(first + quad, held[k] * scale);
        }
    }
}

/// y = softmax of each row of `columns` elements, of any number.
#[kernel(workgroup(256))]
pub fn softmax_any(x: &[f32], y: &mut [f32], columns: usize) {
    let mut scratch = workgroup_array::<f32>(2 * 256);
    let first = group_index() * columns;
    // The smallest finite number, so that an invocation without elements adds zeros and no NaN.
    let mut own = f32::MIN;
    let mut sum = 0.0;
    for column in (local_index()..columns).step_by(256) {
        let value = x[first + column];
        let larger = max(own, value);
        sum = sum * exp(own - larger) + exp(value - larger);
        own = larger;
    }
    let scale = workgroup_exponentials::<256>(own, sum, &mut scratch);
    for column in (local_index()..columns).step_by(256) {
        y[first + column] = exp(x[first + column] - own) * scale;
    }
}
