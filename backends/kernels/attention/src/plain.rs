//! Any strides, any extents, and doubles; and scores for who wants to see them.

use trefoil_dsl::prelude::*;

use super::doubles::{capped_double, largest_double, weight_of_double};
use super::{capped, first_position, key_count, seen, weight};
use trefoil_kernels_common::workgroup::workgroup_max;

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

/// The largest of `largest` and the scores of a workgroup, by way of `scratch`; of invocations without a key these are minus infinity.
#[device]
fn largest_score(score: f32, largest: f32, _count: usize, scratch: &mut [f32]) -> f32 {
    max(largest, workgroup_max::<SIZE>(score, 0, scratch))
}

/// out = attention of a row of `sizes[4]` elements; a workgroup has a row and [`SIZE`] columns.
///
/// Its operands are those of [`super::tiled::attention_tiled`], but sizes count elements and not quads, all strides have the element's at their end, and the last of the sizes is not there.
///
/// * `scratch`, `weights`: [`SIZE`] numbers of the workgroup each.
/// * `zero`, `lowest`: of the numbers that are computed with; the latter is minus infinity.
/// * `number` and `element` make the one of the other, `factor` numbers of what is `f32` in every kernel; `cap`, `weight` and `largest` as [`capped`], [`weight`] and [`largest_score`].
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
fn attend<
    T: Element,
    N: Number,
    R: Fn(T) -> N,
    G: Fn(N) -> T,
    F: Fn(f32) -> N,
    C: Fn(N, f32) -> N,
    W: Fn(N, N) -> N,
    L: Fn(N, N, usize, &mut [N]) -> N,
>(
    q: &[T],
    k: &[T],
    v: &[T],
    bias: &[T],
    lengths: &[u32],
    sinks: &[T],
    out: &mut [T],
    told: &mut [T],
    scratch: &mut [N],
    weights: &mut [N],
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
    zero: N,
    lowest: N,
    number: R,
    element: G,
    factor: F,
    held_by_cap: C,
    weigh: W,
    largest_of: L,
) {
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
    let mut sink = lowest;
    if !sinks.is_empty() {
        sink = number(sinks[head]);
    }
    // Who tells scores looks at all keys, and for weights once more when their sum is known.
    let tells = stage != Scores::Nothing;
    let (from, to) = (if tells { 0 } else { own.x }, if tells { keys } else { own.y });
    let rounds = if stage == Scores::Weights { 2 } else { 1 };
    let mut largest = lowest;
    let mut total = zero;
    let mut sum = zero;
    let mut share = zero;
    for round in 0..rounds {
        for start in (from..to).step_by(SIZE) {
            let key = start + local_index();
            let mut product = zero;
            if key < to {
                for i in 0..sizes[4] {
                    let left = number(q[q_first + i * q_strides[3]]);
                    product = left * number(k[k_first + key * k_strides[2] + i * k_strides[3]]) + product;
                }
            }
            let scaled = product * factor(scale);
            let held = held_by_cap(scaled, cap);
            let mut score = held;
            if !bias.is_empty() {
                let added = number(bias[select(key < to, bias_first + key * bias_strides[3], bias.len())]);
                // One of minus infinity hides the key, whatever the score is.
                score = if added == lowest { lowest } else { score + added };
            }
            if key < own.x || key >= own.y {
                score = lowest;
            }
            if round == 0 {
                let here = min(SIZE, to - start);
                let most = largest_of(score, largest, here, scratch);
                let shrink = weigh(largest, most);
                largest = most;
                weights[local_index()] = weigh(score, most);
                barrier();
                total *= shrink;
                sum *= shrink;
                for other in 0..here {
                    // Who tells scores looks at keys that the query does not see, whose values may be anything.
                    let place = start + other;
                    let reads = column < sizes[5] && place >= own.x && place < own.y;
                    let value = v[select(reads, v_first + place * v_strides[2], v.len())];
                    total += weights[other];
                    sum = number(value) * weights[other] + sum;
                }
                barrier();
            }
            if column == local_index() && key < to {
                if stage == Scores::Products {
                    told[told_first + key] = element(scaled);
                }
                if stage == Scores::Capped {
                    told[told_first + key] = element(held);
                }
                if stage == Scores::Biased {
                    told[told_first + key] = element(score);
                }
                if stage == Scores::Weights && round == 1 {
                    // Zeros if nothing was seen, as the result then is.
                    told[told_first + key] = element(select(share == zero, zero, weigh(score, largest) * share));
                }
            }
        }
        if round == 0 && largest != lowest {
            let most = max(largest, sink);
            let part = weigh(largest, most);
            share = part / (total * part + weigh(sink, most));
        }
    }
    if column < sizes[5] {
        let place = batch * out_strides[0] + head * out_strides[1] + query * out_strides[2] + column * out_strides[3];
        // Zeros if nothing was seen, whatever the sum is.
        out[place] = element(if share == zero { zero } else { sum * share });
    }
}

/// A kernel: attributes, generics, `elements, numbers`, and what [`attend`] wants to know of them.
macro_rules! plain {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $element:ty, $number:ty, [$($closures:tt)*]
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(128), $($attribute)*)]
        pub fn $name $($generics)* (
            q: &[$element],
            k: &[$element],
            v: &[$element],
            bias: &[$element],
            lengths: &[u32],
            sinks: &[$element],
            out: &mut [$element],
            told: &mut [$element],
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
            let mut scratch = workgroup_array::<$number>(SIZE);
            let mut weights = workgroup_array::<$number>(SIZE);
            attend(
                q, k, v, bias, lengths, sinks, out, told, &mut scratch, &mut weights, sizes, q_strides, k_strides,
                v_strides, out_strides, bias_strides, scale, cap, offset, from_end, window, stage, $($closures)*,
            );
        }
    };
}

plain! {
    /// Of floats of up to 32 bits: `attend`.
    attention_plain [instances(T = [f32, f16, bf16])] [<T: Float>] T, f32,
    [0.0, f32::NEG_INFINITY, |x| x.to_f32(), |x| T::from_f32(x), |x| x, capped, weight, largest_score]
}

plain! {
    /// Of doubles: `attend`.
    attention_plain_f64 [requires(Float64, Int64)] [] f64, f64,
    [0.0, f64::NEG_INFINITY, |x| x, |x| x, |x| x as f64, capped_double, weight_of_double, largest_double]
}
