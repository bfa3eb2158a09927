//! Many queries of `f32` on devices with much workgroup memory, copies to which go on by themselves.
//!
//! **Who does what.** As in [`super::tiled`], but a workgroup has 128 rows, whose queries stay in workgroup memory, and so do all weights of a tile of 128 keys. 16 invocations share a row and each has eight of them, an
//! eighth of a tile's scores of these and of the result `WIDE` times four columns. Keys come 32 elements of a head at a time, values 32 keys at a time.
//!
//! **Stages.** What comes has two places in turn. A step waits for its own copies, and behind its one barrier, when nobody reads the other place any more, begins those of the next step, be they of keys, of values or of the next tile.
//!
//! **What it costs.** An invocation reads 16 times 16 bytes of workgroup memory for 256 multiplications, of either product, and a step has 2048 of them between two barriers. Lines of queries and keys are odd multiples of 16 bytes
//! long, so that eight invocations that read 16 bytes of eight lines hit all banks once; those of weights are odd multiples of 64, so that the two rows of a subgroup are written to different banks. A step's reads lie numbers apart that the compiler knows, so that one address serves them all.
//!
//! **Limits.** 174 KiB of workgroup memory, which CUDA has from compute capability 9 on; a kernel may ask for so much where devices have matrix units, of which it uses nothing else. Heads of at most `64 * WIDE` elements, a multiple of 4. Keys are not cut in parts.

use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, power, result, seen, share, sink_of};

/// Rows of a workgroup.
#[device]
pub const ROWS: usize = 128;
/// Keys of a tile.
#[device]
pub const KEYS: usize = 128;
/// Invocations that have different rows.
#[device]
const APART: usize = 16;
/// Elements of keys, and keys of values, in a step; and how many quads these are.
#[device]
const DEPTH: usize = 32;
#[device]
const QUADS: usize = 8;
/// From a key to the next, in quads.
#[device]
const KEY_LINE: usize = 9;
/// From one place of what comes to the other.
#[device]
const PLACE: usize = KEYS * KEY_LINE;
/// From a row of weights to the next, in quads.
#[device]
const WEIGHT_LINE: usize = 36;

