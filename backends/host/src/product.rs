//! Matrix products: activation(a b + bias), for batches of matrices in any strides.
//!
//! The result is cut into blocks of rows and columns, which threads take. For each panel of its columns of B a thread rearranges that panel, which then lies in its own cache,
//! and walks down its rows of A, which are read as they lie; for a single row B is read as it lies too (`one_row`). Halves become `f32` on the way to a panel and to rows, which then lie in a thread's cache too. K is not cut: a tile's sums stay in registers from the bias to the activation.

use rayon::prelude::*;
use trefoil_kernels::activation::Activation;

use crate::isa::{self, Work};
use crate::math::activate;
use crate::number::Number;
use crate::one_row::OneRow;
use crate::tile::{Tile, pack, steps};

/// Multiply-adds that are not worth a second thread.
const ALONE: usize = 1 << 16;
/// Blocks for each thread, so that threads that are done early take more.
const BLOCKS_PER_THREAD: usize = 4;
/// Rows of a block: rearranging a panel costs as much as multiplying it with some ten rows, so blocks have many more of them, where there are enough blocks.
const ROWS: std::ops::RangeInclusive<usize> = 64..=1024;
/// Columns of the narrowest block; the widest panel has as many.
const COLUMNS: usize = 48;

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

/// Computes a product into `out`, which is `[batch, m, n]`.
///
/// # Errors
/// An operand or the result is too short.
pub fn multiply<A: Number, B: Number, C: Number>(product: &Product<'_, A, B, C>, out: &mut [C]) -> Result<(), String> {
    let Product { batch, m, n, k, .. } = *product;
    product.a.check("a", [batch, m, k])?;
    product.b.check("b", [batch, k, n])?;
    if let Some(bias) = product.bias.filter(|bias| bias.len() < n) {
        return Err(format!("`bias`: {} elements given, {n} expected", bias.len()));
    }
    let elements = batch.checked_mul(m).and_then(|rows| rows.checked_mul(n));
    let given = out.len();
    let out = elements
        .and_then(|elements| out.get_mut(..elements))
        .ok_or_else(|| format!("the result: {given} elements given, {batch} x {m} x {n} expected"))?;
    if out.is_empty() {
        return Ok(());
    }
    let alone = out.len().saturating_mul(k) <= ALONE;
    let wanted = if alone { 1 } else { rayon::current_num_threads() * BLOCKS_PER_THREAD };
    let (rows, columns) = block_size(product, wanted);
    let mut blocks = Vec::new();
    for (matrix, out) in out.chunks_mut(m * n).enumerate() {
        for (block, out) in out.chunks_mut(rows * n).enumerate() {
            let mut row_of_blocks: Vec<_> = (0..n)
                .step_by(columns)
                .map(|first_column| Block {
                    product,
                    matrix,
                    first_row: block * rows,
                    first_column,
                    out: Vec::with_capacity(rows.min(m)),
                })
                .collect();
            for row in out.chunks_mut(n) {
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
fn block_size<A, B, C>(product: &Product<'_, A, B, C>, wanted: usize) -> (usize, usize) {
    let (m, n) = (product.m, product.n);
    // Blocks of the fewest columns first, since those share no rearranged panel; then fewer rows, as long as that pays.
    let panels = n.div_ceil(COLUMNS);
    let rows = m.div_ceil(wanted.div_ceil(product.batch * panels)).clamp(*ROWS.start(), *ROWS.end());
    let others = product.batch * m.div_ceil(rows);
    let columns = panels.div_ceil(wanted.div_ceil(others)) * COLUMNS;
    (rows, columns)
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
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(mut self) {
        let Product { k, a, b, bias, activation, .. } = *self.product;
        let (count, columns) = (self.out.len(), self.out.first().map_or(0, |row| row.len()));
        let width = VECTORS * LANES;
        let [a_matrix, mut a_row, a_column] = a.strides;
        let own = if k == 0 { &[] } else { &a.values[self.matrix * a_matrix + self.first_row * a_row..] };
        let mut gathered = Vec::new();
        let a_values: &[f32] = match A::singles(own) {
            Some(singles) if a_column == 1 || k <= 1 => singles,
            _ => {
                gathered.reserve_exact(count * k);
                for row in 0..count {
                    gathered.extend((0..k).map(|i| own[row * a_row + i * a_column].wide()));
                }
                a_row = k;
                &gathered
            }
        };
        let [b_matrix, b_row, b_column] = b.strides;
        if self.product.m == 1
            && k > 0
            && (b_row == 1 || b_column == 1)
            && let Some(b) = B::singles(&b.values[self.matrix * b_matrix + self.first_column * b_column..])
        {
            let mut sums = vec![0.0; columns];
            if let Some(bias) = bias {
                sums.iter_mut().zip(&bias[self.first_column..]).for_each(|(to, from)| *to = from.wide());
            }
            isa::run(OneRow { a: &a_values[..k], b, strides: [b_row, b_column], sums: &mut sums });
            activate::<FMA>(&mut sums, activation);
            for (to, sum) in self.out.iter_mut().flat_map(|row| row.iter_mut()).zip(sums) {
                *to = C::narrow(sum);
            }
            return;
        }
        let mut panel = vec![0.0; k * width];
        let mut widened = Vec::new();
        for first in (0..columns).step_by(width) {
            let used = width.min(columns - first);
            let column = self.first_column + first;
            if k > 0 {
                let own = &b.values[self.matrix * b_matrix + column * b_column..];
                if let Some(singles) = B::singles(own) {
                    pack::<VECTORS, LANES>(&mut panel, singles, [b_row, b_column], used);
                } else {
                    let strides = widen(&mut widened, own, [b_row, b_column], [k, used]);
                    pack::<VECTORS, LANES>(&mut panel, &widened, strides, used);
                }
            }
            let mut start = [[0.0; LANES]; VECTORS];
            if let Some(bias) = bias {
                for (to, from) in start.as_flattened_mut().iter_mut().zip(&bias[column..][..used]) {
                    *to = from.wide();
                }
            }
            for (group, out) in self.out.chunks_mut(ROWS).enumerate() {
                // Rows that the block does not have are its last one again.
                let row =
                    |i: usize| &a_values[if k == 0 { 0 } else { (group * ROWS + i.min(out.len() - 1)) * a_row }..];
                let rows: [&[f32]; ROWS] = std::array::from_fn(|i| &row(i)[..k]);
                let mut sums = [start; ROWS];
                isa::run(Tile { rows, panel: steps(&panel), sums: &mut sums });
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

    #[test]
    fn halves_are_computed_with_as_singles() {
        use half::{bf16, f16};
        let (m, n, k) = (67, 53, 40);
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
                    assert!((found.to_f64() - wanted).abs() < 1e-3 * wanted.abs().max(1.0), "{found}, not {wanted}");
                }
            }
        });
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
