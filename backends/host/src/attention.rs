//! Attention: softmax(q kᵀ · scale, capped, biased, of the keys that a query sees) v, head by head.
//!
//! A thread takes some queries that share a head of keys, maybe of several heads. It rearranges the head's keys and values into panels, and then computes whole rows of scores, as many as a tile has rows:
//! scores never leave the thread's cache.

use rayon::prelude::*;

use crate::isa::{self, Work};
use crate::math::{exponentials, largest};
use crate::tile::{add_products, pack, steps, write};

/// Blocks for each thread, so that threads that are done early take more.
const BLOCKS_PER_THREAD: usize = 4;
/// The fewest queries of a block, unless the head has fewer: each block rearranges the head's keys and values.
const QUERIES: usize = 64;
/// The fewest queries of a block that are of several heads, unless fewer share the head of keys: as many as any tile has rows, which costs the same whether it is full or not.
const TILE: usize = 8;

/// Queries, keys or values: the elements of a head lie together.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// The elements, and maybe others.
    pub values: &'a [f32],
    /// From one batch, head and position to the next, in elements.
    pub strides: [usize; 3],
}

/// What is added to scores; minus infinity hides a key.
#[derive(Clone, Copy, Debug)]
pub struct Bias<'a> {
    /// The elements, and maybe others.
    pub values: &'a [f32],
    /// From one batch, head, query and key to the next, in elements; 0 where it is broadcast.
    pub strides: [usize; 4],
}

/// The operands of an attention and its result's arrangement.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// How many batches.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, which divide those of queries.
    pub key_heads: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys of a head.
    pub keys: usize,
    /// Elements of a query and a key.
    pub elements: usize,
    /// Elements of a value.
    pub value_elements: usize,
    /// The queries.
    pub q: Heads<'a>,
    /// The keys.
    pub k: Heads<'a>,
    /// The values.
    pub v: Heads<'a>,
    /// The bias, if there is one.
    pub bias: Option<Bias<'a>>,
    /// How many keys of each batch count; all, if it is not given.
    pub lengths: Option<&'a [u32]>,
    /// For each head a score that takes its share of the weights but has no value.
    pub sinks: Option<&'a [f32]>,
    /// Multiplies the products of queries and keys.
    pub scale: f32,
    /// If it is given, scaled products become `cap * tanh(product / cap)`.
    pub cap: Option<f32>,
    /// At which key the first query stands; if it is not given, the last query stands at the last key that counts.
    pub first: Option<i64>,
    /// How many keys before its position a query sees, and how many behind it.
    pub window: [i64; 2],
    /// Whether the result is `[batch, queries, heads, elements]`, not `[batch, heads, queries, elements]`.
    pub heads_inside: bool,
}

/// Checks that elements of such extents lie within so many.
fn check<const N: usize>(name: &str, extents: [usize; N], strides: [usize; N], count: usize) -> Result<(), String> {
    let last = extents
        .iter()
        .zip(strides)
        .try_fold(0usize, |sum, (extent, stride)| sum.checked_add(extent.saturating_sub(1).checked_mul(stride)?));
    if extents.contains(&0) || last.is_some_and(|last| last < count) {
        return Ok(());
    }
    Err(format!("`{name}`: {extents:?} elements by strides of {strides:?} do not fit {count}"))
}