/// As [`super::tiled::attention_tiled`], of `f32` alone, whose slices are of quads here and whose sizes have no rows of all parts.
///
/// * `PLAIN`: there is neither a cap nor a bias.
/// * `WHOLE`: every row sees every key, these are a multiple of [`KEYS`], and heads have `64 * WIDE` elements.
#[kernel(
    workgroup(256),
    targets(cuda),
    requires(CooperativeMatrices),
    instances(WIDE = [1, 2]),
    specialise(PLAIN: bool = false; WHOLE: bool = false)
)]
pub fn attention_staged<const WIDE: usize>(
    q: &[Vec4<f32>],
    k: &[Vec4<f32>],
    v: &[Vec4<f32>],
    bias: &[f32],
    lengths: &[u32],
    sinks: &[f32],
    out: &mut [f32],
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
    let mut own_queries = workgroup_array::<Vec4<f32>>(ROWS * (16 * WIDE + 1));
    let mut weights = workgroup_array::<f32>(ROWS * WEIGHT_LINE * 4);
    // Keys and values.
    let mut places = workgroup_array::<Vec4<f32>>(2 * PLACE);
    let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    let (quads, value_quads) = (sizes[4], sizes[5]);
    let query_line = 16 * WIDE + 1;
    let rows = group * queries;
    let blocks = rows.div_ceil(ROWS);
    // Later queries may see more keys, so that they come first.
    let first_row = (blocks - 1 - group_index() % blocks) * ROWS;
    let key_head = group_index() / blocks % key_heads;
    let batch = group_index() / (blocks * key_heads);
    // Those that share a row are neighbours in a subgroup, which CUDA makes of 32 invocations in a row.
    let i = local_index();
    let (tx, ty) = (i % 16, i / 16);

    let count = key_count(lengths, batch, keys);
    let position = first_position(offset, from_end, count, queries);
    let last_row = min(first_row + ROWS, rows) - 1;
    let first_seen = seen(position + (first_row / group) as i32, count, window);
    let last_seen = seen(position + (last_row / group) as i32, count, window);
    let (from, to) = (first_seen.x, max(first_seen.y, last_seen.y));
    let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / 4;
    let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / 4;
    let (k_step, v_step) = (k_strides[2] / 4, v_strides[2] / 4);

    for p in unroll(0..8 * WIDE) {
        let at = i + p * 256;
        let (line, quad) = (at / (16 * WIDE), at % (16 * WIDE));
        let row = first_row + line;
        let head = key_head * group + row % group;
        let first = (batch * q_strides[0] + head * q_strides[1] + row / group * q_strides[2]) / 4 + quad;
        copy_async(
            &mut own_queries,
            line * query_line + quad,
            q,
            select(row <= last_row && quad < quads, first, q.len()),
            1,
        );
    }
    // Of a step's keys an invocation moves every 32nd, one quad of each, and of its values so many.
    let (key_line, key_quad) = (i / QUADS, i % QUADS);
    for p in unroll(0..4) {
        let key = from + key_line + p * 32;
        let there = key < to && key_quad < quads;
        copy_async(
            &mut places,
            (key_line + p * 32) * KEY_LINE + key_quad,
            k,
            select(there, k_first + key * k_step + key_quad, k.len()),
            1,
        );
    }
    async_commit();
    // Scores are logarithms of two, as weights are powers of it; but for what comes between, queries have all of the factor.
    let unit = if PLAIN { scale * LOG2_E } else { scale };
    async_wait(0);
    for p in unroll(0..8 * WIDE) {
        let at = i + p * 256;
        let own = at / (16 * WIDE) * query_line + at % (16 * WIDE);
        own_queries[own] = own_queries[own] * unit;
    }

    // With fewer columns the first of them.
    let mut sums = [Vec4::splat(0.0); 16];
    let mut largest = [f32::NEG_INFINITY; 8];
    let mut totals = [0.0; 8];
    let mut turn = 0;
    for start in (from..to).step_by(KEYS) {
        let mut scores = [0.0; 64];
        for step in 0..2 * WIDE {
            let (here, other) = (turn % 2 * PLACE, (turn + 1) % 2 * PLACE);
            async_wait(0);
            barrier();
            if step + 1 < 2 * WIDE {
                let quad = (step + 1) * QUADS + key_quad;
                for p in unroll(0..4) {
                    let key = start + key_line + p * 32;
                    let there = WHOLE || key < to && quad < quads;
                    copy_async(
                        &mut places,
                        other + (key_line + p * 32) * KEY_LINE + key_quad,
                        k,
                        select(there, k_first + key * k_step + quad, k.len()),
                        1,
                    );
                }
            } else {
                for p in unroll(0..2 * WIDE) {
                    let at = i + p * 256;
                    let (key, quad) = (start + at / (16 * WIDE), at % (16 * WIDE));
                    let there = WHOLE || key < to && quad < value_quads;
                    copy_async(&mut places, other + at, v, select(there, v_first + key * v_step + quad, v.len()), 1);
                }
            }
            async_commit();
            let key_here = here + tx * KEY_LINE;
            let query_here = ty * query_line + step * QUADS;
            for inner in unroll(0..QUADS) {
                let mut own = [Vec4::splat(0.0); 8];
                for r in unroll(0..8) {
                    own[r] = own_queries[query_here + (r * APART * query_line + inner)];
                }
                // Sums that follow each other wait for none.
                for j in unroll(0..8) {
                    let other = places[key_here + (j * 16 * KEY_LINE + inner)];
                    for r in unroll(0..8) {
                        scores[r * 8 + j] += own[r].x * other.x;
                    }
                    for r in unroll(0..8) {
                        scores[r * 8 + j] += own[r].y * other.y;
                    }
                    for r in unroll(0..8) {
                        scores[r * 8 + j] += own[r].z * other.z;
                    }
                    for r in unroll(0..8) {
                        scores[r * 8 + j] += own[r].w * other.w;
                    }
                }
            }
            turn += 1;
        }

        // What was multiplied becomes scores; what a row does not see has minus infinity.
        if !PLAIN && cap > 0.0 {
            for at in unroll(0..64) {
                scores[at] = capped(scores[at], cap);
            }
        }
        if !PLAIN && !bias.is_empty() {
            for r in unroll(0..8) {
                let row = first_row + r * APART + ty;
                let head = key_head * group + row % group;
                let own = batch * bias_strides[0] + head * bias_strides[1] + row / group * bias_strides[2];
                for j in unroll(0..8) {
                    let key = start + j * 16 + tx;
                    let added = bias[select(row < rows && key < to, own + key * bias_strides[3], bias.len())];
                    scores[r * 8 + j] = biased(scores[r * 8 + j], added);
                }
            }
        }
        if !PLAIN {
            for at in unroll(0..64) {
                scores[at] *= LOG2_E;
            }
        }
        if !WHOLE && (start < last_seen.x || min(start + KEYS, to) > first_seen.y || start + KEYS > to) {
            for r in unroll(0..8) {
                let row = first_row + r * APART + ty;
                let own = seen(position + (row / group) as i32, count, window);
                for j in unroll(0..8) {
                    let key = start + j * 16 + tx;
                    if key < own.x || key >= min(own.y, to) {
                        scores[r * 8 + j] = f32::NEG_INFINITY;
                    }
                }
            }
        }
        for r in unroll(0..8) {
            let mut most = scores[r * 8];
            for j in unroll(1..8) {
                most = max(most, scores[r * 8 + j]);
            }
            for bit in unroll(0..4) {
                most = max(most, subgroup_shuffle_xor(most, 1 << bit));
            }
            let now = max(largest[r], most);
            // Where a row has seen nothing yet, all that it has is minus infinity, of which another number still gives weights of 0.
            let zero = if now == f32::NEG_INFINITY { 0.0 } else { now };
            let shrink = power(largest[r] - zero);
            let mut total = totals[r] * shrink;
            for j in unroll(0..8) {
                let own = power(scores[r * 8 + j] - zero);
                weights[(r * APART + ty) * (WEIGHT_LINE * 4) + j * 16 + tx] = own;
                total += own;
            }
            // After the first keys the largest score seldom changes.
            if subgroup_any(shrink != 1.0) {
                for w in unroll(0..WIDE) {
                    sums[r * WIDE + w] = sums[r * WIDE + w] * shrink;
                }
            }
            largest[r] = now;
            totals[r] = total;
        }

        for step in 0..KEYS / DEPTH {
            let (here, other) = (turn % 2 * PLACE, (turn + 1) % 2 * PLACE);
            async_wait(0);
            barrier();
            if step + 1 < KEYS / DEPTH {
                for p in unroll(0..2 * WIDE) {
                    let at = i + p * 256;
                    let (key, quad) = (start + (step + 1) * DEPTH + at / (16 * WIDE), at % (16 * WIDE));
                    let there = WHOLE || key < to && quad < value_quads;
                    copy_async(&mut places, other + at, v, select(there, v_first + key * v_step + quad, v.len()), 1);
                }
            } else {
                for p in unroll(0..4) {
                    let key = start + KEYS + key_line + p * 32;
                    let there = key < to && key_quad < quads;
                    copy_async(
                        &mut places,
                        other + (key_line + p * 32) * KEY_LINE + key_quad,
                        k,
                        select(there, k_first + key * k_step + key_quad, k.len()),
                        1,
                    );
                }
            }
            async_commit();
            let value_here = here + tx;
            let weight_here = ty * WEIGHT_LINE + step * QUADS;
            for inner in unroll(0..QUADS) {
                let mut values = [Vec4::splat(0.0); 8];
                for j in unroll(0..4) {
                    for w in unroll(0..WIDE) {
                        values[j * WIDE + w] = places[value_here + ((inner * 4 + j) * WIDE + w) * 16];
                    }
                }
                for r in unroll(0..8) {
                    let own = weights.vec4(weight_here + (r * APART * WEIGHT_LINE + inner));
                    for w in unroll(0..WIDE) {
                        let half = values[WIDE + w] * own.y + (values[w] * own.x + sums[r * WIDE + w]);
                        sums[r * WIDE + w] = values[3 * WIDE + w] * own.w + (values[2 * WIDE + w] * own.z + half);
                    }
                }
            }
            turn += 1;
        }
    }
    async_wait(0);

    for r in unroll(0..8) {
        let mut total = totals[r];
        for bit in unroll(0..4) {
            total += subgroup_shuffle_xor(total, 1 << bit);
        }
        let row = first_row + r * APART + ty;
        let head = key_head * group + row % group;
        let own = share(largest[r] / LOG2_E, total, sink_of(sinks, head));
        let out_first = (batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
        if row < rows {
            for w in unroll(0..WIDE) {
                let quad = w * 16 + tx;
                if quad < value_quads {
                    out.set_vec4(out_first + quad, result(sums[r * WIDE + w], own));
                }
            }
        }
    }
}
