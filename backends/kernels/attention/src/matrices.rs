//! Many queries of halves, on matrix units.
//!
//! **Who does what.** A workgroup has 64 rows of a head of keys and goes along the keys, 64 at a time. Four subgroups multiply the rows with the keys, 16 rows each. Scores go through workgroup memory, where two invocations own a row and keep its
//! largest score and its sum of weights; the weights, halves again, are the left side of the product with the values. What was summed before is scaled by how much the largest score has grown: by a matrix that repeats
//! a column of such factors.
//!
//! **What it costs.** Each subgroup reads all keys and values from workgroup memory, which is most of what is read there. Keys and values of the next step are on their way to registers while this one is computed. Lines of
//! workgroup memory are odd multiples of 16 bytes long for matrices, and those of scores such that neither matrices nor rows meet a bank twice.
//!
//! **Limits.** Subgroups of at most 32, and heads of at most `16 * PARTS` elements, a multiple of 8; what is missing is zero.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "the kernel that the others are like has a module of its name, and a link in a macro cannot say which is meant"
)]

use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, power, result, seen, share, sink_of};

/// Rows of a workgroup.
#[device]
pub const ROWS: usize = 64;
/// Keys of a step.
#[device]
pub const KEYS: usize = 64;
/// From one row of scores to the next, in floats, and of weights.
#[device]
const LINE: usize = 72;
/// How many subgroups share the rows.
#[device]
const SUBGROUPS: usize = 4;
/// The largest subgroup of which there are so many.
pub const LARGEST_SUBGROUP: u32 = 32;

/// Weights as `bf16`, those halfway up, which takes half the operations of ties to even. None is negative, and where one is no number, their sum says so, which is not rounded.
#[device]
fn narrow_bf16(weights: Vec4<f32>) -> Vec4<bf16> {
    Vec4::new(upper_half(weights.x), upper_half(weights.y), upper_half(weights.z), upper_half(weights.w))
}

#[device]
fn upper_half(x: f32) -> bf16 {
    bf16::from_bits(((x.to_bits() + 0x8000) >> 16) as u16)
}

