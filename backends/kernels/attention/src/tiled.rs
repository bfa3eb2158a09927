//! Many queries: tiles of rows by 128 keys, the softmax corrected as it goes.
//!
//! **Who does what.** A workgroup has `8 * ROWS` rows of a head of keys and 64 or 128 columns of the values. 16 invocations share a row and each has `ROWS` of them. Of a tile's scores an invocation keeps every sixteenth column of its rows,
//! of the result `WIDE` times four columns, all in registers. Queries and keys come to workgroup memory 16 elements of a head at a time, values 16 keys at a time and with them the weights of
//! these keys; while one such step is multiplied, the next is on its way to registers. There is no branch in between, and no loop that is not written out, since drivers wait there for what was read. So heads may have any number of elements, and 15 KiB of workgroup memory are enough.
//!
//! **What it costs.** An invocation with 8 rows reads 16 times 16 bytes of workgroup memory for 256 multiplications, of either product. Lines of workgroup memory are five times 16 bytes long, so that
//! eight invocations that read 16 bytes of eight lines hit all banks once.
//!
//! **Targets.** A processor has its own way (`trefoil_host::attention`), and [`super::plain`]; compiled for it, this would be most of the library's build.
//!
//! **Parts.** Where rows are too few for a device, `cut` workgroups share their keys and leave their sums in `parts`, for [`super::join`].

use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, power, result, seen, share, sink_of, wide};

/// Rows of a workgroup for each row of an invocation.
pub const ROWS_AT_ONCE: usize = 8;
/// Keys of a tile.
#[device]
pub const KEYS: usize = 128;

