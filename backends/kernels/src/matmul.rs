//! Matrix products in f32.
//!
//! C = activation(A B + bias), batch by batch. A workgroup computes a square tile of C. It walks along K in steps; the pieces of A and B for a step lie in workgroup
//! memory, k by k, and two steps fit at once: while one is multiplied, the next is read from the buffers into registers and then written to the other half, so
//! that there is one barrier a step. An invocation keeps `PER * PER` elements of C in registers, as vectors of four along N.
//!
//! A tile of edge E takes steps of 1024 / E along K, which fills 16 KiB of workgroup memory for every E: as much as every device has. The two 4-element groups that an
//! invocation of the large tile owns along an axis lie half a tile apart, so that neighbouring invocations read neighbouring words.
//!
//! The vector kernels want K contiguous in A (element strides 1), K or N contiguous in B, extents and strides that are multiples of 4. The strided kernel takes
//! everything else.

#![expect(clippy::too_many_arguments, reason = "a tile is told where it lies in three matrices")]

use trefoil_dsl::prelude::*;

use crate::activation::{Activation, activate};

/// Four elements of a row of a matrix whose rows are `stride` apart and `columns` long, from group `quad` on; zero outside.
#[device]
fn row_quad(
    matrix: &[f32],
    first: usize,
    row: usize,
    rows: usize,
    quad: usize,
    columns: usize,
    stride: usize,
) -> Vec4<f32> {
    let mut value = Vec4::splat(0.0);
    if row < rows && quad * 4 < columns {
        value = matrix.vec4((first + row * stride) / 4 + quad);
    }
    value
}

/// One tile of `EDGE` by `EDGE` elements of C, computed by `(EDGE / PER)^2` invocations.
///
/// `k_first` and `k_end` bound the part of K that is summed, both multiples of 4.
#[device]
fn tile_product<const EDGE: usize, const PER: usize, const B_ROWS_ARE_N: bool>(
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    c: &mut [f32],
    a_steps: &mut [f32],
    b_steps: &mut [f32],
    m: usize,
    n: usize,
    k_first: usize,
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
    let mut sums = [[Vec4::splat(0.0); PER]; 2];
    let steps = (k_end - k_first).div_ceil(1024 / EDGE);

    for step in 0..steps + 1 {
        let k = k_first + step * (1024 / EDGE);
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
                        sums[column_half][row_half * 4] = right * left.x + sums[column_half][row_half * 4];
                        sums[column_half][row_half * 4 + 1] = right * left.y + sums[column_half][row_half * 4 + 1];
                        sums[column_half][row_half * 4 + 2] = right * left.z + sums[column_half][row_half * 4 + 2];
                        sums[column_half][row_half * 4 + 3] = right * left.w + sums[column_half][row_half * 4 + 3];
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
                        let sum = sums[column_half][row_half * 4 + r] + offset;
                        let value = Vec4::new(
                            activate(sum.x, activation),
                            activate(sum.y, activation),
                            activate(sum.z, activation),
                            activate(sum.w, activation),
                        );
                        c.set_vec4((c_first + row * n) / 4 + quad, value);
                    }
                }
            }
        }
    }
}

/// Which tile of which batch a workgroup computes: tiles of a band of 8 tile rows follow each other column by column, so that what they read is still in cache.
#[device]
fn tile_of(index: usize, row_tiles: usize, column_tiles: usize) -> Vec2<usize> {
    let band = index / (8 * column_tiles);
    let height = min(8, row_tiles - band * 8);
    let within = index - band * 8 * column_tiles;
    Vec2::new(band * 8 + within % height, within / height)
}

