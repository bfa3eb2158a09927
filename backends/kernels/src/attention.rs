//! Attention, which never writes the matrix of scores.
//!
//! A workgroup takes [`QUERIES`] queries of one head and walks over the keys step by step: keys and values of a step lie in workgroup memory. Eight invocations share a query, each
//! looking at every eighth key: it keeps the query, its running maximum, its sum of weights and its weighted sum of values in registers. At the end the eight are put together
//! through workgroup memory. Weights are exponentials to base 2, of scores that were scaled by log2(e).
//!
//! `QUADS` times four is the most elements that a head may have; a shorter one is filled up with zeros. A step has `256 / QUADS` keys. Rows in workgroup memory are padded by
//! four elements, so that eight invocations that read one element each of eight keys hit different banks.

use trefoil_dsl::prelude::*;

/// Queries of a workgroup.
#[device]
pub const QUERIES: usize = 16;

/// out = softmax(q k^T * scale + mask) v, head by head.
///
/// Strides are in elements and say how to go from one batch, head, and position to the next, in that order; the elements of a head lie together. An empty `mask`
/// stands for none; else it is added to the scores (after scaling), and its strides are those of batch, head, query and key, 0 where it is broadcast. `causal` lets query i see
/// keys up to `i + keys - queries`. A query that sees no key gives zeros.
#[kernel(workgroup(128), instances(QUADS = [8, 16, 32]))]
pub fn attention<const QUADS: usize>(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    mask: &[f32],
    out: &mut [f32],
    heads: usize,
    heads_per_key_head: usize,
    queries: usize,
    keys: usize,
    head: usize,
    q_strides: [usize; 3],
    k_strides: [usize; 3],
    v_strides: [usize; 3],
    out_strides: [usize; 3],
    mask_strides: [usize; 4],
    scale: f32,
    causal: bool,
) {
    // Keys, then values, of a step; in the end what the eight invocations of a query have found.
    let mut shared = workgroup_array::<f32>(2048 + 2048 / QUADS);
    let blocks = queries.div_ceil(QUERIES);
    let block = group_index() % blocks;
    let head_index = group_index() / blocks % heads;
    let batch = group_index() / blocks / heads;
    let key_head = head_index / heads_per_key_head;
    let query = block * QUERIES + local_index() / 8;
    let lane = local_index() % 8;
    let quads = head / 4;
    let q_first = (batch * q_strides[0] + head_index * q_strides[1] + query * q_strides[2]) / 4;
    let k_first = (batch * k_strides[0] + key_head * k_strides[1]) / 4;
    let v_first = (batch * v_strides[0] + key_head * v_strides[1]) / 4;
    let mask_first = batch * mask_strides[0] + head_index * mask_strides[1] + query * mask_strides[2];

    let mut own = [Vec4::splat(0.0); QUADS];
    let mut sums = [Vec4::splat(0.0); QUADS];
    for quad in unroll(0..QUADS) {
        if query < queries && quad < quads {
            own[quad] = q.vec4(q_first + quad) * (scale * LOG2_E);
        }
    }
    let mut largest = f32::NEG_INFINITY;
    let mut weights = 0.0;
    let mut visible = keys;
    if causal {
        // The last query of the block sees the most keys.
        visible = min(keys, (block + 1) * QUERIES + keys - min(keys, queries));
    }

    for step in 0..visible.div_ceil(256 / QUADS) {
        for i in unroll(0..2) {
            let at = local_index() + i * 128;
            let key = step * (256 / QUADS) + at / QUADS;
            let quad = at % QUADS;
            let mut key_part = Vec4::splat(0.0);
            let mut value_part = Vec4::splat(0.0);
            if key < keys && quad < quads {
                key_part = k.vec4(k_first + key * k_strides[2] / 4 + quad);
                value_part = v.vec4(v_first + key * v_strides[2] / 4 + quad);
            }
            let place = at / QUADS * (QUADS + 1) + quad;
            shared.set_vec4(place, key_part);
            shared.set_vec4(256 + 256 / QUADS + place, value_part);
        }
        barrier();

        let mut scores = [f32::NEG_INFINITY; 4];
        let mut step_largest = largest;
        for i in unroll(0..32 / QUADS) {
            let key = step * (256 / QUADS) + i * 8 + lane;
            let mut score = Vec4::splat(0.0);
            for quad in unroll(0..QUADS) {
                score = own[quad] * shared.vec4((i * 8 + lane) * (QUADS + 1) + quad) + score;
            }
            let mut seen = key < keys && query < queries;
            if causal && key + queries > query + keys {
                seen = false;
            }
            if seen {
                let mut total = (score.x + score.y) + (score.z + score.w);
                if !mask.is_empty() {
                    total += mask[mask_first + key * mask_strides[3]] * LOG2_E;
                }
                scores[i] = total;
                step_largest = max(step_largest, total);
            }
        }
        if step_largest > f32::NEG_INFINITY {
            let shrink = exp2(largest - step_largest);
            largest = step_largest;
            weights *= shrink;
            for quad in unroll(0..QUADS) {
                sums[quad] = sums[quad] * shrink;
            }
            for i in unroll(0..32 / QUADS) {
                let weight = exp2(scores[i] - largest);
                weights += weight;
                for quad in unroll(0..QUADS) {
                    let value = shared.vec4(256 + 256 / QUADS + (i * 8 + lane) * (QUADS + 1) + quad);
                    sums[quad] = value * weight + sums[quad];
                }
            }
        }
        barrier();
    }

    // The eight invocations of a query agree on one maximum and one sum.
    shared[2 * local_index()] = largest;
    shared[2 * local_index() + 1] = weights;
    barrier();
    let first = local_index() - lane;
    let mut query_largest = f32::NEG_INFINITY;
    for other in unroll(0..8) {
        query_largest = max(query_largest, shared[2 * (first + other)]);
    }
    let mut factor = 0.0;
    if query_largest > f32::NEG_INFINITY {
        let mut total = 0.0;
        for other in unroll(0..8) {
            total += shared[2 * (first + other) + 1] * exp2(shared[2 * (first + other)] - query_largest);
        }
        factor = exp2(largest - query_largest) / total;
    }
    barrier();

    // Four groups of elements at a time fit into workgroup memory.
    let adds_query = block * QUERIES + local_index() / 4;
    let out_first = (batch * out_strides[0] + head_index * out_strides[1] + adds_query * out_strides[2]) / 4;
    for part in unroll(0..QUADS / 4) {
        for quad in unroll(0..4) {
            shared.set_vec4(local_index() * 4 + quad, sums[part * 4 + quad] * factor);
        }
        barrier();
        let quad = part * 4 + local_index() % 4;
        if local_index() < 4 * QUERIES && adds_query < queries && quad < quads {
            let mut sum = Vec4::splat(0.0);
            for other in unroll(0..8) {
                sum = sum + shared.vec4((local_index() / 4 * 8 + other) * 4 + local_index() % 4);
            }
            out.set_vec4(out_first + quad, sum);
        }
        barrier();
    }
}
