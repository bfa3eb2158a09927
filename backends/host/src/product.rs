//! Matrix products: activation(a b + bias), for batches of matrices in any strides.
//!
//! The result is cut into blocks of rows and columns, which threads take. For each panel of its columns of B a thread rearranges that panel, which then lies in its own cache,
//! and walks down its rows of A, which are read as they lie; for a single row, and for a single column, whose product is a row's the other way round, B is read as it lies too (`one_row`). Halves become `f32` on the way to a panel and to rows, which then lie in a thread's cache too.
//!
//! A tile's sums stay in registers for a piece of K (`tile`), and in the first cache from one piece to the next. Long K is walked along in parts of so many steps, so that what a thread rearranges and gathers has a bound;
//! sums wait in `f64` meanwhile. Pieces and parts follow from the product and the instruction set alone, and so does the order of additions: results are the same whatever the number of threads, which decides on blocks only.

use rayon::prelude::*;
use trefoil_kernels::activation::Activation;

use crate::isa::{self, Work};
use crate::math::activate;
use crate::number::Number;
use crate::one_row::OneRow;
use crate::tile::{PIECE, add_products, pack, steps};

/// Multiply-adds that are not worth a second thread.
const ALONE: usize = 1 << 16;
/// Blocks for each thread, so that threads that are done early take more.
const BLOCKS_PER_THREAD: usize = 4;
/// Rows of a block: rearranging a panel costs as much as multiplying it with some ten rows, so blocks have many more of them, where there are enough blocks.
const ROWS: std::ops::RangeInclusive<usize> = 64..=1024;
/// Columns of the narrowest block; the widest panel has as many.
pub(crate) const COLUMNS: usize = 48;
/// Steps along K of a part, in whole pieces: the widest panel of one has three quarters of a megabyte.
const DEPTH: usize = 8 * PIECE;
/// Elements of A that a block gathers at once: a piece of the most rows, two megabytes.
const GATHERED: usize = 1 << 19;
/// Sums that wait while K is walked along, of all threads together: 32 megabytes.
const WAITING: usize = 1 << 22;

/// A batch of matrices in memory.
#[derive(Clone, Copy, Debug)]
pub struct Matrices<'a, T = f32> {
    /// Their elements, and maybe others.
    pub values: &'a [T],
    /// From one matrix, row and column to the next, in elements.
    pub strides: [usize; 3],
}

/// activation(a b + bias)
#[derive(Clone, Copy, Debug)]
pub struct Product<'a, A = f32, B = f32, C = f32> {
    /// How many products there are.
    pub batch: usize,
    /// Rows of A and of the result.
    pub m: usize,
    /// Columns of B and of the result.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
    /// A.
    pub a: Matrices<'a, A>,
    /// B.
    pub b: Matrices<'a, B>,
    /// Added to every row of the result.
    pub bias: Option<&'a [C]>,
    /// Applied last.
    pub activation: Activation,
}

impl<T> Matrices<'_, T> {
    /// Checks that matrices of such extents lie within the values.
    fn check(&self, name: &str, extents: [usize; 3]) -> Result<(), String> {
        if extents.contains(&0) {
            return Ok(());
        }
        let last = extents
            .iter()
            .zip(self.strides)
            .try_fold(0usize, |sum, (extent, stride)| sum.checked_add((extent - 1).checked_mul(stride)?));
        if last.is_some_and(|last| last < self.values.len()) {
            return Ok(());
        }
        let (strides, count) = (self.strides, self.values.len());
        Err(format!("`{name}`: {extents:?} elements by strides of {strides:?} do not fit {count}"))
    }
}

impl<A: Number, B: Number, C: Number> Product<'_, A, B, C> {
    /// # Errors
    /// An operand is too short.
    fn check(&self) -> Result<(), String> {
        let Self { batch, m, n, k, .. } = *self;
        self.a.check("a", [batch, m, k])?;
        self.b.check("b", [batch, k, n])?;
        match self.bias {
            Some(bias) if bias.len() < n => Err(format!("`bias`: {} elements given, {n} expected", bias.len())),
            _ => Ok(()),
        }
    }

    /// Steps along K of a part. Rounding depends on it, so it must not depend on how many rows a block has, which the number of threads decides.
    fn depth(&self) -> usize {
        if A::singles(self.a.values).is_some() && (self.a.strides[2] == 1 || self.k <= 1) {
            return DEPTH;
        }
        // Rows are gathered.
        let rows = self.m.clamp(1, *ROWS.end());
        (GATHERED / rows / PIECE).clamp(1, DEPTH / PIECE) * PIECE
    }
}