/// out = attention of rows of `quads` times four elements.
///
/// * `sizes`: heads that share a head of keys, heads of keys, queries, keys, quads of a query, quads of a value, and rows of all batches and heads times `cut`.
/// * Strides are in elements, from one batch, head and position to the next; all are multiples of four, and a head's elements lie together. Those of the bias are of batch, head, query and key, 0 where it is broadcast.
/// * `lengths`, `offset`, `from_end`, `window`: see [`key_count`], [`first_position`], [`seen`]. An empty slice stands for an operand that is not there.
/// * `PLAIN`: there is neither a cap nor a bias.
/// * `WHOLE`: every row sees every key, these are a multiple of [`KEYS`], a query's elements of 16 and a value's of `64 * WIDE`.
/// * `parts`: for each row and part of `cut` the weighted sum of values, and behind all of them the largest score and the sum of weights.
#[kernel(
    workgroup(128),
    targets(wgsl, spirv, cuda),
    no_robustness,
    instances(T = [f32, f16, bf16], ROWS = [2, 8], WIDE = [1, 2]),
    specialise(PLAIN: bool = false; WHOLE: bool = false)
)]
pub fn attention_tiled<T: Float, const ROWS: usize, const WIDE: usize>(
    q: &[T],
    k: &[T],
    v: &[T],
    bias: &[T],
    lengths: &[u32],
    sinks: &[T],
    out: &mut [T],
    parts: &mut [f32],
    sizes: [usize; 7],
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
    cut: usize,
) {
    // Rows' elements and keys' elements, or rows' weights and values: in lines of four quads and one of padding, but the values, whose lines are a row of quads.
    let mut shared = workgroup_array::<f32>(160 * ROWS + 20 * KEYS);
    let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    let (quads, value_quads) = (sizes[4], sizes[5]);
    let right = 40 * ROWS;
    let rows = group * queries;
    let blocks = rows.div_ceil(8 * ROWS);
    let columns = value_quads.div_ceil(16 * WIDE);
    // Later queries may see more keys, so that they come first.
    let block = blocks - 1 - group_index() % blocks;
    let column = group_index() / blocks % columns * (16 * WIDE);
    let part = group_index() / (blocks * columns) % cut;
    let key_head = group_index() / (blocks * columns * cut) % key_heads;
    let batch = group_index() / (blocks * columns * cut * key_heads);
    let (tx, ty) = (local_index() % 16, local_index() / 16);

    let count = key_count(lengths, batch, keys);
    let position = first_position(offset, from_end, count, queries);
    let first_row = block * (8 * ROWS);
    let last_row = min(first_row + 8 * ROWS, rows) - 1;
    let first_seen = seen(position + (first_row / group) as i32, count, window);
    let last_seen = seen(position + (last_row / group) as i32, count, window);
    let (low, high) = (first_seen.x, max(first_seen.y, last_seen.y));
    let each = (high - low).div_ceil(KEYS * cut) * KEYS;
    let from = min(low + part * each, high);
    let to = min(from + each, high);

    let mut q_first = [0usize; 2];
    for i in unroll(0..2) {
        let row = first_row + local_index() / 4 + i * 32;
        let own =
            (batch * q_strides[0] + (key_head * group + row % group) * q_strides[1] + row / group * q_strides[2]) / 4;
        q_first[i] = if row <= last_row { own } else { q.len() };
    }
    let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / 4;
    let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / 4 + column;
    let k_step = k_strides[2] / 4;
    let v_step = v_strides[2] / 4;

    let zero = Vec4::splat(T::lit(0.0));
    // With fewer rows or columns the first of them.
    let mut sums = [Vec4::splat(0.0); 16];
    let mut largest = [f32::NEG_INFINITY; ROWS];
    let mut totals = [0.0; ROWS];

    for start in (from..to).step_by(KEYS) {
        let mut scores = [0.0; 64];
        let mut next_q = [zero; 2];
        let mut next_k = [zero; 4];
        let own_quad = local_index() % 4;
        for i in unroll(0..2) {
            next_q[i] = q.vec4(select(WHOLE || own_quad < quads, q_first[i] + own_quad, q.len()));
        }
        for i in unroll(0..4) {
            let key = start + local_index() / 4 + i * 32;
            let there = WHOLE || own_quad < quads && key < to;
            next_k[i] = k.vec4(select(there, k_first + key * k_step + own_quad, k.len()));
        }
        for step in 0..quads.div_ceil(4) {
            for i in unroll(0..2) {
                let at = local_index() + i * 128;
                if at < 32 * ROWS {
                    shared.set_vec4(at / 4 * 5 + at % 4, wide(next_q[i]));
                }
            }
            for i in unroll(0..4) {
                let at = local_index() + i * 128;
                shared.set_vec4(right + at / 4 * 5 + at % 4, wide(next_k[i]));
            }
            barrier();
            let quad = (step + 1) * 4 + own_quad;
            for i in unroll(0..2) {
                next_q[i] = q.vec4(select(quad < quads, q_first[i] + quad, q.len()));
            }
            for i in unroll(0..4) {
                let key = start + local_index() / 4 + i * 32;
                let there = quad < quads && (WHOLE || key < to);
                next_k[i] = k.vec4(select(there, k_first + key * k_step + quad, k.len()));
            }
            for inner in unroll(0..4) {
                let mut others = [Vec4::splat(0.0); 8];
                for j in unroll(0..8) {
                    others[j] = shared.vec4(right + (j * 16 + tx) * 5 + inner);
                }
                for r in unroll(0..ROWS) {
                    let own = shared.vec4((r * 8 + ty) * 5 + inner);
                    for j in unroll(0..8) {
                        let other = others[j];
                        let half = own.y * other.y + (own.x * other.x + scores[r * 8 + j]);
                        scores[r * 8 + j] = own.w * other.w + (own.z * other.z + half);
                    }
                }
            }
            barrier();
        }

        // What was multiplied becomes scores, logarithms of two as weights are powers of it; what a row does not see has minus infinity.
        let unit = if PLAIN { scale * LOG2_E } else { scale };
        for at in unroll(0..8 * ROWS) {
            scores[at] *= unit;
        }
        if !PLAIN && cap > 0.0 {
            for at in unroll(0..8 * ROWS) {
                scores[at] = capped(scores[at], cap);
            }
        }
        if !PLAIN && !bias.is_empty() {
            for r in unroll(0..ROWS) {
                let row = first_row + r * 8 + ty;
                let head = key_head * group + row % group;
                let own = batch * bias_strides[0] + head * bias_strides[1] + row / group * bias_strides[2];
                for j in unroll(0..8) {
                    let key = start + j * 16 + tx;
                    let added = bias[select(row < rows && key < to, own + key * bias_strides[3], bias.len())];
                    scores[r * 8 + j] = biased(scores[r * 8 + j], added.to_f32());
                }
            }
        }
        if !PLAIN {
            for at in unroll(0..8 * ROWS) {
                scores[at] *= LOG2_E;
            }
        }
        if !WHOLE && (start < last_seen.x || min(start + KEYS, to) > first_seen.y || start + KEYS > to) {
            for r in unroll(0..ROWS) {
                let row = first_row + r * 8 + ty;
                let own = seen(position + (row / group) as i32, count, window);
                for j in unroll(0..8) {
                    let key = start + j * 16 + tx;
                    if key < own.x || key >= min(own.y, to) {
                        scores[r * 8 + j] = f32::NEG_INFINITY;
                    }
                }
            }
        }
        for r in unroll(0..ROWS) {
            let mut most = scores[r * 8];
            for j in unroll(1..8) {
                most = max(most, scores[r * 8 + j]);
            }
            shared[(r * 8 + ty) * 16 + tx] = most;
        }
        barrier();
        for r in unroll(0..ROWS) {
            let before = largest[r];
            let mut most = Vec4::splat(before);
            for i in unroll(0..4) {
                most = max(most, shared.vec4((r * 8 + ty) * 4 + i));
            }
            let now = max(max(most.x, most.y), max(most.z, most.w));
            // Where a row has seen nothing yet, all that it has is minus infinity, of which another number still gives weights of 0.
            let zero = if now == f32::NEG_INFINITY { 0.0 } else { now };
            let shrink = power(before - zero);
            let mut total = totals[r] * shrink;
            for j in unroll(0..8) {
                let own = power(scores[r * 8 + j] - zero);
                scores[r * 8 + j] = own;
                total += own;
            }
            for w in unroll(0..WIDE) {
                sums[r * WIDE + w] = sums[r * WIDE + w] * shrink;
            }
            largest[r] = now;
            totals[r] = total;
        }
        barrier();

        let mut next_v = [zero; 4];
        for i in unroll(0..2 * WIDE) {
            let at = local_index() + i * 128;
            let (key, quad) = (start + at / (16 * WIDE), at % (16 * WIDE));
            let there = WHOLE || key < to && column + quad < value_quads;
            next_v[i] = v.vec4(select(there, v_first + key * v_step + quad, v.len()));
        }
        for step in 0..min(KEYS, to - start).div_ceil(16) {
            for j in unroll(0..8) {
                if j == step {
                    for r in unroll(0..ROWS) {
                        shared[(r * 8 + ty) * 20 + tx] = scores[r * 8 + j];
                    }
                }
            }
            for i in unroll(0..2 * WIDE) {
                shared.set_vec4(right + local_index() + i * 128, wide(next_v[i]));
            }
            barrier();
            for i in unroll(0..2 * WIDE) {
                let at = local_index() + i * 128;
                let (key, quad) = (start + (step + 1) * 16 + at / (16 * WIDE), at % (16 * WIDE));
                let there = key < to && (WHOLE || column + quad < value_quads);
                next_v[i] = v.vec4(select(there, v_first + key * v_step + quad, v.len()));
            }
            for inner in unroll(0..4) {
                let mut values = [Vec4::splat(0.0); 8];
                for i in unroll(0..4) {
                    for w in unroll(0..WIDE) {
                        values[i * WIDE + w] = shared.vec4(right + ((inner * 4 + i) * WIDE + w) * 16 + tx);
                    }
                }
                for r in unroll(0..ROWS) {
                    let own = shared.vec4((r * 8 + ty) * 5 + inner);
                    for w in unroll(0..WIDE) {
                        let half = values[WIDE + w] * own.y + (values[w] * own.x + sums[r * WIDE + w]);
                        sums[r * WIDE + w] = values[3 * WIDE + w] * own.w + (values[2 * WIDE + w] * own.z + half);
                    }
                }
            }
            barrier();
        }
    }

    for r in unroll(0..ROWS) {
        shared[(r * 8 + ty) * 16 + tx] = totals[r];
    }
    barrier();
    for r in unroll(0..ROWS) {
        let mut fours = Vec4::splat(0.0);
        for i in unroll(0..4) {
            fours = fours + shared.vec4((r * 8 + ty) * 4 + i);
        }
        let total = (fours.x + fours.y) + (fours.z + fours.w);
        let row = first_row + r * 8 + ty;
        let head = key_head * group + row % group;
        let own = share(largest[r] / LOG2_E, total, sink_of(sinks, head));
        let out_first = (batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
        let slot = ((batch * key_heads + key_head) * rows + row) * cut + part;
        if row < rows {
            for w in unroll(0..WIDE) {
                let quad = column + w * 16 + tx;
                if quad < value_quads {
                    if cut == 1 {
                        out.set_vec4(out_first + quad, result(sums[r * WIDE + w], own));
                    } else {
                        parts.set_vec4(slot * value_quads + quad, sums[r * WIDE + w]);
                    }
                }
            }
            if cut > 1 && column == 0 && tx == 0 {
                parts[sizes[6] * value_quads * 4 + slot * 2] = largest[r] / LOG2_E;
                parts[sizes[6] * value_quads * 4 + slot * 2 + 1] = total;
            }
        }
    }
}
