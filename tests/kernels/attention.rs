//! Attention: lengths around its blocks of 16 queries and steps of 8, 16 and 32 keys, masks, causality, grouped heads, and operands in both orders of axes.

use crate::case::{Case, EPSILON, Expected, FLUSHED, Operand, kernel};
use crate::numbers::numbers;

#[derive(Clone, Copy, Debug)]
struct Shape {
    batches: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    head: usize,
}

/// What is added to the scores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    /// One number for each score.
    Whole,
    /// One for each batch and key, as padding is masked: of the last batch it hides every key but the first, by infinity and by a large number in turn.
    Padding,
    /// Hides every key from every query.
    All,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    mask: Mask,
    causal: bool,
    /// Batch, position, head, element, instead of batch, head, position, element.
    positions_first: bool,
    /// Elements between heads that belong to nobody, a multiple of 4.
    gap: usize,
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, heads) in [("attention_8", [4, 28, 32]), ("attention_16", [4, 36, 64]), ("attention_32", [12, 68, 128])]
    {
        let lengths = [(0, 3), (1, 1), (5, 7), (16, 32), (17, 33), (2, 37)];
        for (index, (queries, keys)) in lengths.into_iter().enumerate() {
            let key_heads = 1 + index % 2;
            let shape = Shape { batches: 1 + index % 2, heads: 2, key_heads, queries, keys, head: heads[index % 3] };
            let gap = if index % 3 == 0 { 0 } else { 4 };
            let plain = Options { mask: Mask::None, causal: false, positions_first: index % 2 == 1, gap };
            cases.push(case(name, shape, plain));
            cases.push(case(name, shape, Options { causal: true, mask: Mask::Padding, ..plain }));
        }
        let shape = Shape { batches: 2, heads: 3, key_heads: 1, queries: 7, keys: 19, head: heads[1] };
        let whole = Options { mask: Mask::Whole, causal: false, positions_first: true, gap: 0 };
        cases.push(case(name, shape, whole));
        // The first queries see no key, and give zeros.
        let few_keys = Shape { queries: 35, keys: 3, ..shape };
        cases.push(case(name, few_keys, Options { mask: Mask::None, causal: true, ..whole }));
        cases.push(case(name, shape, Options { mask: Mask::All, ..whole }));
        cases.push(case(name, Shape { keys: 0, ..shape }, Options { mask: Mask::None, ..whole }));
    }
    cases
}

/// Strides of batch, head, and position, and the elements that they reach over.
fn layout(shape: &Shape, heads: usize, positions: usize, options: Options) -> ([usize; 3], usize) {
    let element = shape.head + options.gap;
    let strides = if options.positions_first {
        [positions * heads * element, element, heads * element]
    } else {
        [heads * positions * element, positions * element, element]
    };
    (strides, shape.batches * heads * positions * element)
}

/// Numbers where heads are and NaN between them.
fn operand(shape: &Shape, options: Options, count: usize, seed: u32) -> Vec<f32> {
    let element = shape.head + options.gap;
    let mut values = numbers(count, seed, 1.5);
    values.iter_mut().enumerate().filter(|(at, _)| at % element >= shape.head).for_each(|(_, x)| *x = f32::NAN);
    values
}

/// The mask and its strides of batch, head, query and key.
fn mask(shape: &Shape, mask: Mask) -> (Vec<f32>, [usize; 4]) {
    let Shape { batches, heads, queries, keys, .. } = *shape;
    match mask {
        Mask::None => (Vec::new(), [0; 4]),
        Mask::Whole => {
            let strides = [heads * queries * keys, queries * keys, keys, 1];
            (numbers(batches * heads * queries * keys, 18, 3.0), strides)
        }
        Mask::Padding => {
            let hidden = |i: usize| if i.is_multiple_of(2) { f32::NEG_INFINITY } else { -10_000.0 };
            let of = |i: usize| if i / keys + 1 == batches && !i.is_multiple_of(keys) { hidden(i) } else { 0.0 };
            ((0..batches * keys).map(of).collect(), [keys, 0, 0, 1])
        }
        Mask::All => (vec![f32::NEG_INFINITY; keys], [0, 0, 0, 1]),
    }
}

