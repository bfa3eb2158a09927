//! What workgroups that share the keys of a row have left, put together.

use trefoil_dsl::prelude::*;

use super::{result, share, sink_of, weight};

/// Parts of which an invocation asks for everything before it uses the first.
#[device]
const AT_ONCE: usize = 8;

/// out = the weighted means of values, from `cut` parts of each row's weighted sums, and behind all of them their largest scores and sums of weights.
///
/// `sizes` are: heads that share a head of keys, heads of keys, queries, quads of a value, rows of all batches and heads. An invocation has a quad of a row.
#[kernel(workgroup(128), no_robustness, instances(T = [f32, f16, bf16]))]
pub fn attention_join<T: Float>(
    parts: &[f32],
    sinks: &[T],
    out: &mut [T],
    sizes: [usize; 5],
    out_strides: [usize; 3],
    cut: usize,
) {
    let (group, key_heads, queries, value_quads, rows) = (sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]);
    let slot = global_index() / value_quads;
    let quad = global_index() % value_quads;
    if slot < rows {
        let of_batch = group * queries * key_heads;
        let row = slot % (group * queries);
        let head = slot % of_batch / (group * queries) * group + row % group;
        let out_first = (slot / of_batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
        let first = slot * cut;
        let stats = rows * cut * value_quads * 2;
        let mut largest = f32::NEG_INFINITY;
        let mut total = 0.0;
        let mut sum = Vec4::splat(0.0);
        for start in (0..cut).step_by(AT_ONCE) {
            let mut told = [Vec2::new(0.0, 0.0); AT_ONCE];
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for i in unroll(0..AT_ONCE) {
                told[i] = parts.vec2(stats + first + start + i);
                read[i] = parts.vec4((first + start + i) * value_quads + quad);
            }
            for i in unroll(0..AT_ONCE) {
                if start + i < cut && told[i].x > f32::NEG_INFINITY {
                    let most = max(largest, told[i].x);
                    let (before, now) = (weight(largest, most), weight(told[i].x, most));
                    total = total * before + told[i].y * now;
                    sum = sum * before + read[i] * now;
                    largest = most;
                }
            }
        }
        out.set_vec4(out_first + quad, result(sum, share(largest, total, sink_of(sinks, head))));
    }
}
