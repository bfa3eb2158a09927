//! Products of few rows or columns, where latency counts: small tiles, and invocations that share K.
//!
//! A workgroup computes 16 rows by 32 columns of C with four groups of 32 invocations. In a step along K each group multiplies a piece of its own, 16 long; an invocation
//! keeps 4 by 4 elements. While a step is multiplied, the next is on its way to registers. At the end the groups' sums are added up through
//! workgroup memory, so that one dispatch is enough; only if the workgroups are still too few for the device is K cut into parts, whose sums a second dispatch adds up.
//!
//! Rows of a group's pieces are padded by four elements: invocations that write four rows side by side hit different banks.

use trefoil_dsl::prelude::*;

use super::{activate_quad, quad_of, tile_of};
use trefoil_kernels_common::activation::Activation;

/// Rows of a tile.
#[device]
pub const ROWS: usize = 16;
/// Columns of a tile.
#[device]
pub const COLUMNS: usize = 32;
/// Groups that share K: what fits into the workgroup memory that every device has.
#[device]
const GROUPS: usize = 4;
/// How far a group goes along K in a step.
#[device]
const DEPTH: usize = 16;

/// The product in tiles of [`ROWS`] by [`COLUMNS`]. With one part it is finished; with more, part p of batch b goes to rows `(b * parts + p) * m` and following of C,
/// without bias and activation, for [`matmul_sum_parts`].
///
/// `UNBRANCHED`: every round does everything, so that the first multiplies zeros and the last reads past the end, which costs no memory. Most drivers wait for what was read before they enter or leave a branch, and so in each round; CUDA's
/// does not, and is better off without.
#[kernel(workgroup(128), no_robustness, instances(B_ROWS_ARE_N = [false, true]), specialise(UNBRANCHED: bool = false))]
pub fn matmul_narrow<const B_ROWS_ARE_N: bool>(
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
    // For each group: 16 rows of A's piece, k by k, of 16 elements and 4 of padding; then 16 of B's, of 32 and 4.
    let mut pieces = workgroup_array::<f32>(896 * GROUPS);
    let tiles = m.div_ceil(ROWS) * n.div_ceil(COLUMNS);
    let piece = group_index() / tiles;
    let tile = tile_of(group_index() % tiles, m.div_ceil(ROWS), n.div_ceil(COLUMNS));
    let batch = piece / parts;
    let part_length = k.div_ceil(DEPTH * GROUPS * parts) * (DEPTH * GROUPS);
    let k_first = min(k, (piece % parts) * part_length);
    let k_end = min(k, k_first + part_length);
    let steps = (k_end - k_first).div_ceil(DEPTH * GROUPS);

    let group = local_index() / 32;
    let lane = local_index() % 32;
    let local_row = lane / 8;
    let local_column = lane % 8;
    let mut a_next = [Vec4::splat(0.0); 2];
    let mut b_next = [Vec4::splat(0.0); 4];
    let mut sums = [Vec4::splat(0.0); 4];

    for step in 0..steps + 1 {
        // Hand over what was read in the round before.
        if UNBRANCHED || step > 0 {
            for i in unroll(0..2) {
                let at = lane + i * 32;
                let first = group * 896 + at % 4 * 80 + at / 4;
                pieces[first] = a_next[i].x;
                pieces[first + 20] = a_next[i].y;
                pieces[first + 40] = a_next[i].z;
                pieces[first + 60] = a_next[i].w;
            }
            for i in unroll(0..4) {
                let at = lane + i * 32;
                if B_ROWS_ARE_N {
                    let first = group * 896 + 320 + at % 4 * 144 + at / 4;
                    pieces[first] = b_next[i].x;
                    pieces[first + 36] = b_next[i].y;
                    pieces[first + 72] = b_next[i].z;
                    pieces[first + 108] = b_next[i].w;
                } else {
                    pieces.set_vec4(group * 224 + 80 + at / 8 * 9 + at % 8, b_next[i]);
                }
            }
            barrier();
        }
        if UNBRANCHED || step < steps {
            let k_here = k_first + (step * GROUPS + group) * DEPTH;
            for i in unroll(0..2) {
                let at = lane + i * 32;
                let row = tile.x * ROWS + at / 4;
                a_next[i] = quad_of::<f32>(a, batch * a_batch, row, m, k_here / 4 + at % 4, k_end, a_stride);
            }
            for i in unroll(0..4) {
                let at = lane + i * 32;
                if B_ROWS_ARE_N {
                    let row = tile.y * COLUMNS + at / 4;
                    b_next[i] = quad_of::<f32>(b, batch * b_batch, row, n, k_here / 4 + at % 4, k_end, b_stride);
                } else {
                    let quad = tile.y * (COLUMNS / 4) + at % 8;
                    b_next[i] = quad_of::<f32>(b, batch * b_batch, k_here + at / 8, k_end, quad, n, b_stride);
                }
            }
        }
        if UNBRANCHED || step > 0 {
            for inner in unroll(0..DEPTH) {
                let left = pieces.vec4(group * 224 + inner * 5 + local_row);
                let right = pieces.vec4(group * 224 + 80 + inner * 9 + local_column);
                sums[0] = right * left.x + sums[0];
                sums[1] = right * left.y + sums[1];
                sums[2] = right * left.z + sums[2];
                sums[3] = right * left.w + sums[3];
            }
            barrier();
        }
    }

    for r in unroll(0..4) {
        pieces.set_vec4(group * 128 + (local_row * 4 + r) * 8 + local_column, sums[r]);
    }
    barrier();
    // The tile has as many groups of four as there are invocations.
    let row = tile.x * ROWS + local_index() / 8;
    let quad = tile.y * (COLUMNS / 4) + local_index() % 8;
    if row < m && quad * 4 < n {
        let mut sum = Vec4::splat(0.0);
        for other in unroll(0..GROUPS) {
            sum = sum + pieces.vec4(other * 128 + local_index());
        }
        if !bias.is_empty() {
            sum = sum + bias.vec4(quad);
        }
        c.set_vec4((piece * m + row) * (n / 4) + quad, activate_quad(sum, activation));
    }
}

/// C = activation(the sum of `count` parts + bias), for what [`matmul_narrow`] and others left behind; `size` elements a part and batch, rows of `n`.
#[kernel(workgroup(256), instances(T = [f32, f16, bf16]))]
pub fn matmul_sum_parts<T: Float>(
    parts: &[f32],
    bias: &[T],
    c: &mut [T],
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
            sum = sum + bias.vec4(quad % (n / 4)).to_f32();
        }
        c.set_vec4(quad, Vec4::<T>::from_f32(activate_quad(sum, activation)));
    }
}
