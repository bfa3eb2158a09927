//! Attention: softmax(q kᵀ · scale, capped, biased, of the keys that a query sees) v, head by head. No kernel writes the matrix of scores, unless it is asked for.
//!
//! | kernel | a workgroup has | for |
//! |---|---|---|
//! | [`tiled`] | 64 or 16 rows, 128 keys at a time | many queries |
//! | [`staged`] | 128 rows, 128 keys at a time | many queries of `f32`, with much workgroup memory |
//! | [`matrices`] | 64 rows, 64 keys at a time | many queries of `f16`, on matrix units |
//! | [`row`] | a row and a part of the keys | a query of many keys, where reading these is all that counts |
//! | [`grouped`] | 2, 4 or 8 rows and a part of the keys | queries that share keys, such as those of heads in groups, where it is nearly all |
//! | [`join`] | | what [`tiled`], [`grouped`] and, in WGSL, [`row`] leave where several workgroups share the keys of a row |
//! | [`plain`] | one row | any strides, any extents and `f64`; and scores, if somebody wants to see them |
//!
//! **Rows.** The queries of all heads that share a head of keys are *rows* of it: row `r` is query `r / group` of head `r % group` among them. So keys and values are read once for the group.
//!
//! **Which keys a query sees** is one range for every mask but the bias: a query stands at a position among the keys, and sees `window[0]` keys before it and `window[1]` behind it
//! ([`seen`]); causal attention sees none behind. What hides single keys comes as a bias of minus infinity, which hides a key whatever its score.
//!
//! **A query that sees no key** gives zeros.
//!
//! **Numbers.** Elements are `f32`, `f16` or `bf16`, and everything between them is `f32`; or they are `f64`, and so is everything between them.

pub mod doubles;
pub mod grouped;
pub mod join;
pub mod matrices;
pub mod plain;
pub mod row;
pub mod staged;
pub mod tiled;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

/// Every kernel of this family.
pub fn kernels() -> Vec<&'static Kernel> {
    [
        join::attention_join::KERNELS,
        plain::attention_plain_f64::KERNELS,
        plain::attention_plain::KERNELS,
        &grouped::kernels(),
        &row::kernels(),
        staged::attention_staged::KERNELS,
        tiled::attention_tiled::KERNELS,
        &matrices::kernels(),
    ]
    .concat()
}

/// What stands for no bound of a window: further than any key.
pub const UNBOUNDED: u32 = (1 << 30) - 1;

/// How many of a batch's keys count: all, or so many as `lengths` says if it is not empty.
#[device]
pub fn key_count(lengths: &[u32], batch: usize, keys: usize) -> usize {
    if lengths.is_empty() { keys } else { min(lengths[batch] as usize, keys) }
}

/// Where the first query stands among the keys: at `offset`; or `from_end`, where the last query stands at the last key that counts.
#[device]
pub fn first_position(offset: i32, from_end: bool, count: usize, queries: usize) -> i32 {
    if from_end { count as i32 - queries as i32 } else { offset }
}

/// The first key that a query at a position sees, and the one after the last; both the same if it sees none.
#[device]
pub fn seen(position: i32, count: usize, window: [i32; 2]) -> Vec2<usize> {
    let first = clamp(position - window[0], 0, count as i32);
    let end = clamp(position + window[1] + 1, first, count as i32);
    Vec2::new(first as usize, end as usize)
}

/// A scaled product of a query and a key, held between `-cap` and `cap`; as it is if the cap is 0.
#[device]
pub fn capped(product: f32, cap: f32) -> f32 {
    if cap > 0.0 { tanh(product / cap) * cap } else { product }
}

/// A score with its bias. One of minus infinity hides the key, whatever the score is.
#[device]
pub fn biased(score: f32, bias: f32) -> f32 {
    if bias == f32::NEG_INFINITY { f32::NEG_INFINITY } else { score + bias }
}

/// 2^x of an x that is at most 0; where it would be subnormal it may be 0, which adds nothing to a sum that has a 1 in it.
#[device(fast)]
pub fn power(x: f32) -> f32 {
    exp2(x)
}

/// e^(score - largest), of scores that are at most `largest`; where all are minus infinity it is 0. A score that is not a number stays one: the largest of what comes before it may be minus infinity.
#[device]
pub fn weight(score: f32, largest: f32) -> f32 {
    // As long as all are minus infinity, so are their distances from 0.
    let base = select(largest == f32::NEG_INFINITY, 0.0, largest);
    power((score - base) * LOG2_E)
}

/// Adds a part of a row's keys to others: what their sums of weights and of weighted values are, by the largest score of each.
#[device]
pub fn add_part(
    largest: &mut f32,
    total: &mut f32,
    sum: &mut Vec4<f32>,
    largest_of_part: f32,
    total_of_part: f32,
    sum_of_part: Vec4<f32>,
) {
    let most = max(*largest, largest_of_part);
    let (before, now) = (weight(*largest, most), weight(largest_of_part, most));
    *total = *total * before + total_of_part * now;
    *sum = *sum * before + sum_of_part * now;
    *largest = most;
}

/// Whether a part has seen a key, by its largest score and its sum of weights; what has seen none may have left anything as its sum of values.
#[device]
pub fn has_seen(largest: f32, total: f32) -> bool {
    largest > f32::NEG_INFINITY || is_nan(total)
}

/// By what a weighted sum of values is multiplied, of weights by the largest score and their sum, if a sink of a score takes a share too.
#[device]
pub fn share(largest: f32, total: f32, sink: f32) -> f32 {
    let most = max(largest, sink);
    let own = weight(largest, most);
    let sum = total * own + weight(sink, most);
    if largest == f32::NEG_INFINITY { 0.0 } else { own / sum }
}

/// The sink of a head; minus infinity if there are none.
#[device]
pub fn sink_of<T: Float>(sinks: &[T], head: usize) -> f32 {
    if sinks.is_empty() { f32::NEG_INFINITY } else { sinks[head].to_f32() }
}

/// Four elements as numbers to compute with.
#[device]
pub fn wide<T: Float>(x: Vec4<T>) -> Vec4<f32> {
    Vec4::new(x.x.to_f32(), x.y.to_f32(), x.z.to_f32(), x.w.to_f32())
}

/// Four numbers as elements, of a weighted sum and the share that it gets; zeros if nothing was seen, whatever the sum is.
#[device]
pub fn result<T: Float>(sum: Vec4<f32>, share: f32) -> Vec4<T> {
    let scaled = if share == 0.0 { Vec4::splat(0.0) } else { sum * share };
    Vec4::new(T::from_f32(scaled.x), T::from_f32(scaled.y), T::from_f32(scaled.z), T::from_f32(scaled.w))
}
