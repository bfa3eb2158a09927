//! Square tiles, for products that fill a device with them.
//!
//! A workgroup walks along K in steps; the pieces of A and B for a step lie in workgroup memory, k by k, and two steps fit at once: while one is multiplied, the
//! next is read from the buffers into registers and then written to the other half, so that there is one barrier a step. An invocation keeps
//! `PER * PER` elements of C in registers, as `SUMS` vectors of four along N.
//!
//! A tile of edge E takes steps of 1024 / E along K, which fills 16 KiB of workgroup memory for every E: as much as every device has. The 4-element groups that an
//! invocation of the large tile owns along an axis lie half a tile apart, so that neighbouring invocations read neighbouring words.

#![expect(clippy::too_many_arguments, reason = "a tile is told where it lies in three matrices")]

use trefoil_dsl::prelude::*;

use super::{activate_quad, row_quad, tile_of};
use crate::activation::Activation;

/// One tile of `EDGE` by `EDGE` elements of C, computed by `(EDGE / PER)^2` invocations.
#[device]
fn tile_product<const EDGE: usize, const PER: usize, const SUMS: usize, const B_ROWS_ARE_N: bool>(
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    c: &mut [f32],
    a_steps: &mut [f32],
    b_steps: &mut [f32],
    m: usize,
    n: usize,
    k_end: usize,
    a_first: usize,
    b_first: usize,
    c_first: usize,
    a_stride: usize,
    b_stride: usize,
    row_tile: usize,
    column_tile: usize,
    activation: Activation,
) {
    let local = local_index();
    let local_row = local / (EDGE / PER);
    let local_column = local % (EDGE / PER);
    // Groups of four that an invocation moves for each operand and step: 1024 elements among all invocations.
    let mut a_next = [Vec4::splat(0.0); 4];
    let mut b_next = [Vec4::splat(0.0); 4];
    let mut sums = [Vec4::splat(0.0); SUMS];
    let steps = k_end.div_ceil(1024 / EDGE);

    for step in 0..steps + 1 {
        let k = step * (1024 / EDGE);
        // Read this step's pieces; the last round only multiplies.
        if step < steps {
            for move_index in unroll(0..256 / (EDGE / PER) / (EDGE / PER)) {
                let at = local + move_index * ((EDGE / PER) * (EDGE / PER));
                let row = at / ((1024 / EDGE) / 4);
                let quad = at % ((1024 / EDGE) / 4);
                a_next[move_index] = row_quad(a, a_first, row_tile * EDGE + row, m, k / 4 + quad, k_end, a_stride);
                if B_ROWS_ARE_N {
                    b_next[move_index] =
                        row_quad(b, b_first, column_tile * EDGE + row, n, k / 4 + quad, k_end, b_stride);
                } else {
                    let b_row = at / (EDGE / 4);
                    let b_quad = at % (EDGE / 4);
                    b_next[move_index] =
                        row_quad(b, b_first, k + b_row, k_end, column_tile * (EDGE / 4) + b_quad, n, b_stride);
                }
            }
        }
        // Multiply the step before.
        if step > 0 {
            let half = ((step + 1) % 2) * 256;
            for inner in unroll(0..1024 / EDGE) {
                let a_row = half + inner * (EDGE / 4);
                let b_row = half + inner * (EDGE / 4);
                for column_half in unroll(0..PER / 4) {
                    let right = b_steps.vec4(b_row + local_column + column_half * (EDGE / PER));
                    for row_half in unroll(0..PER / 4) {
                        let left = a_steps.vec4(a_row + local_row + row_half * (EDGE / PER));
                        sums[column_half * PER + row_half * 4] =
                            right * left.x + sums[column_half * PER + row_half * 4];
                        sums[column_half * PER + row_half * 4 + 1] =
                            right * left.y + sums[column_half * PER + row_half * 4 + 1];
                        sums[column_half * PER + row_half * 4 + 2] =
                            right * left.z + sums[column_half * PER + row_half * 4 + 2];
                        sums[column_half * PER + row_half * 4 + 3] =
                            right * left.w + sums[column_half * PER + row_half * 4 + 3];
                    }
                }
            }
        }
        // Hand this step's pieces to the workgroup, in the half that was multiplied a round ago.
        if step < steps {
            let half = (step % 2) * 1024;
            for move_index in unroll(0..256 / (EDGE / PER) / (EDGE / PER)) {
                let at = local + move_index * ((EDGE / PER) * (EDGE / PER));
                let row = at / ((1024 / EDGE) / 4);
                let quad = at % ((1024 / EDGE) / 4);
                let a_at = half + quad * 4 * EDGE + row;
                a_steps[a_at] = a_next[move_index].x;
                a_steps[a_at + EDGE] = a_next[move_index].y;
                a_steps[a_at + 2 * EDGE] = a_next[move_index].z;
                a_steps[a_at + 3 * EDGE] = a_next[move_index].w;
                if B_ROWS_ARE_N {
                    b_steps[a_at] = b_next[move_index].x;
                    b_steps[a_at + EDGE] = b_next[move_index].y;
                    b_steps[a_at + 2 * EDGE] = b_next[move_index].z;
                    b_steps[a_at + 3 * EDGE] = b_next[move_index].w;
                } else {
                    b_steps.set_vec4(half / 4 + at, b_next[move_index]);
                }
            }
        }
        barrier();
    }

    for column_half in unroll(0..PER / 4) {
        let quad = column_tile * (EDGE / 4) + local_column + column_half * (EDGE / PER);
        if quad * 4 < n {
            let mut offset = Vec4::splat(0.0);
            if !bias.is_empty() {
                offset = bias.vec4(quad);
            }
            for row_half in unroll(0..PER / 4) {
                for r in unroll(0..4) {
                    let row = row_tile * EDGE + (local_row + row_half * (EDGE / PER)) * 4 + r;
                    if row < m {
                        let sum = sums[column_half * PER + row_half * 4 + r] + offset;
                        c.set_vec4((c_first + row * n) / 4 + quad, activate_quad(sum, activation));
                    }
                }
            }
        }
    }
}

/// Tiles of 128 by 128.
#[kernel(workgroup(256), instances(B_ROWS_ARE_N = [false, true]))]
pub fn matmul_large<const B_ROWS_ARE_N: bool>(
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
    let tiles = m.div_ceil(128) * n.div_ceil(128);
    let batch = group_index() / tiles;
    let tile = tile_of(group_index() % tiles, m.div_ceil(128), n.div_ceil(128));
    tile_product::<128, 8, 16, B_ROWS_ARE_N>(
        a,
        b,
        bias,
        c,
        &mut a_steps,
        &mut b_steps,
        m,
        n,
        k,
        batch * a_batch,
        batch * b_batch,
        batch * m * n,
        a_stride,
        b_stride,
        tile.x,
        tile.y,
        activation,
    );
}

/// Tiles of 64 by 64.
#[kernel(workgroup(256), instances(B_ROWS_ARE_N = [false, true]))]
pub fn matmul_middle<const B_ROWS_ARE_N: bool>(
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
    let tiles = m.div_ceil(64) * n.div_ceil(64);
    let batch = group_index() / tiles;
    let tile = tile_of(group_index() % tiles, m.div_ceil(64), n.div_ceil(64));
    tile_product::<64, 4, 4, B_ROWS_ARE_N>(
        a,
        b,
        bias,
        c,
        &mut a_steps,
        &mut b_steps,
        m,
        n,
        k,
        batch * a_batch,
        batch * b_batch,
        batch * m * n,
        a_stride,
        b_stride,
        tile.x,
        tile.y,
        activation,
    );
}