/// Computes a product into `out`, which is `[batch, m, n]`.
///
/// # Errors
/// An operand or the result is too short.
pub fn multiply<A: Number, B: Number, C: Number>(product: &Product<'_, A, B, C>, out: &mut [C]) -> Result<(), String> {
    let Product { batch, m, n, .. } = *product;
    let elements = batch.checked_mul(m).and_then(|rows| rows.checked_mul(n));
    let given = out.len();
    let out = elements
        .and_then(|elements| out.get_mut(..elements))
        .ok_or_else(|| format!("the result: {given} elements given, {batch} x {m} x {n} expected"))?;
    if n == 1 && m > 1 {
        return multiply_column(product, out);
    }
    multiply_into(product, out.chunks_mut(n.max(1)))
}

/// Computes a product whose results are one column each as one of one row: that of the column, by the matrix the other way round.
fn multiply_column<A: Number, B: Number, C: Number>(
    product: &Product<'_, A, B, C>,
    out: &mut [C],
) -> Result<(), String> {
    product.check()?;
    let Product { batch, m, k, a, b, bias, activation, .. } = *product;
    let turned = |[matrix, row, column]: [usize; 3]| [matrix, column, row];
    let bias = bias.map(|bias| vec![bias[0]; m]);
    let row = Product {
        batch,
        m: 1,
        n: m,
        k,
        a: Matrices { values: b.values, strides: turned(b.strides) },
        b: Matrices { values: a.values, strides: turned(a.strides) },
        bias: bias.as_deref(),
        activation,
    };
    multiply_into(&row, out.chunks_mut(m))
}

/// Computes a product into `batch` times `m` rows of `n` elements.
///
/// # Errors
/// An operand is too short.
pub(crate) fn multiply_into<'t, A: Number, B: Number, C: Number>(
    product: &Product<'_, A, B, C>,
    mut rows: impl Iterator<Item = &'t mut [C]>,
) -> Result<(), String> {
    product.check()?;
    let Product { batch, m, n, k, .. } = *product;
    if [batch, m, n].contains(&0) {
        return Ok(());
    }
    let alone = [m, n, k].iter().fold(batch, |terms, extent| terms.saturating_mul(*extent)) <= ALONE;
    let wanted = if alone { 1 } else { rayon::current_num_threads() * BLOCKS_PER_THREAD };
    let (most, columns) = block_size(product, wanted);
    let mut blocks = Vec::new();
    for matrix in 0..batch {
        for first_row in (0..m).step_by(most) {
            let count = most.min(m - first_row);
            let block =
                |first_column| Block { product, matrix, first_row, first_column, out: Vec::with_capacity(count) };
            let mut row_of_blocks: Vec<_> = (0..n).step_by(columns).map(block).collect();
            for row in rows.by_ref().take(count) {
                for (block, part) in row_of_blocks.iter_mut().zip(row.chunks_mut(columns)) {
                    block.out.push(part);
                }
            }
            blocks.append(&mut row_of_blocks);
        }
    }
    if alone {
        blocks.into_iter().for_each(isa::run);
    } else {
        blocks.into_par_iter().with_max_len(1).for_each(isa::run);
    }
    Ok(())
}

/// Rows and columns of a block, so that there are some `wanted` blocks.
fn block_size<A: Number, B: Number, C: Number>(product: &Product<'_, A, B, C>, wanted: usize) -> (usize, usize) {
    let (m, n) = (product.m, product.n);
    // Blocks of the fewest columns first, since those share no rearranged panel; then fewer rows, as long as that pays.
    let panels = n.div_ceil(COLUMNS);
    let rows = m.div_ceil(wanted.div_ceil(product.batch * panels)).clamp(*ROWS.start(), *ROWS.end());
    let others = product.batch * m.div_ceil(rows);
    let columns = panels.div_ceil(wanted.div_ceil(others)) * COLUMNS;
    if product.k <= product.depth() {
        return (rows, columns);
    }
    let most = WAITING / rayon::current_num_threads() / rows.min(m) / COLUMNS * COLUMNS;
    (rows, columns.min(most).max(COLUMNS))
}

