//! What workgroups that share the keys of a row have left, put together.

use trefoil_dsl::prelude::*;

use super::{add_part, has_seen, result, share, sink_of};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 128;
/// Parts of which an invocation asks for everything before it uses the first.
#[device]
pub const AT_ONCE: usize = 8;

/// out = the weighted means of values, from `cut` parts of each row's weighted sums, and behind all of them their largest scores and sums of weights.
///
/// `sizes` are: heads that share a head of keys, heads of keys, queries, quads of a value, rows of all batches and heads. So many invocations as `SHARERS` have a quad of a row, each of them every so many of the parts: where there
/// are many, one would wait for memory again and again.
#[kernel(workgroup(SIZE), no_robustness, instances(T = [f32, f16, bf16], SHARERS = [1, 8]))]
pub fn attention_join<T: Float, const SHARERS: usize>(
    parts: &[f32],
    sinks: &[T],
    out: &mut [T],
    sizes: [usize; 5],
    out_strides: [usize; 3],
    cut: usize,
) {
    let mut sums = workgroup_array::<f32>(SIZE * 4);
    let mut scores = workgroup_array::<f32>(SIZE * 2);
    let (group, key_heads, queries, value_quads, rows) = (sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]);
    // Neighbours have quads that lie side by side.
    let width = SIZE / SHARERS;
    let own = group_index() * width + local_index() % width;
    let sharer = local_index() / width;
    let slot = own / value_quads;
    let quad = own % value_quads;
    let mut largest = f32::NEG_INFINITY;
    let mut total = 0.0;
    let mut sum = Vec4::splat(0.0);
    if slot < rows {
        let first = slot * cut + sharer;
        let stats = rows * cut * value_quads * 2;
        for start in (0..cut).step_by(AT_ONCE * SHARERS) {
            let mut told = [Vec2::new(0.0, 0.0); AT_ONCE];
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for i in unroll(0..AT_ONCE) {
                told[i] = parts.vec2(stats + first + start + i * SHARERS);
                read[i] = parts.vec4((first + start + i * SHARERS) * value_quads + quad);
            }
            for i in unroll(0..AT_ONCE) {
                if start + i * SHARERS + sharer < cut && has_seen(told[i].x, told[i].y) {
                    add_part(&mut largest, &mut total, &mut sum, told[i].x, told[i].y, read[i]);
                }
            }
        }
    }
    if SHARERS > 1 {
        sums.set_vec4(local_index(), sum);
        scores.set_vec2(local_index(), Vec2::new(largest, total));
        barrier();
        if sharer == 0 {
            for other in unroll(1..SHARERS) {
                let place = local_index() + other * width;
                let (score, weights) = (scores[place * 2], scores[place * 2 + 1]);
                add_part(&mut largest, &mut total, &mut sum, score, weights, sums.vec4(place));
            }
        }
    }
    if slot < rows && sharer == 0 {
        let of_batch = group * queries * key_heads;
        let row = slot % (group * queries);
        let head = slot % of_batch / (group * queries) * group + row % group;
        let out_first = (slot / of_batch * out_strides[0] + head * out_strides[1] + row / group * out_strides[2]) / 4;
        out.set_vec4(out_first + quad, result(sum, share(largest, total, sink_of(sinks, head))));
    }
}