/// Computes an attention into `out`. A query that sees no key gives zeros.
///
/// # Errors
/// An operand or the result is too short, or the heads of keys do not divide those of queries.
pub fn attention(attention: &Attention<'_>, out: &mut [f32]) -> Result<(), String> {
    let Attention { batch, heads, key_heads, queries, keys, elements, value_elements, q, k, v, .. } = *attention;
    for (name, operand, extents) in [
        ("q", q, [batch, heads, queries, elements]),
        ("k", k, [batch, key_heads, keys, elements]),
        ("v", v, [batch, key_heads, keys, value_elements]),
    ] {
        let [batch, head, position] = operand.strides;
        check(name, extents, [batch, head, position, 1], operand.values.len())?;
    }
    if let Some(bias) = attention.bias {
        check("bias", [batch, heads, queries, keys], bias.strides, bias.values.len())?;
    }
    for (name, given, wanted) in
        [("lengths", attention.lengths.map(<[u32]>::len), batch), ("sinks", attention.sinks.map(<[f32]>::len), heads)]
    {
        if let Some(given) = given.filter(|given| *given < wanted) {
            return Err(format!("`{name}`: {given} elements given, {wanted} expected"));
        }
    }
    let given = out.len();
    let wanted = [heads, queries, value_elements].iter().try_fold(batch, |count, extent| count.checked_mul(*extent));
    let out = wanted.and_then(|count| out.get_mut(..count)).ok_or_else(|| {
        format!("the result: {given} elements given, {batch} x {heads} x {queries} x {value_elements} expected")
    })?;
    if out.is_empty() {
        return Ok(());
    }
    if key_heads == 0 || !heads.is_multiple_of(key_heads) {
        return Err(format!("{heads} heads of queries and {key_heads} heads of keys"));
    }
    let sharing = attention.sharing();
    let wanted = (rayon::current_num_threads() * BLOCKS_PER_THREAD).div_ceil(batch * key_heads);
    let rows = (sharing * queries).div_ceil(wanted).max(QUERIES.min(queries)).max(TILE);
    let per_head = (sharing * queries).div_ceil(rows);
    let mut blocks: Vec<_> = (0..batch * key_heads * per_head)
        .map(|block| Block {
            attention,
            batch: block / per_head / key_heads,
            key_head: block / per_head % key_heads,
            first: block % per_head * rows,
            out: Vec::with_capacity(rows.min(sharing * queries)),
        })
        .collect();
    for (index, out) in out.chunks_mut(value_elements).enumerate() {
        let (outer, inner) =
            if attention.heads_inside { (index / heads, index % heads) } else { (index / queries, index % queries) };
        let (batch, head, query) = if attention.heads_inside {
            (outer / queries, inner, outer % queries)
        } else {
            (outer / heads, outer % heads, inner)
        };
        let row = attention.row(head % sharing, query);
        blocks[(batch * key_heads + head / sharing) * per_head + row / rows].out.push(out);
    }
    blocks.into_par_iter().with_max_len(1).for_each(isa::run);
    Ok(())
}

impl Attention<'_> {
    /// How many heads of queries share one of keys.
    fn sharing(&self) -> usize {
        self.heads / self.key_heads
    }

    /// The row of a query among all that share a head of keys, of which its head is that one: rows lie in the result in their order.
    fn row(&self, head: usize, query: usize) -> usize {
        if self.heads_inside { query * self.sharing() + head } else { head * self.queries + query }
    }
}

/// Some queries that share a head of keys.
struct Block<'t, 'a> {
    attention: &'t Attention<'a>,
    batch: usize,
    key_head: usize,
    /// The first query's row ([`Attention::row`]).
    first: usize,
    /// The result of each.
    out: Vec<&'t mut [f32]>,
}

/// All panels of a matrix; `strides` are those of K and of columns.
#[inline(always)]
fn panels<const VECTORS: usize, const LANES: usize>(
    values: &[f32],
    strides: [usize; 2],
    k: usize,
    columns: usize,
) -> Vec<f32> {
    let width = VECTORS * LANES;
    let mut panels = vec![0.0; k * columns.next_multiple_of(width)];
    if k > 0 {
        for (index, panel) in panels.chunks_mut(k * width).enumerate() {
            let first = index * width;
            pack::<VECTORS, LANES>(panel, &values[first * strides[1]..], strides, width.min(columns - first));
        }
    }
    panels
}

