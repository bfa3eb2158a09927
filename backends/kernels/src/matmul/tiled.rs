//! Square tiles, for products that fill a device with them.
//!
//! A workgroup of 16 by 16 invocations computes `EDGE` by `EDGE` elements of C. It walks along K in steps; the pieces of A and B for a step lie in workgroup memory, k by k, and two steps
//! fit at once: while one is multiplied, the next is read from the buffers into registers and then written to the other half, so that there is one barrier a step.
//! An invocation keeps `(EDGE / 16)^2` elements of C in registers, as vectors of four along N.
//!
//! A tile of edge E takes steps of 1024 / E along K: an invocation moves one group of four elements of each operand, and two steps fill 16 KiB of workgroup memory for every E, as
//! much as every device has. The groups of four that an invocation of a tile of 128 owns along an axis lie half a tile apart, so that neighbouring
//! invocations read neighbouring words.

use trefoil_dsl::prelude::*;

use super::{activate_quad, row_quad, tile_of};
use crate::activation::Activation;

/// The product in tiles of `EDGE` by `EDGE`, 64 or 128.
#[kernel(workgroup(256), instances(EDGE = [64, 128], B_ROWS_ARE_N = [false, true]))]
pub fn matmul_tiled<const EDGE: usize, const B_ROWS_ARE_N: bool>(
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    c: &mut [f32],
    m: usize,
    n: usize,
    k: usize,
    a_stride: usize,
    b_stride: usize,
    a_batch: usize,
    b_batch: usize,
    activation: Activation,
) {
    let mut a_steps = workgroup_array::<f32>(2048);
    let mut b_steps = workgroup_array::<f32>(2048);
    let tiles = m.div_ceil(EDGE) * n.div_ceil(EDGE);
    let batch = group_index() / tiles;
    let tile = tile_of(group_index() % tiles, m.div_ceil(EDGE), n.div_ceil(EDGE));
    let local = local_index();
    let local_row = local / 16;
    let local_column = local % 16;
    // What an invocation moves in a step: a group of four along K of a row, or along N of a row of B.
    let row = local / (256 / EDGE);
    let quad = local % (256 / EDGE);
    let mut a_next = Vec4::splat(0.0);
    let mut b_next = Vec4::splat(0.0);
    // Of a tile of 64 the first four.
    let mut sums = [Vec4::splat(0.0); 16];
    let steps = k.div_ceil(1024 / EDGE);

    for step in 0..steps + 1 {
        let k_here = step * (1024 / EDGE);
        // Read this step's pieces; the last round only multiplies.
        if step < steps {
            a_next = row_quad(a, batch * a_batch, tile.x * EDGE + row, m, k_here / 4 + quad, k, a_stride);
            if B_ROWS_ARE_N {
                b_next = row_quad(b, batch * b_batch, tile.y * EDGE + row, n, k_here / 4 + quad, k, b_stride);
            } else {
                let b_quad = tile.y * (EDGE / 4) + local % (EDGE / 4);
                b_next = row_quad(b, batch * b_batch, k_here + local / (EDGE / 4), k, b_quad, n, b_stride);
            }
        }
        // Multiply the step before.
        if step > 0 {
            let half = ((step + 1) % 2) * 256;
            for inner in unroll(0..1024 / EDGE) {
                let first = half + inner * (EDGE / 4);
                for column_half in unroll(0..EDGE / 64) {
                    let right = b_steps.vec4(first + local_column + column_half * 16);
                    for row_half in unroll(0..EDGE / 64) {
                        let left = a_steps.vec4(first + local_row + row_half * 16);
                        let at = column_half * 8 + row_half * 4;
                        sums[at] = right * left.x + sums[at];
                        sums[at + 1] = right * left.y + sums[at + 1];
                        sums[at + 2] = right * left.z + sums[at + 2];
                        sums[at + 3] = right * left.w + sums[at + 3];
                    }
                }
            }
        }
        // Hand this step's pieces to the workgroup, in the half that was multiplied a round ago.
        if step < steps {
            let half = (step % 2) * 1024;
            let at = half + quad * 4 * EDGE + row;
            a_steps[at] = a_next.x;
            a_steps[at + EDGE] = a_next.y;
            a_steps[at + 2 * EDGE] = a_next.z;
            a_steps[at + 3 * EDGE] = a_next.w;
            if B_ROWS_ARE_N {
                b_steps[at] = b_next.x;
                b_steps[at + EDGE] = b_next.y;
                b_steps[at + 2 * EDGE] = b_next.z;
                b_steps[at + 3 * EDGE] = b_next.w;
            } else {
                b_steps.set_vec4(half / 4 + local, b_next);
            }
        }
        barrier();
    }

    for column_half in unroll(0..EDGE / 64) {
        let c_quad = tile.y * (EDGE / 4) + local_column + column_half * 16;
        if c_quad * 4 < n {
            let mut offset = Vec4::splat(0.0);
            if !bias.is_empty() {
                offset = bias.vec4(c_quad);
            }
            for row_half in unroll(0..EDGE / 64) {
                for r in unroll(0..4) {
                    let c_row = tile.x * EDGE + (local_row + row_half * 16) * 4 + r;
                    if c_row < m {
                        let sum = sums[column_half * 8 + row_half * 4 + r] + offset;
                        c.set_vec4((batch * m + c_row) * (n / 4) + c_quad, activate_quad(sum, activation));
                    }
                }
            }
        }
    }
}