fn case(name: &str, shape: Shape, options: Options) -> Case {
    let Shape { batches, heads, key_heads, queries, keys, head } = shape;
    let (q_strides, q_count) = layout(&shape, heads, queries, options);
    let (k_strides, k_count) = layout(&shape, key_heads, keys, options);
    let q = operand(&shape, options, q_count, 15);
    let k = operand(&shape, options, k_count, 16);
    let v = operand(&shape, options, k_count, 17);
    let (mask, mask_strides) = mask(&shape, options.mask);
    let scale = 0.4_f32;
    let mut expected = vec![None; q_count];
    for (batch, head_index) in (0..batches).flat_map(|batch| (0..heads).map(move |head| (batch, head))) {
        let key_head = head_index / (heads / key_heads);
        for query in 0..queries {
            let own = batch * q_strides[0] + head_index * q_strides[1] + query * q_strides[2];
            let of_key = |key: usize| batch * k_strides[0] + key_head * k_strides[1] + key * k_strides[2];
            let mask_first = batch * mask_strides[0] + head_index * mask_strides[1] + query * mask_strides[2];
            let seen: Vec<_> = (0..keys)
                .filter(|key| !options.causal || *key as isize <= query as isize + keys as isize - queries as isize)
                .map(|key| Key {
                    k: &k[of_key(key)..of_key(key) + head],
                    v: &v[of_key(key)..of_key(key) + head],
                    mask: mask.get(mask_first + key * mask_strides[3]).map_or(0.0, |x| f64::from(*x)),
                })
                .collect();
            let row = attended(&q[own..own + head], &seen, f64::from(scale));
            expected[own..own + head].copy_from_slice(&row);
        }
    }
    Case {
        kernel: kernel(name),
        about: format!("{shape:?}, {options:?}"),
        operands: [q, k, v, mask].map(Operand::F32).to_vec(),
        values: Box::new(move |launch| {
            let launch = launch.value(heads)?.value(heads / key_heads)?.value(queries)?.value(keys)?.value(head)?;
            let launch = launch.value(q_strides)?.value(k_strides)?.value(k_strides)?.value(q_strides)?;
            launch.value(mask_strides)?.value(scale)?.value(options.causal)
        }),
        groups: batches * heads * queries.div_ceil(trefoil::kernels::attention::QUERIES),
        expected,
    }
}

/// A key that a query sees.
struct Key<'a> {
    k: &'a [f32],
    v: &'a [f32],
    mask: f64,
}

/// softmax of the scores, times the values; zeros if no score is above minus infinity.
///
/// A score rounds once a product and addition, and when the mask is added; its exponential is off by 3 + 2 |x| ulp and by the rounding of its argument; each step of 16 keys
/// multiplies once more by an exponential; sums over keys round once a key.
fn attended(q: &[f32], keys: &[Key<'_>], scale: f64) -> Vec<Option<Expected>> {
    let product = |k: &[f32], of: fn(f64) -> f64| -> f64 {
        q.iter().zip(k).map(|(q, k)| of(f64::from(*q) * f64::from(*k))).sum::<f64>() * scale
    };
    let scores: Vec<f64> = keys.iter().map(|key| product(key.k, |x| x) + key.mask).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return vec![Some(Expected { value: 0.0, tolerance: 0.0 }); q.len()];
    }
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    // By how much of itself each weight may be off; nothing where it is nothing.
    let largest_product = keys.iter().map(|key| product(key.k, f64::abs)).fold(0.0, f64::max);
    let off: Vec<f64> = weights
        .iter()
        .zip(keys)
        .zip(&scores)
        .map(|((weight, key), score)| {
            if *weight == 0.0 {
                return 0.0;
            }
            let of_score = (q.len() as f64 + 5.0) * largest_product + 2.0 * key.mask.abs() + score.abs();
            // A sum is scaled anew after each step of 8 keys or more, and once when the invocations of a query agree.
            let scaled = 1 + keys.len().div_ceil(8);
            let of_exponential = 3.0 + 4.0 * (score - largest).abs() + 5.0 * scaled as f64;
            2.0 * (of_score + of_exponential) * EPSILON
        })
        .collect();
    let off_sum = weights.iter().zip(&off).map(|(weight, off)| weight * off).sum::<f64>() / sum;
    let of_sums = (keys.len() as f64 + 8.0) * EPSILON;
    (0..q.len())
        .map(|element| {
            let average = |term: &dyn Fn(usize, f64) -> f64| -> f64 {
                let terms = keys.iter().enumerate().map(|(at, key)| weights[at] * term(at, key.v[element].into()));
                terms.sum::<f64>() / sum
            };
            let value = average(&|_, v| v);
            let tolerance = average(&|at, v| v.abs() * (off[at] + off_sum + of_sums)) + FLUSHED;
            Some(Expected { value, tolerance })
        })
        .collect()
}
