//! Attention, which never writes the matrix of scores.
//!
//! A workgroup takes 32 queries of one head and walks over the keys 32 at a time: keys and values of a step lie in workgroup memory, and each
//! invocation keeps its query, its running maximum, its sum of weights and its weighted sum of values in registers. Weights are exponentials to base 2,
//! of scores that were scaled by log2(e).
//!
//! `QUADS` times four is the most elements that a head may have; a shorter one is filled up with zeros.

use trefoil_dsl::prelude::*;

/// out = softmax(q k^T * scale + mask) v, head by head.
///
/// Strides are in elements and say how to go from one batch, head, and position to the next, in that order; the elements of a head lie together. An empty `mask`
/// stands for none; else it is added to the scores (after scaling), and its strides are those of batch, head, query and key, 0 where it is broadcast. `causal` lets query i see
/// keys up to `i + keys - queries`. A query that sees no key gives zeros.
#[kernel(workgroup(32), instances(QUADS = [8, 16, 32]))]
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
    let mut key_step = workgroup_array::<f32>(64 * QUADS);
    let mut value_step = workgroup_array::<f32>(64 * QUADS);
    let blocks = queries.div_ceil(32);
    let block = group_index() % blocks;
    let head_index = group_index() / blocks % heads;
    let batch = group_index() / blocks / heads;
    let key_head = head_index / heads_per_key_head;
    let query = block * 32 + local_index();
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
        visible = min(keys, block * 32 + 32 + keys - min(keys, queries));
    }

    for step in 0..visible.div_ceil(16) {
        for at in (local_index()..16 * QUADS).step_by(32) {
            let key = step * 16 + at / QUADS;
            let quad = at % QUADS;
            let mut key_part = Vec4::splat(0.0);
            let mut value_part = Vec4::splat(0.0);
            if key < keys && quad < quads {
                key_part = k.vec4(k_first + key * k_strides[2] / 4 + quad);
                value_part = v.vec4(v_first + key * v_strides[2] / 4 + quad);
            }
            key_step.set_vec4(at, key_part);
            value_step.set_vec4(at, value_part);
        }
        barrier();

        let mut scores = [f32::NEG_INFINITY; 16];
        let mut step_largest = largest;
        for i in unroll(0..16) {
            let key = step * 16 + i;
            let mut score = Vec4::splat(0.0);
            for quad in unroll(0..QUADS) {
                score = own[quad] * key_step.vec4(i * QUADS + quad) + score;
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
            for i in unroll(0..16) {
                let weight = exp2(scores[i] - largest);
                weights += weight;
                for quad in unroll(0..QUADS) {
                    sums[quad] = value_step.vec4(i * QUADS + quad) * weight + sums[quad];
                }
            }
        }
        barrier();
    }

    if query < queries {
        let mut factor = 0.0;
        if weights > 0.0 {
            factor = 1.0 / weights;
        }
        let out_first = (batch * out_strides[0] + head_index * out_strides[1] + query * out_strides[2]) / 4;
        for quad in unroll(0..QUADS) {
            if quad < quads {
                out.set_vec4(out_first + quad, sums[quad] * factor);
            }
        }
    }
}
