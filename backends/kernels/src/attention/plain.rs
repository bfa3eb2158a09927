//! Any strides, any extents; and scores for who wants to see them.

use trefoil_dsl::prelude::*;

use super::{biased, capped, first_position, key_count, result, seen, share, sink_of, weight};
use crate::workgroup::workgroup_max;

/// What is given of each query and key besides the result.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scores {
    /// Nothing.
    Nothing,
    /// Their scaled products.
    Products,
    /// These held between the cap.
    Capped,
    /// These with the bias; minus infinity where the query does not see the key.
    Biased,
    /// The weights that values get.
    Weights,
}

/// Keys that a workgroup looks at together, and columns of the values that it has.
#[device]
pub const SIZE: usize = 128;

/// out = attention of a row of `sizes[4]` elements; a workgroup has a row and [`SIZE`] columns.
///
/// As for [`super::tiled::attention_tiled`], but sizes count elements and not quads, all strides have the element's at their end, and the last of the sizes is not there.
#[kernel(workgroup(128), instances(T = [f32, f16, bf16]))]
pub fn attention_plain<T: Float>(
    q: &[T],
    k: &[T],
    v: &[T],
    bias: &[T],
    lengths: &[u32],
    sinks: &[T],
    out: &mut [T],
    told: &mut [T],
    sizes: [usize; 6],
    q_strides: [usize; 4],
    k_strides: [usize; 4],
    v_strides: [usize; 4],
    out_strides: [usize; 4],
    bias_strides: [usize; 4],
    scale: f32,
    cap: f32,
    offset: i32,
    from_end: bool,
    window: [i32; 2],
    stage: Scores,
) {
    let mut scratch = workgroup_array::<f32>(SIZE);
    let mut weights = workgroup_array::<f32>(SIZE);
    let (group, key_heads, queries, keys) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    let heads = group * key_heads;
    let columns = max(sizes[5].div_ceil(SIZE), 1);
    let column = group_index() % columns * SIZE + local_index();
    let query = group_index() / columns % queries;
    let head = group_index() / (columns * queries) % heads;
    let batch = group_index() / (columns * queries * heads);
    let count = key_count(lengths, batch, keys);
    let position = first_position(offset, from_end, count, queries) + query as i32;
    let own = seen(position, count, window);
    let q_first = batch * q_strides[0] + head * q_strides[1] + query * q_strides[2];
    let k_first = batch * k_strides[0] + head / group * k_strides[1];
    let v_first = batch * v_strides[0] + head / group * v_strides[1] + column * v_strides[3];
    let bias_first = batch * bias_strides[0] + head * bias_strides[1] + query * bias_strides[2];
    let told_first = ((batch * heads + head) * queries + query) * keys;
    // Who tells scores looks at all keys, and for weights once more when their sum is known.
    let tells = stage != Scores::Nothing;
    let (from, to) = (if tells { 0 } else { own.x }, if tells { keys } else { own.y });
    let rounds = if stage == Scores::Weights { 2 } else { 1 };
    let mut largest = f32::NEG_INFINITY;
    let mut total = 0.0;
    let mut sum = 0.0;
    for round in 0..rounds {
        for start in (from..to).step_by(SIZE) {
            let key = start + local_index();
            let mut product = 0.0;
            if key < to {
                for i in 0..sizes[4] {
                    let left = q[q_first + i * q_strides[3]].to_f32();
                    product = left * k[k_first + key * k_strides[2] + i * k_strides[3]].to_f32() + product;
                }
            }
            let scaled = product * scale;
            let held = capped(scaled, cap);
            let mut score = held;
            if !bias.is_empty() {
                score = biased(score, bias[select(key < to, bias_first + key * bias_strides[3], bias.len())].to_f32());
            }
            if key < own.x || key >= own.y {
                score = f32::NEG_INFINITY;
            }
            if round == 0 {
                let most = max(largest, workgroup_max::<SIZE>(score, 0, &mut scratch));
                let shrink = weight(largest, most);
                largest = most;
                weights[local_index()] = weight(score, most);
                barrier();
                total *= shrink;
                sum *= shrink;
                for other in 0..min(SIZE, to - start) {
                    let value = v[select(column < sizes[5], v_first + (start + other) * v_strides[2], v.len())];
                    total += weights[other];
                    sum = value.to_f32() * weights[other] + sum;
                }
                barrier();
            }
            if column == local_index() && key < to {
                if stage == Scores::Products {
                    told[told_first + key] = T::from_f32(scaled);
                }
                if stage == Scores::Capped {
                    told[told_first + key] = T::from_f32(held);
                }
                if stage == Scores::Biased {
                    told[told_first + key] = T::from_f32(score);
                }
                if stage == Scores::Weights && round == 1 {
                    let part = share(largest, total, sink_of(sinks, head));
                    told[told_first + key] = T::from_f32(weight(score, largest) * part);
                }
            }
        }
    }
    if column < sizes[5] {
        let place = batch * out_strides[0] + head * out_strides[1] + query * out_strides[2] + column * out_strides[3];
        let given: Vec4<T> = result(Vec4::splat(sum), share(largest, total, sink_of(sinks, head)));
        out[place] = given.x;
    }
}