/// Makes the kernels of both halves, and the list of them. Weights are narrowed where they are stored: what a function returns as halves is rounded there, by many instructions in SPIR-V, and not by the store.
macro_rules! matrices {
    ($($name:ident $element:ident ($($narrow:tt)+);)*) => {
        $(
            /// As [`super::tiled::attention_tiled`], whose sizes count pieces of 16 bytes here, as slices of 16 bytes hold them; all strides of q, k and v are multiples of 8, and keys are not cut in parts.
            ///
            /// * `PLAIN`: there is neither a cap nor a bias.
            /// * `WHOLE`: every row sees every key, these are a multiple of [`KEYS`], and heads have `16 * PARTS` elements.
            #[kernel(
                workgroup(128),
                targets(spirv, cuda, cpu),
                requires(CooperativeMatrices),
                instances(PARTS = [4, 8]),
                specialise(PLAIN: bool = false; WHOLE: bool = false)
            )]
            pub fn $name<const PARTS: usize>(
                q: &[Vec4<u32>],
                k: &[Vec4<u32>],
                v: &[Vec4<u32>],
                bias: &[$element],
                lengths: &[u32],
                sinks: &[$element],
                out: &mut [$element],
                sizes: [usize; 6],
                q_strides: [usize; 3],
                k_strides: [usize; 3],
                v_strides: [usize; 3],
                out_strides: [usize; 3],
                bias_strides: [usize; 4],
                scale: f32,
                cap: f32,
                offset: i32,
                from_end: bool,
                window: [i32; 2],
            ) {
                // Keys and, after them, values; in lines of one piece more than a head has.
                let mut tile = workgroup_array::<Vec4<u32>>(KEYS * (PARTS * 2 + 1));
                let mut scores = workgroup_array::<f32>(ROWS * LINE);
                let mut weights = workgroup_array::<$element>(ROWS * LINE);
                let mut factors = workgroup_array::<f32>(ROWS);
                let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
                let (pieces, value_pieces) = (sizes[4], sizes[5]);
                let rows = group * queries;
                let blocks = rows.div_ceil(ROWS);
                let first_row = (blocks - 1 - group_index() % blocks) * ROWS;
                let key_head = group_index() / blocks % key_heads;
                let batch = group_index() / (blocks * key_heads);
                // Two invocations of a row are neighbours in a subgroup.
                let i = subgroup_index() * subgroup_size() + subgroup_lane();
                let top = subgroup_index() % SUBGROUPS * 16;
                let line = PARTS * 2 + 1;

                let count = key_count(lengths, batch, keys);
                let position = first_position(offset, from_end, count, queries);
                let last_row = min(first_row + ROWS, rows) - 1;
                let first_seen = seen(position + (first_row / group) as i32, count, window);
                let last_seen = seen(position + (last_row / group) as i32, count, window);
                let (from, to) = (first_seen.x, max(first_seen.y, last_seen.y));
                let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / 8;
                let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / 8;
                let (k_step, v_step) = (k_strides[2] / 8, v_strides[2] / 8);
                // Of a line of pieces an invocation moves one, of every so many-th line.
                let (own_line, own_piece) = (i / (PARTS * 2), i % (PARTS * 2));
                let apart = 64 / PARTS;

                // The rows stay in registers, by way of the tile.
                for p in unroll(0..PARTS) {
                    let row = first_row + own_line + p * apart;
                    let head = key_head * group + row % group;
                    let own = (batch * q_strides[0] + head * q_strides[1] + row / group * q_strides[2]) / 8 + own_piece;
                    tile[(own_line + p * apart) * line + own_piece] = q[select(row < rows && own_piece < pieces, own, q.len())];
                }
                barrier();
                let mut left = [MatrixA::<$element, 16, 16>::fill($element::from_f32(0.0)); PARTS];
                for d in unroll(0..PARTS) {
                    left[d] = MatrixA::load(&tile, top * line + d * 2, line);
                }
                let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); PARTS];
                let (row, half) = (i / 2, i % 2);
                let query = (first_row + row) / group;
                let head = key_head * group + (first_row + row) % group;
                let own_seen = seen(position + query as i32, count, window);
                let bias_first = batch * bias_strides[0] + head * bias_strides[1] + query * bias_strides[2];
                let mut largest = f32::NEG_INFINITY;
                let mut total = 0.0;
                let mut next = [Vec4::<u32>::splat(0); PARTS];
                for p in unroll(0..PARTS) {
                    let key = from + own_line + p * apart;
                    next[p] = k[select(WHOLE || key < to && own_piece < pieces, k_first + key * k_step + own_piece, k.len())];
                }
                barrier();

                for start in (from..to).step_by(KEYS) {
                    for p in unroll(0..PARTS) {
                        tile[(own_line + p * apart) * line + own_piece] = next[p];
                    }
                    barrier();
                    for p in unroll(0..PARTS) {
                        let key = start + own_line + p * apart;
                        next[p] = v[select(WHOLE || key < to && own_piece < value_pieces, v_first + key * v_step + own_piece, v.len())];
                    }
                    for x in unroll(0..KEYS / 16) {
                        let mut score = Accumulator::<f32, 16, 16>::fill(0.0);
                        for d in unroll(0..PARTS) {
                            let key = MatrixB::<$element, 16, 16>::load_columns(&tile, x * 16 * line + d * 2, line);
                            score = multiply_add(left[d], key, score);
                        }
                        score.store(&mut scores, top * LINE + x * 16, LINE);
                    }
                    barrier();
                    for p in unroll(0..PARTS) {
                        tile[(own_line + p * apart) * line + own_piece] = next[p];
                    }
                    for p in unroll(0..PARTS) {
                        let key = start + KEYS + own_line + p * apart;
                        next[p] = k[select(WHOLE || key < to && own_piece < pieces, k_first + key * k_step + own_piece, k.len())];
                    }

                    // Every other quad of a row.
                    let mut own = [Vec4::splat(0.0); KEYS / 8];
                    let unit = if PLAIN { scale * LOG2_E } else { scale };
                    for j in unroll(0..KEYS / 8) {
                        own[j] = scores.vec4(row * (LINE / 4) + j * 2 + half) * unit;
                    }
                    if !PLAIN && cap > 0.0 {
                        for j in unroll(0..KEYS / 8) {
                            for lane in unroll(0..4) {
                                own[j][lane] = capped(own[j][lane], cap);
                            }
                        }
                    }
                    if !PLAIN && !bias.is_empty() {
                        for j in unroll(0..KEYS / 8) {
                            for lane in unroll(0..4) {
                                let key = start + (j * 2 + half) * 4 + lane;
                                let inside = first_row + row < rows && key < to;
                                let added = bias[select(inside, bias_first + key * bias_strides[3], bias.len())];
                                own[j][lane] = biased(own[j][lane], added.to_f32());
                            }
                        }
                    }
                    if !PLAIN {
                        for j in unroll(0..KEYS / 8) {
                            own[j] = own[j] * LOG2_E;
                        }
                    }
                    if !WHOLE && (start < last_seen.x || start + KEYS > first_seen.y) {
                        for j in unroll(0..KEYS / 8) {
                            for lane in unroll(0..4) {
                                let key = start + (j * 2 + half) * 4 + lane;
                                if key < own_seen.x || key >= own_seen.y {
                                    own[j][lane] = f32::NEG_INFINITY;
                                }
                            }
                        }
                    }
                    let mut most = own[0];
                    for j in unroll(1..KEYS / 8) {
                        most = max(most, own[j]);
                    }
                    let of_half = max(max(most.x, most.y), max(most.z, most.w));
                    let now = max(largest, max(of_half, subgroup_shuffle_xor(of_half, 1)));
                    // Where a row has seen nothing yet, all that it has is minus infinity, of which another number still gives weights of 0.
                    let zero = if now == f32::NEG_INFINITY { 0.0 } else { now };
                    let shrink = power(largest - zero);
                    let mut sum = 0.0;
                    for j in unroll(0..KEYS / 8) {
                        let mut weight = Vec4::splat(0.0);
                        for lane in unroll(0..4) {
                            weight[lane] = power(own[j][lane] - zero);
                            sum += weight[lane];
                        }
                        weights.set_vec4(row * (LINE / 4) + j * 2 + half, $($narrow)+(weight));
                    }
                    total = total * shrink + sum;
                    largest = now;
                    if half == 0 {
                        factors[row] = shrink;
                    }
                    barrier();

                    let scaling = Accumulator::<f32, 16, 16>::load_columns(&factors, top, 0);
                    for d in unroll(0..PARTS) {
                        sums[d] = sums[d].zip(scaling, |sum, factor| sum * factor);
                    }
                    for x in unroll(0..KEYS / 16) {
                        let own_weights = MatrixA::<$element, 16, 16>::load(&weights, top * LINE + x * 16, LINE);
                        for d in unroll(0..PARTS) {
                            let value = MatrixB::<$element, 16, 16>::load(&tile, x * 16 * line + d * 2, line);
                            sums[d] = multiply_add(own_weights, value, sums[d]);
                        }
                    }
                    barrier();
                }

                let all = total + subgroup_shuffle_xor(total, 1);
                let part = share(largest / LOG2_E, all, sink_of(sinks, head));
                if half == 0 {
                    factors[row] = part;
                }
                barrier();
                for d in unroll(0..PARTS) {
                    sums[d].store(&mut scores, top * LINE, LINE);
                    barrier();
                    for p in unroll(0..2) {
                        let at = i / 4 + p * 32;
                        let (to_row, quad) = (first_row + at, d * 4 + i % 4);
                        if to_row < rows && quad < value_pieces * 2 {
                            let to_head = key_head * group + to_row % group;
                            let place = batch * out_strides[0] + to_head * out_strides[1] + to_row / group * out_strides[2];
                            out.set_vec4(place / 4 + quad, result(scores.vec4(at * (LINE / 4) + i % 4), factors[at]));
                        }
                    }
                    barrier();
                }
            }
        )*

        /// Every kernel of this file.
        pub fn kernels() -> Vec<&'static trefoil_dsl::artefact::Kernel> {
            [$($name::KERNELS),*].concat()
        }
    };
}

matrices! {
    attention_matrices_f16 f16 (Vec4::<f16>::from_f32);
    attention_matrices_bf16 bf16 (narrow_bf16);
}
