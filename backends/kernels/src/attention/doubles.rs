//! Of doubles: any strides, any extents; and scores for who wants to see them.

use trefoil_dsl::prelude::*;

use super::plain::{SIZE, Scores};
use super::{first_position, key_count, seen};

/// e^(score - largest), of scores that are at most `largest`; where all are minus infinity it is 0.
#[device]
fn weight(score: f64, largest: f64) -> f64 {
    if largest == f64::NEG_INFINITY { 0.0 } else { exp(score - largest) }
}

/// out = attention of a row of `sizes[4]` elements; a workgroup has a row and [`SIZE`] columns. Its operands are those of [`super::plain::attention_plain`].
#[kernel(workgroup(128), requires(Float64, Int64))]
pub fn attention_plain_f64(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    bias: &[f64],
    lengths: &[u32],
    sinks: &[f64],
    out: &mut [f64],
    told: &mut [f64],
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
    let mut scores = workgroup_array::<f64>(SIZE);
    let mut weights = workgroup_array::<f64>(SIZE);
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
    let mut sink = f64::NEG_INFINITY;
    if !sinks.is_empty() {
        sink = sinks[head];
    }
    // Who tells scores looks at all keys, and for weights once more when their sum is known.
    let tells = stage != Scores::Nothing;
    let (from, to) = (if tells { 0 } else { own.x }, if tells { keys } else { own.y });
    let rounds = if stage == Scores::Weights { 2 } else { 1 };
    let mut largest = f64::NEG_INFINITY;
    let mut total = 0.0f64;
    let mut sum = 0.0f64;
    let mut share = 0.0f64;
    for round in 0..rounds {
        for start in (from..to).step_by(SIZE) {
            let key = start + local_index();
            let mut product = 0.0f64;
            if key < to {
                for i in 0..sizes[4] {
                    product += q[q_first + i * q_strides[3]] * k[k_first + key * k_strides[2] + i * k_strides[3]];
                }
            }
            let scaled = product * scale as f64;
            let mut held = scaled;
            if cap > 0.0 {
                held = tanh(scaled / cap as f64) * cap as f64;
            }
            let mut score = held;
            if !bias.is_empty() {
                let added = bias[select(key < to, bias_first + key * bias_strides[3], bias.len())];
                // One of minus infinity hides the key, whatever the score is.
                score = if added == f64::NEG_INFINITY { added } else { score + added };
            }
            if key < own.x || key >= own.y {
                score = f64::NEG_INFINITY;
            }
            if round == 0 {
                scores[local_index()] = score;
                barrier();
                let here = min(SIZE, to - start);
                let mut most = largest;
                for other in 0..here {
                    most = max(most, scores[other]);
                }
                weights[local_index()] = weight(score, most);
                let shrink = weight(largest, most);
                largest = most;
                barrier();
                total *= shrink;
                sum *= shrink;
                for other in 0..here {
                    total += weights[other];
                    sum += v[select(column < sizes[5], v_first + (start + other) * v_strides[2], v.len())]
                        * weights[other];
                }
                barrier();
            }
            if column == local_index() && key < to {
                if stage == Scores::Products {
                    told[told_first + key] = scaled;
                }
                if stage == Scores::Capped {
                    told[told_first + key] = held;
                }
                if stage == Scores::Biased {
                    told[told_first + key] = score;
                }
                if stage == Scores::Weights && round == 1 {
                    told[told_first + key] = weight(score, largest) * share;
                }
            }
        }
        if round == 0 && largest != f64::NEG_INFINITY {
            let most = max(largest, sink);
            let part = weight(largest, most);
            share = part / (total * part + weight(sink, most));
        }
    }
    if column < sizes[5] {
        let place = batch * out_strides[0] + head * out_strides[1] + query * out_strides[2] + column * out_strides[3];
        // Zeros if nothing was seen, whatever the sum is.
        out[place] = if share == 0.0 { 0.0 } else { sum * share };
    }
}