/// The large tile: 128 by 128, for products that fill a device with it.
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
    let row_tiles = m.div_ceil(128);
    let column_tiles = n.div_ceil(128);
    let batch = group_index() / (row_tiles * column_tiles);
    let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
    tile_product::<128, 8, B_ROWS_ARE_N>(
        a,
        b,
        bias,
        c,
        &mut a_steps,
        &mut b_steps,
        m,
        n,
        0,
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

/// The middle tile: 64 by 64.
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
    let row_tiles = m.div_ceil(64);
    let column_tiles = n.div_ceil(64);
    let batch = group_index() / (row_tiles * column_tiles);
    let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
    tile_product::<64, 4, B_ROWS_ARE_N>(
        a,
        b,
        bias,
        c,
        &mut a_steps,
        &mut b_steps,
        m,
        n,
        0,
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

/// The small tile: 32 by 32, and K in `parts` parts that workgroups sum side by side. With one part it finishes the product; with more, part p of batch b goes to
/// rows `(b * parts + p) * m` and following of C, without bias and activation, for [`matmul_sum_parts`].
#[kernel(workgroup(64), instances(B_ROWS_ARE_N = [false, true]))]
pub fn matmul_small<const B_ROWS_ARE_N: bool>(
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
    parts: usize,
    activation: Activation,
) {
    let mut a_steps = workgroup_array::<f32>(2048);
    let mut b_steps = workgroup_array::<f32>(2048);
    let row_tiles = m.div_ceil(32);
    let column_tiles = n.div_ceil(32);
    let piece = group_index() / (row_tiles * column_tiles);
    let tile = tile_of(group_index() % (row_tiles * column_tiles), row_tiles, column_tiles);
    let batch = piece / parts;
    // Parts end at multiples of 32, the depth of a step.
    let part_length = k.div_ceil(32 * parts) * 32;
    let k_first = min(k, (piece % parts) * part_length);
    let k_end = min(k, k_first + part_length);
    tile_product::<32, 4, B_ROWS_ARE_N>(
        a,
        b,
        bias,
        c,
        &mut a_steps,
        &mut b_steps,
        m,
        n,
        k_first,
        k_end,
        batch * a_batch,
        batch * b_batch,
        piece * m * n,
        a_stride,
        b_stride,
        tile.x,
        tile.y,
        activation,
    );
}

/// C = activation(the sum of `count` parts + bias), for what [`matmul_small`] left behind; `size` elements a part and batch, rows of `n`.
#[kernel(workgroup(256))]
pub fn matmul_sum_parts(
    parts: &[f32],
    bias: &[f32],
    c: &mut [f32],
    size: usize,
    n: usize,
    count: usize,
    activation: Activation,
) {
    let quad = global_index();
    if quad * 4 + 3 < c.len() {
        let batch = quad / (size / 4);
        let within = quad % (size / 4);
        let mut sum = Vec4::splat(0.0);
        for part in 0..count {
            sum = sum + parts.vec4((batch * count + part) * (size / 4) + within);
        }
        if !bias.is_empty() {
            sum = sum + bias.vec4(quad % (n / 4));
        }
        c.set_vec4(
            quad,
            Vec4::new(
                activate(sum.x, activation),
                activate(sum.y, activation),
                activate(sum.z, activation),
                activate(sum.w, activation),
            ),
        );
    }
}

/// Any strides and any extents: tiles of 16 by 16, one element an invocation.
#[kernel(workgroup(256))]
pub fn matmul_strided(
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    c: &mut [f32],
    m: usize,
    n: usize,
    k: usize,
    a_strides: [usize; 2],
    b_strides: [usize; 2],
    a_batch: usize,
    b_batch: usize,
    activation: Activation,
) {
    let mut a_tile = workgroup_array::<f32>(256);
    let mut b_tile = workgroup_array::<f32>(256);
    let column_tiles = n.div_ceil(16);
    let row_tiles = m.div_ceil(16);
    let batch = group_index() / (row_tiles * column_tiles);
    let tile = group_index() % (row_tiles * column_tiles);
    let local_row = local_index() / 16;
    let local_column = local_index() % 16;
    let row = tile / column_tiles * 16 + local_row;
    let column = tile % column_tiles * 16 + local_column;
    let mut sum = 0.0;
    for step in 0..k.div_ceil(16) {
        let a_column = step * 16 + local_column;
        let b_row = step * 16 + local_row;
        let mut left = 0.0;
        if row < m && a_column < k {
            left = a[batch * a_batch + row * a_strides[0] + a_column * a_strides[1]];
        }
        let mut right = 0.0;
        if b_row < k && column < n {
            right = b[batch * b_batch + b_row * b_strides[0] + column * b_strides[1]];
        }
        a_tile[local_index()] = left;
        b_tile[local_index()] = right;
        barrier();
        for inner in unroll(0..16) {
            sum = a_tile[local_row * 16 + inner] * b_tile[inner * 16 + local_column] + sum;
        }
        barrier();
    }
    if row < m && column < n {
        if !bias.is_empty() {
            sum += bias[column];
        }
        c[(batch * m + row) * n + column] = activate(sum, activation);
    }
}
