//! Softmax along an axis that is not the last: of columns, whose neighbours are worked on together.
//!
//! Rows are read one after the other, as they lie in memory, never down a column: bands of rows are reduced side by side, and what they give is joined in their order, which does not depend on the number of threads.

use rayon::prelude::*;

use crate::isa::{self, Work};
use crate::math::exp;
use crate::rows::BLOCK;

/// Bands that a block is cut into at most, since each has a result for every column.
const BANDS: usize = 64;

/// Elements of the rows that are worked on at once, which stay in the first cache, and the most rows: their sums are in `f32`, and joined in `f64`.
const RUN: usize = 1 << 12;
const RUN_ROWS: usize = 1 << 8;

/// The softmax of each column of blocks of `rows` by `columns` elements, or the logarithm of that.
///
/// # Errors
/// `x` is too short, or `out` is not made of such blocks.
pub fn softmax(x: &[f32], rows: usize, columns: usize, logarithm: bool, out: &mut [f32]) -> Result<(), String> {
    if out.is_empty() {
        return Ok(());
    }
    let block = rows.checked_mul(columns).filter(|block| *block > 0 && out.len().is_multiple_of(*block));
    let block = block.ok_or_else(|| format!("{} elements are no blocks of {rows} by {columns}", out.len()))?;
    let x = x.get(..out.len()).ok_or_else(|| format!("`x`: {} elements given, {} expected", x.len(), out.len()))?;
    let blocks = out.par_chunks_mut(block).zip(x.par_chunks(block)).with_min_len((BLOCK / block).max(1));
    blocks.for_each_init(Scratch::default, |scratch, (out, x)| of_block(x, rows, columns, logarithm, out, scratch));
    Ok(())
}

/// Numbers of each column, which a thread keeps from one block to the next.
#[derive(Default)]
struct Scratch {
    /// The largest element: of each band, and of all.
    largest: Vec<f32>,
    most: Vec<f32>,
    /// Sums of powers: of the rows of a run, of each band, and of all.
    of_run: Vec<f32>,
    sums: Vec<f64>,
    sum: Vec<f64>,
    /// What powers are multiplied by, or what is taken off distances for their logarithms.
    ends: Vec<f32>,
}

/// Makes it so many equal numbers.
fn fill<T: Copy>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}

fn of_block(x: &[f32], rows: usize, columns: usize, logarithm: bool, out: &mut [f32], scratch: &mut Scratch) {
    let band = rows.div_ceil(BANDS).max(BLOCK / columns).max(1) * columns;
    let bands = x.len().div_ceil(band);
    let Scratch { largest, most, of_run, sums, sum, ends } = scratch;
    fill(largest, bands * columns, f32::NEG_INFINITY);
    let of_bands = largest.par_chunks_mut(columns).zip(x.par_chunks(band));
    of_bands.for_each(|(most, x)| isa::run(Largest { x, most }));
    fill(most, columns, f32::NEG_INFINITY);
    largest.chunks_exact(columns).for_each(|band| larger(most, band));
    let most = most.as_slice();
    of_run.resize(bands * columns, 0.0);
    fill(sums, bands * columns, 0.0);
    let of_bands = sums.par_chunks_mut(columns).zip(of_run.par_chunks_mut(columns));
    let of_bands = of_bands.zip(out.par_chunks_mut(band)).zip(x.par_chunks(band));
    of_bands.for_each(|(((sums, of_run), out), x)| isa::run(Powers { x, most, of_run, sums, out }));
    fill(sum, columns, 0.0);
    for of_band in sums.chunks_exact(columns) {
        sum.iter_mut().zip(of_band).for_each(|(sum, of_band)| *sum += of_band);
    }
    ends.clear();
    if logarithm {
        ends.extend(sum.iter().map(|sum| sum.ln() as f32));
        let shifts = ends.as_slice();
        out.par_chunks_mut(band).zip(x.par_chunks(band)).for_each(|(out, x)| {
            isa::run(Shifted { x, most, shifts, out });
        });
    } else {
        ends.extend(sum.iter().map(|sum| (1.0 / sum) as f32));
        let factors = ends.as_slice();
        out.par_chunks_mut(band).for_each(|out| isa::run(Scaled { factors, out }));
    }
}

/// Takes what is larger. A NaN is passed over: its power makes one of the whole column.
#[inline(always)]
fn larger(most: &mut [f32], values: &[f32]) {
    most.iter_mut().zip(values).for_each(|(most, value)| *most = if *value > *most { *value } else { *most });
}

/// The largest element of each column of a band, or what was there if it is larger.
struct Largest<'a> {
    x: &'a [f32],
    most: &'a mut [f32],
}

impl Work for Largest<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { x, most } = self;
        x.chunks_exact(most.len()).for_each(|row| larger(most, row));
    }
}

/// e to the power of each element's distance from the largest of its column, and the sums of these, added to what was there.
struct Powers<'a> {
    x: &'a [f32],
    most: &'a [f32],
    /// Whatever it was.
    of_run: &'a mut [f32],
    sums: &'a mut [f64],
    out: &'a mut [f32],
}