impl Work for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(mut self) {
        let Attention { elements, value_elements, q, k, v, .. } = *self.attention;
        // What lies behind them may be anything.
        let keys = self.count();
        if keys == 0 {
            self.out.iter_mut().for_each(|row| row.fill(0.0));
            return;
        }
        let width = VECTORS * LANES;
        let (batch, key_head) = (self.batch, self.key_head);
        let of_head = |from: Heads<'_>, head: usize| batch * from.strides[0] + head * from.strides[1];
        let key_panels = panels::<VECTORS, LANES>(&k.values[of_head(k, key_head)..], [1, k.strides[2]], elements, keys);
        let value_panels =
            panels::<VECTORS, LANES>(&v.values[of_head(v, key_head)..], [v.strides[2], 1], keys, value_elements);
        let zero = [[[0.0; LANES]; VECTORS]; ROWS];
        let row_length = keys.next_multiple_of(width);
        let mut scores = vec![0.0; ROWS * row_length];
        for group in 0..self.out.len().div_ceil(ROWS) {
            let first = self.first + group * ROWS;
            let count = ROWS.min(self.out.len() - group * ROWS);
            // Rows that there are not are the last one again.
            let rows: [&[f32]; ROWS] = std::array::from_fn(|i| {
                let [head, query] = self.place(first + i.min(count - 1));
                &q.values[of_head(q, head) + query * q.strides[2]..][..elements]
            });
            if elements == 0 {
                scores.fill(0.0);
            }
            for (index, panel) in key_panels.chunks_exact((elements * width).max(1)).enumerate() {
                let mut sums = zero;
                add_products(rows, steps(panel), &mut sums);
                for (row, sums) in scores.chunks_exact_mut(row_length).zip(&sums) {
                    write(&mut row[index * width..][..width], sums);
                }
            }
            let mut factors = [0.0; ROWS];
            for (i, row) in scores.chunks_exact_mut(row_length).take(count).enumerate() {
                let total = self.weights::<FMA, LANES>(self.place(first + i), &mut row[..keys]);
                factors[i] = if total > 0.0 || total.is_nan() { 1.0 / total } else { 0.0 };
            }
            let rows: [&[f32]; ROWS] = std::array::from_fn(|i| &scores[i * row_length..][..keys]);
            for (index, panel) in value_panels.chunks_exact(keys * width).enumerate() {
                let mut sums = zero;
                add_products(rows, steps(panel), &mut sums);
                for (i, out) in self.out[group * ROWS..][..count].iter_mut().enumerate() {
                    sums[i].as_flattened_mut().iter_mut().for_each(|sum| *sum *= factors[i]);
                    let used = width.min(value_elements - index * width);
                    write(&mut out[index * width..][..used], &sums[i]);
                }
            }
        }
    }
}

impl Block<'_, '_> {
    /// How many keys count.
    fn count(&self) -> usize {
        let Attention { keys, lengths, .. } = *self.attention;
        lengths.map_or(keys, |lengths| keys.min(lengths[self.batch] as usize))
    }

    /// The head and the query of a row.
    fn place(&self, row: usize) -> [usize; 2] {
        let (sharing, queries) = (self.attention.sharing(), self.attention.queries);
        let (head, query) =
            if self.attention.heads_inside { (row % sharing, row / sharing) } else { (row / queries, row % queries) };
        [self.key_head * sharing + head, query]
    }

    /// The first key that a query sees, and the one after the last.
    fn seen(&self, query: usize) -> [usize; 2] {
        let Attention { queries, first, window: [before, behind], .. } = *self.attention;
        let count = self.count() as i64;
        let position = query as i64 + first.unwrap_or(count - queries as i64);
        let from = (position - before).clamp(0, count);
        [from as usize, (position + behind + 1).clamp(from, count) as usize]
    }

    /// Makes weights of a query's products with the keys, and gives their sum. If the query sees no key, all are 0.
    #[inline(always)]
    fn weights<const FMA: bool, const LANES: usize>(&self, [head, query]: [usize; 2], row: &mut [f32]) -> f32 {
        let Attention { scale, cap, bias, sinks, .. } = *self.attention;
        let [from, end] = self.seen(query);
        row[..from].fill(0.0);
        row[end..].fill(0.0);
        let row = &mut row[from..end];
        match cap {
            Some(cap) => row.iter_mut().for_each(|score| *score = (*score * scale / cap).tanh() * cap),
            None => row.iter_mut().for_each(|score| *score *= scale),
        }
        if let Some(Bias { values, strides: [of_batch, of_head, of_query, of_key] }) = bias {
            let first = self.batch * of_batch + head * of_head + query * of_query + from * of_key;
            if of_key == 1 {
                let added = &values[first..][..row.len()];
                row.iter_mut().zip(added).for_each(|(score, added)| *score = biased(*score, *added));
            } else {
                let added = |key: usize| values[first + key * of_key];
                row.iter_mut().enumerate().for_each(|(key, score)| *score = biased(*score, added(key)));
            }
        }
        let most = largest::<LANES>(row);
        if most == f32::NEG_INFINITY {
            row.fill(0.0);
            return 0.0;
        }
        let sink = sinks.map_or(f32::NEG_INFINITY, |sinks| sinks[head]);
        let most = most.max(sink);
        exponentials::<FMA, LANES>(row, most) + (sink - most).exp()
    }
}