/// A part of a result.
struct Block<'t, 'a, A, B, C> {
    product: &'t Product<'a, A, B, C>,
    matrix: usize,
    first_row: usize,
    first_column: usize,
    /// The block's part of each of its rows.
    out: Vec<&'t mut [C]>,
}

impl<A: Number, B: Number, C: Number> Work for Block<'_, '_, A, B, C> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Product { m, k, a, b, .. } = *self.product;
        let ([a_matrix, a_row, _], [b_matrix, b_row, b_column]) = (a.strides, b.strides);
        // From the block's first row and column on.
        let (mut a, mut b): (&[A], &[B]) = (&[], &[]);
        if k > 0 {
            a = &self.product.a.values[self.matrix * a_matrix + self.first_row * a_row..];
            b = &self.product.b.values[self.matrix * b_matrix + self.first_column * b_column..];
        }
        if m == 1 && k > 0 && (b_row == 1 || b_column == 1) {
            self.one_row::<FMA, LANES>(a, b);
        } else {
            self.tiles::<FMA, ROWS, VECTORS, LANES>(a, b);
        }
    }
}

impl<A: Number, B: Number, C: Number> Block<'_, '_, A, B, C> {
    /// One row of A, by B as it lies.
    #[inline(always)]
    fn one_row<const FMA: bool, const LANES: usize>(mut self, a: &[A], b: &[B]) {
        let Product { k, bias, activation, .. } = *self.product;
        let ([_, a_row, a_column], [_, b_row, b_column]) = (self.product.a.strides, self.product.b.strides);
        let columns = self.out.first().map_or(0, |row| row.len());
        let mut sums = vec![0.0; columns];
        if let Some(bias) = bias {
            sums.iter_mut().zip(&bias[self.first_column..]).for_each(|(to, from)| *to = from.wide());
        }
        // Where numbers of a column lie together, each lane has a sum of its own.
        let piece = if b_row == 1 { PIECE * LANES } else { PIECE };
        let (mut totals, mut gathered) = (Vec::new(), Vec::new());
        for first in (0..k).step_by(piece) {
            let length = piece.min(k - first);
            let a: &[f32] = match A::singles(a) {
                Some(singles) if a_column == 1 || k <= 1 => &singles[first..][..length],
                _ => {
                    gather(&mut gathered, &a[first * a_column..], [a_row, a_column], [1, length]);
                    &gathered
                }
            };
            isa::run(OneRow { a, b: &b[first * b_row..], strides: [b_row, b_column], sums: &mut sums });
            if k > piece {
                totals.resize(columns, 0.0_f64);
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    *total += f64::from(*sum);
                    *sum = 0.0;
                }
            }
        }
        sums.iter_mut().zip(totals).for_each(|(sum, total)| *sum = total as f32);
        activate::<FMA>(&mut sums, activation);
        for (to, sum) in self.out.iter_mut().flat_map(|row| row.iter_mut()).zip(sums) {
            *to = C::narrow(sum);
        }
    }

    /// Tile by tile, for each part of K down the rows and from panel to panel.
    #[inline(always)]
    fn tiles<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(mut self, a: &[A], b: &[B]) {
        let Product { k, bias, activation, .. } = *self.product;
        let ([_, a_row, a_column], [_, b_row, b_column]) = (self.product.a.strides, self.product.b.strides);
        let (count, columns) = (self.out.len(), self.out.first().map_or(0, |row| row.len()));
        let width = VECTORS * LANES;
        let depth = self.product.depth();
        let in_place = A::singles(a).filter(|_| a_column == 1 || k <= 1);
        let (mut gathered, mut widened) = (Vec::new(), Vec::new());
        let mut panel = vec![0.0; depth.min(k) * width];
        // The sums of tiles over the parts of K before, if there are several.
        let (groups, tile) = (count.div_ceil(ROWS), ROWS * width);
        let mut totals = vec![0.0_f64; if k > depth { columns.div_ceil(width) * groups * tile } else { 0 }];
        // No steps are one part too: of the bias and the activation.
        for part in 0..k.div_ceil(depth).max(1) {
            let step = part * depth;
            let length = depth.min(k - step);
            let from_row_to_row = if in_place.is_some() { a_row } else { length };
            let a: &[f32] = match in_place {
                Some(singles) => &singles[step..],
                None => {
                    gather(&mut gathered, &a[step * a_column..], [a_row, a_column], [count, length]);
                    &gathered
                }
            };
            for (index, first) in (0..columns).step_by(width).enumerate() {
                let used = width.min(columns - first);
                let panel = &mut panel[..length * width];
                if length > 0 {
                    let own = &b[step * b_row + first * b_column..];
                    if let Some(singles) = B::singles(own) {
                        pack::<VECTORS, LANES>(panel, singles, [b_row, b_column], used);
                    } else {
                        let strides = widen(&mut widened, own, [b_row, b_column], [length, used]);
                        pack::<VECTORS, LANES>(panel, &widened, strides, used);
                    }
                }
                let mut start = [[0.0; LANES]; VECTORS];
                if let Some(bias) = bias.filter(|_| part == 0) {
                    let own = &bias[self.first_column + first..][..used];
                    start.as_flattened_mut().iter_mut().zip(own).for_each(|(to, from)| *to = from.wide());
                }
                for (group, out) in self.out.chunks_mut(ROWS).enumerate() {
                    // Rows that the block does not have are its last one again.
                    let row = |i: usize| {
                        let row = group * ROWS + i.min(out.len() - 1);
                        &a[if length == 0 { 0 } else { row * from_row_to_row }..]
                    };
                    let rows: [&[f32]; ROWS] = std::array::from_fn(|i| &row(i)[..length]);
                    let mut sums = [start; ROWS];
                    add_products(rows, steps(panel), &mut sums);
                    if k > depth {
                        let totals = &mut totals[(index * groups + group) * tile..][..tile];
                        for (total, sum) in totals.iter_mut().zip(sums.as_flattened_mut().as_flattened_mut()) {
                            *total += f64::from(*sum);
                            *sum = *total as f32;
                        }
                        if step + length < k {
                            continue;
                        }
                    }
                    activate::<FMA>(sums.as_flattened_mut().as_flattened_mut(), activation);
                    for (out, sums) in out.iter_mut().zip(&sums) {
                        for (to, sum) in out[first..first + used].iter_mut().zip(sums.as_flattened()) {
                            *to = C::narrow(*sum);
                        }
                    }
                }
            }
        }
    }
}