impl Work for Powers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { x, most, of_run, sums, out } = self;
        let columns = most.len();
        let run = (RUN / columns).clamp(1, RUN_ROWS) * columns;
        for (out, x) in out.chunks_mut(run).zip(x.chunks(run)) {
            for (out, x) in out.chunks_exact_mut(columns).zip(x.chunks_exact(columns)) {
                out.iter_mut().zip(x).zip(most).for_each(|((out, x), most)| *out = x - most);
            }
            // Of all rows together, since there may be few columns.
            out.iter_mut().for_each(|x| *x = exp::<FMA>(*x));
            of_run.fill(0.0);
            for out in out.chunks_exact(columns) {
                of_run.iter_mut().zip(out).for_each(|(sum, power)| *sum += power);
            }
            sums.iter_mut().zip(&*of_run).for_each(|(sum, of_run)| *sum += f64::from(*of_run));
        }
    }
}

/// Powers over the sums of their columns.
struct Scaled<'a> {
    factors: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        for row in self.out.chunks_exact_mut(self.factors.len()) {
            row.iter_mut().zip(self.factors).for_each(|(power, factor)| *power *= factor);
        }
    }
}

/// Distances less the logarithms of their columns' sums.
struct Shifted<'a> {
    x: &'a [f32],
    most: &'a [f32],
    shifts: &'a [f32],
    out: &'a mut [f32],
}

impl Work for Shifted<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { x, most, shifts, out } = self;
        for (out, x) in out.chunks_exact_mut(most.len()).zip(x.chunks_exact(most.len())) {
            out.iter_mut().zip(x).zip(most).zip(shifts).for_each(|(((out, x), most), shift)| *out = x - most - shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;

    /// The same in `f64`, column by column.
    fn reference(x: &[f32], rows: usize, columns: usize, logarithm: bool) -> Vec<f64> {
        let mut y = vec![0.0; x.len()];
        for (block, start) in (0..x.len()).step_by(rows * columns).enumerate() {
            for column in 0..columns {
                let at = |row: usize| block * rows * columns + row * columns + column;
                let most = (0..rows).map(|row| f64::from(x[at(row)])).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = (0..rows).map(|row| (f64::from(x[at(row)]) - most).exp()).sum();
                for row in 0..rows {
                    let distance = f64::from(x[at(row)]) - most;
                    y[at(row)] = if logarithm { distance - sum.ln() } else { distance.exp() / sum };
                }
            }
            assert_eq!(start, block * rows * columns);
        }
        y
    }

    #[test]
    fn columns_of_any_number_and_length() {
        let shapes =
            [(1, 1, 1), (3, 1, 7), (1, 5, 1), (2, 33, 3), (1, 700, 65), (1, 3, 5000), (300, 9, 11), (1, 40_000, 2)];
        for (blocks, rows, columns) in shapes {
            let count = blocks * rows * columns;
            let x: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1013) as f32 * 0.02 - 9.0).collect();
            for logarithm in [false, true] {
                let wanted = reference(&x, rows, columns, logarithm);
                at_every_level(|| {
                    let mut out = vec![f32::NAN; count];
                    softmax(&x, rows, columns, logarithm, &mut out).unwrap();
                    for (at, (y, wanted)) in out.iter().zip(&wanted).enumerate() {
                        let error = (f64::from(*y) - wanted).abs();
                        // Distances are below 32 here and rounded by up to 0.96e-6, which powers err by as a share, besides four units of 1.2e-7 of their own. Less the logarithms of sums, below 11 and rounded by 0.48e-6, distances are rounded once more.
                        let most = if logarithm { 2.4e-6 } else { 1.44e-6 * wanted.abs() + 1e-37 };
                        assert!(error <= most, "{blocks}x{rows}x{columns}, {logarithm}, at {at}: {y}, not {wanted}");
                    }
                });
            }
        }
    }

    #[test]
    fn a_column_without_a_number_is_none_and_harms_no_other() {
        let (rows, columns) = (6, 4);
        let mut x = vec![0.5; rows * columns];
        x[columns + 1] = f32::NAN;
        (0..rows).for_each(|row| x[row * columns + 2] = f32::NEG_INFINITY);
        x[3] = f32::NEG_INFINITY;
        let mut out = vec![0.0; x.len()];
        softmax(&x, rows, columns, false, &mut out).unwrap();
        for row in out.chunks(columns) {
            assert!((row[0] - 1.0 / 6.0).abs() < 1e-7 && row[1].is_nan() && row[2].is_nan());
        }
        assert_eq!(out[3], 0.0);
        assert!((out[columns + 3] - 0.2).abs() < 1e-7);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let mut out = [0.0; 6];
        let told = softmax(&[0.0; 6], 4, 1, false, &mut out).unwrap_err();
        assert_eq!(told, "6 elements are no blocks of 4 by 1");
        let told = softmax(&[0.0; 5], 3, 2, false, &mut out).unwrap_err();
        assert_eq!(told, "`x`: 5 elements given, 6 expected");
    }
}