/// A score with its bias. One of minus infinity hides the key, whatever the score is.
#[inline(always)]
fn biased(score: f32, bias: f32) -> f32 {
    if bias == f32::NEG_INFINITY { bias } else { score + bias }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;

    /// Each query finds the one key that is its own, among those of the head that its head shares with others.
    #[test]
    fn heads_that_share_keys_see_those_of_theirs() {
        const KEYS: usize = 11;
        const SIZE: usize = 3;
        let (batch, heads) = (2, 6);
        // Every key is a direction of its own. Products of others are so small beside that with the own one that their weights are nothing, so that results are exact.
        let direction = |position: usize, length: f32| (0..KEYS).map(move |i| if i == position { length } else { 0.0 });
        for (key_heads, queries) in [(6, 5), (3, 1), (2, 1), (2, 40), (1, 70), (3, 300)] {
            let own = |row: usize| row * 7 % KEYS;
            let q: Vec<f32> = (0..batch * heads * queries).flat_map(|row| direction(own(row), 1000.0)).collect();
            let k: Vec<f32> = (0..batch * key_heads * KEYS).flat_map(|row| direction(row % KEYS, 1.0)).collect();
            let v: Vec<f32> = (0..batch * key_heads * KEYS * SIZE).map(|i| i as f32 + 1.0).collect();
            for heads_inside in [false, true] {
                let operands = Attention {
                    batch,
                    heads,
                    key_heads,
                    queries,
                    keys: KEYS,
                    elements: KEYS,
                    value_elements: SIZE,
                    q: Heads { values: &q, strides: [heads * queries * KEYS, queries * KEYS, KEYS] },
                    k: Heads { values: &k, strides: [key_heads * KEYS * KEYS, KEYS * KEYS, KEYS] },
                    v: Heads { values: &v, strides: [key_heads * KEYS * SIZE, KEYS * SIZE, SIZE] },
                    bias: None,
                    lengths: None,
                    sinks: None,
                    scale: 1.0,
                    cap: None,
                    first: None,
                    window: [i64::from(i32::MAX); 2],
                    heads_inside,
                };
                let mut expected = vec![0.0; batch * heads * queries * SIZE];
                for row in 0..batch * heads * queries {
                    let (batch, head, query) = (row / queries / heads, row / queries % heads, row % queries);
                    let key = (batch * key_heads + head / (heads / key_heads)) * KEYS + own(row);
                    let place = if heads_inside { (batch * queries + query) * heads + head } else { row };
                    expected[place * SIZE..][..SIZE].copy_from_slice(&v[key * SIZE..][..SIZE]);
                }
                for threads in [1, 3, 16] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    at_every_level(|| {
                        let mut out = vec![f32::NAN; expected.len()];
                        pool.install(|| attention(&operands, &mut out)).unwrap();
                        assert!(out == expected, "{key_heads} {queries} {heads_inside} {threads}");
                    });
                }
            }
        }
    }

    #[test]
    fn means_of_many_values_are_accurate() {
        const ELEMENTS: usize = 4;
        for keys in [4096, 100_003] {
            let (q, k, v) = (vec![0.0; 2 * ELEMENTS], vec![1.0; keys * ELEMENTS], vec![0.1; keys * ELEMENTS]);
            // Of one batch and head; every query sees every key, and every key has the same weight.
            let strides = [0, 0, ELEMENTS];
            let operands = Attention {
                batch: 1,
                heads: 1,
                key_heads: 1,
                queries: 2,
                keys,
                elements: ELEMENTS,
                value_elements: ELEMENTS,
                q: Heads { values: &q, strides },
                k: Heads { values: &k, strides },
                v: Heads { values: &v, strides },
                bias: None,
                lengths: None,
                sinks: None,
                scale: 1.0,
                cap: None,
                first: None,
                window: [i64::from(i32::MAX); 2],
                heads_inside: false,
            };
            at_every_level(|| {
                let mut out = [f32::NAN; 2 * ELEMENTS];
                attention(&operands, &mut out).unwrap();
                assert!(out.iter().all(|mean| (mean - 0.1).abs() <= 3e-6), "{keys}: {out:?}, not 0.1");
            });
        }
    }
}