/// Rows of a matrix as `f32`, one after the other; strides are those of rows and of K.
#[inline(always)]
fn gather<T: Number>(to: &mut Vec<f32>, from: &[T], strides: [usize; 2], extents: [usize; 2]) {
    let ([across, along], [rows, k]) = (strides, extents);
    to.clear();
    to.reserve_exact(rows * k);
    let rows = if k == 0 { 0 } else { rows };
    for row in 0..rows {
        let from = &from[row * across..];
        if along == 1 {
            to.extend(from[..k].iter().map(|x| x.wide()));
        } else {
            to.extend((0..k).map(|step| from[step * along].wide()));
        }
    }
}

/// Columns of a matrix as `f32`, one after the other where they lie so, otherwise row by row; gives the strides of K and of columns there.
#[inline(always)]
fn widen<T: Number>(to: &mut Vec<f32>, from: &[T], strides: [usize; 2], extents: [usize; 2]) -> [usize; 2] {
    let ([along, across], [k, columns]) = (strides, extents);
    to.clear();
    if along == 1 {
        for column in 0..columns {
            to.extend(from[column * across..][..k].iter().map(|x| x.wide()));
        }
        return [1, k];
    }
    for step in 0..k {
        to.extend((0..columns).map(|column| from[step * along + column * across].wide()));
    }
    [columns, 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;

    #[test]
    fn every_instruction_set_gives_the_product() {
        let numbers = |count: usize, step: usize| -> Vec<f32> {
            (0..count).map(|i| (i * step % 37) as f32 / 18.0 - 1.0).collect()
        };
        at_every_level(|| {
            for (m, n, k) in [
                (1, 1, 1),
                (1, 67, 37),
                (1, 300, 65),
                (1, 37, 200),
                (300, 1, 65),
                (67, 1, 200),
                (7, 13, 5),
                (8, 48, 16),
                (17, 51, 33),
                (67, 149, 64),
                (200, 40, 24),
            ] {
                for transposed in [false, true] {
                    let (a, b, bias) = (numbers(m * k, 11), numbers(k * n, 7), numbers(n, 5));
                    let strides = if transposed { [0, 1, k] } else { [0, n, 1] };
                    let product = Product {
                        batch: 1,
                        m,
                        n,
                        k,
                        a: Matrices { values: &a, strides: [0, k, 1] },
                        b: Matrices { values: &b, strides },
                        bias: Some(bias.as_slice()),
                        activation: Activation::Relu,
                    };
                    let mut out = vec![f32::NAN; m * n];
                    multiply(&product, &mut out).unwrap();
                    for (index, found) in out.iter().enumerate() {
                        let (row, column) = (index / n, index % n);
                        let term =
                            |i: usize| f64::from(a[row * k + i]) * f64::from(b[i * strides[1] + column * strides[2]]);
                        let wanted = ((0..k).map(term).sum::<f64>() + f64::from(bias[column])).max(0.0);
                        assert!((f64::from(*found) - wanted).abs() < 1e-5, "{m} {n} {k}: {found}, not {wanted}");
                    }
                }
            }
        });
    }

    /// Positive numbers without a pattern.
    fn positive(count: usize, seed: u32) -> Vec<f32> {
        let drawn = |i: usize| (i as u32).wrapping_add(seed).wrapping_mul(2_654_435_761) >> 8;
        (0..count).map(|i| drawn(i) as f32 / (1 << 24) as f32 + 0.01).collect()
    }

    #[test]
    fn sums_of_many_terms_are_within_the_stated_accuracy() {
        let constant = |count: usize, _: u32| -> Vec<f32> { vec![0.1; count] };
        for values in [constant as fn(usize, u32) -> Vec<f32>, positive] {
            for (m, n, k) in [
                (1, 131, 4096),
                (131, 1, 4096),
                (2, 51, 4096),
                (1, 3, 10_000),
                (7, 13, 10_000),
                (1, 5, 100_003),
                (2, 5, 100_003),
            ] {
                let (a, b, bias) = (values(m * k, 1), values(k * n, 2), values(n, 3));
                // Rows in place and gathered; columns of B that lie together, and rows of it.
                for (a_strides, b_strides) in [([0, k, 1], [0, 1, k]), ([0, k, 1], [0, n, 1]), ([0, 1, m], [0, n, 1])] {
                    let product = Product {
                        batch: 1,
                        m,
                        n,
                        k,
                        a: Matrices { values: &a, strides: a_strides },
                        b: Matrices { values: &b, strides: b_strides },
                        bias: Some(bias.as_slice()),
                        activation: Activation::Relu,
                    };
                    let at = |row: usize, column: usize, i: usize| {
                        (row * a_strides[1] + i * a_strides[2], i * b_strides[1] + column * b_strides[2])
                    };
                    let term = |(of_a, of_b): (usize, usize)| f64::from(a[of_a]) * f64::from(b[of_b]);
                    let sum = |row, column| (0..k).map(|i| term(at(row, column, i))).sum::<f64>();
                    let exact: Vec<f64> =
                        (0..m * n).map(|index| sum(index / n, index % n) + f64::from(bias[index % n])).collect();
                    at_every_level(|| {
                        let mut out = vec![f32::NAN; m * n];
                        multiply(&product, &mut out).unwrap();
                        for (found, exact) in out.iter().zip(&exact) {
                            let error = (f64::from(*found) - exact).abs();
                            assert!(error <= 3e-5 * exact, "{m} {n} {k} {b_strides:?}: {found}, not {exact}");
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn results_are_the_same_whatever_the_number_of_threads() {
        // Products with powers of two are exact, so that instruction sets agree too, of which other tests may choose one meanwhile.
        let powers = |count: usize| -> Vec<f32> { (0..count).map(|i| [0.5, -1.0, 2.0, 1.0][i % 4]).collect() };
        for (m, n, k) in [(1, 500, 9000), (2, 300, 9000), (150, 200, 9000), (1100, 60, 1300)] {
            let (a, b) = (powers(m * k), positive(k * n, 5));
            for a_strides in [[0, k, 1], [0, 1, m]] {
                let product = Product {
                    batch: 1,
                    m,
                    n,
                    k,
                    a: Matrices { values: &a, strides: a_strides },
                    b: Matrices { values: &b, strides: [0, n, 1] },
                    bias: Some(&b[..n]),
                    activation: Activation::Identity,
                };
                let by = |threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let mut out = vec![f32::NAN; m * n];
                    pool.install(|| multiply(&product, &mut out)).unwrap();
                    out
                };
                let alone = by(1);
                assert!([2, 5, 16].into_iter().all(|threads| by(threads) == alone), "{m} {n} {k} {a_strides:?}");
            }
        }
    }

    #[test]
    fn parts_of_halves_are_summed() {
        use half::f16;
        // Whole numbers, whose sums are exact.
        for m in [1, 3] {
            let (n, k) = (50, 5000);
            let a: Vec<f16> = (0..m * k).map(|i| f16::from_f32((i * 11 % 7) as f32 - 3.0)).collect();
            let b: Vec<f16> = (0..k * n).map(|i| f16::from_f32((i * 7 % 5) as f32 - 2.0)).collect();
            at_every_level(|| {
                for strides in [[0, 1, k], [0, n, 1]] {
                    let product = Product {
                        batch: 1,
                        m,
                        n,
                        k,
                        a: Matrices { values: &a, strides: [0, k, 1] },
                        b: Matrices { values: &b, strides },
                        bias: None,
                        activation: Activation::Identity,
                    };
                    let mut out = vec![f32::NAN; m * n];
                    multiply(&product, &mut out).unwrap();
                    for (index, found) in out.iter().enumerate() {
                        let (row, column) = (index / n, index % n);
                        let term =
                            |i: usize| a[row * k + i].to_f32() * b[i * strides[1] + column * strides[2]].to_f32();
                        assert_eq!(*found, (0..k).map(term).sum::<f32>(), "{row} {column} {strides:?}");
                    }
                }
            });
        }
    }

    #[test]
    fn halves_are_computed_with_as_singles() {
        use half::{bf16, f16};
        for (m, n, k) in [(67, 53, 40), (1, 53, 40), (67, 1, 40)] {
            let a: Vec<f16> = (0..m * k).map(|i| f16::from_f32((i * 11 % 37) as f32 / 18.0 - 1.0)).collect();
            let b: Vec<bf16> = (0..k * n).map(|i| bf16::from_f32((i * 7 % 31) as f32 / 16.0 - 1.0)).collect();
            let bias: Vec<f16> = (0..n).map(|i| f16::from_f32(i as f32 / 8.0)).collect();
            at_every_level(|| {
                for (strides, a_strides) in [([0, 1, k], [0, k, 1]), ([0, n, 1], [0, 1, m])] {
                    let product = Product {
                        batch: 1,
                        m,
                        n,
                        k,
                        a: Matrices { values: &a, strides: a_strides },
                        b: Matrices { values: &b, strides },
                        bias: Some(bias.as_slice()),
                        activation: Activation::Identity,
                    };
                    let mut out = vec![f16::NAN; m * n];
                    multiply(&product, &mut out).unwrap();
                    for (index, found) in out.iter().enumerate() {
                        let (row, column) = (index / n, index % n);
                        let term = |i: usize| {
                            a[row * a_strides[1] + i * a_strides[2]].to_f64()
                                * b[i * strides[1] + column * strides[2]].to_f64()
                        };
                        let wanted = (0..k).map(term).sum::<f64>() + bias[column].to_f64();
                        assert!(
                            (found.to_f64() - wanted).abs() < 1e-3 * wanted.abs().max(1.0),
                            "{found}, not {wanted}"
                        );
                    }
                }
            });
        }
    }

    #[test]
    fn operands_that_are_too_short_are_errors() {
        let (a, b) = ([0.0; 6], [0.0; 5]);
        let product = Product {
            batch: 1,
            m: 2,
            n: 2,
            k: 3,
            a: Matrices { values: &a, strides: [0, 3, 1] },
            b: Matrices { values: &b, strides: [0, 2, 1] },
            bias: None,
            activation: Activation::Identity,
        };
        let error = multiply(&product, &mut [0.0; 4]).unwrap_err();
        assert_eq!(error, "`b`: [1, 3, 2] elements by strides of [0, 2, 1] do not fit 5");
        let whole = Product { b: Matrices { values: &a, ..product.b }, ..product };
        assert_eq!(multiply(&whole, &mut [0.0; 3]).unwrap_err(), "the result: 3 elements given, 1 x 2 x 2 expected");
        assert!(multiply(&Product { bias: Some(&a[..1]), ..whole }, &mut [0.0; 4]).is_err());
        let far = Matrices { values: &a, strides: [usize::MAX, usize::MAX, 2] };
        assert!(multiply(&Product { a: far, ..whole }, &mut [0.0; 4]).is_err());
    }
}
