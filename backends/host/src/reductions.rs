//! Sums and extremes of rows, and where the extremes are.

use rayon::prelude::*;

use crate::isa::{self, Work};
use crate::rows::{BLOCK, blocks};

/// What a row is reduced to; a NaN among its elements is the extreme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

/// Elements whose sum is in `f32`, in as many partial sums as a vector has lanes; these are joined in `f64`, one after the other, so that long rows lose nothing.
const RUN: usize = 1 << 8;

impl Reduction {
    const fn start(self) -> f64 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f64::NEG_INFINITY,
            Self::Min => f64::INFINITY,
        }
    }

    /// A piece of a row reduced.
    fn piece(self, values: &[f32]) -> f64 {
        isa::run(Piece { values, reduction: self })
    }

    /// What pieces of a row make together.
    fn joined(self, pieces: impl IntoIterator<Item = f64>) -> f64 {
        pieces.into_iter().fold(self.start(), |a, b| self.join(a, b))
    }

    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => a + b,
            Self::Max => largest(a, b),
            Self::Min => smallest(a, b),
        }
    }
}

/// The larger. Of a NaN every comparison is false, so that it is taken, and then it stays, being the one that does not equal itself.
#[inline(always)]
#[expect(clippy::eq_op, reason = "of a NaN it does not hold")]
fn largest<T: PartialOrd>(a: T, b: T) -> T {
    if a >= b || a != a { a } else { b }
}

/// The smaller, or a NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "of a NaN it does not hold")]
fn smallest<T: PartialOrd>(a: T, b: T) -> T {
    if a <= b || a != a { a } else { b }
}

/// Each row of `columns` elements of `x` reduced to one of `out`, which is divided by `divisor` if it is a sum.
///
/// # Errors
/// `x` is too short.
pub fn rows(x: &[f32], columns: usize, reduction: Reduction, divisor: usize, out: &mut [f32]) -> Result<(), String> {
    let x = elements(x, out.len(), columns)?;
    let finish = |value: f64| match reduction {
        Reduction::Sum => (value / divisor as f64) as f32,
        Reduction::Max | Reduction::Min => value as f32,
    };
    let piece = |values: &[f32]| reduction.piece(values);
    let row = |first: usize| &x[first * columns..][..columns];
    // Pieces of a row are the same whatever the number of threads, and so is the order in which they are joined.
    if out.len() < 2 * rayon::current_num_threads() && columns > BLOCK {
        for (index, result) in out.iter_mut().enumerate() {
            let pieces: Vec<f64> = row(index).par_chunks(BLOCK).map(piece).collect();
            *result = finish(reduction.joined(pieces));
        }
        return Ok(());
    }
    blocks(out, 1, columns, |first, out| {
        for (index, result) in out.iter_mut().enumerate() {
            *result = finish(reduction.joined(row(first + index).chunks(BLOCK).map(piece)));
        }
    });
    Ok(())
}

/// Those of so many rows.
fn elements(x: &[f32], rows: usize, columns: usize) -> Result<&[f32], String> {
    let count = rows.checked_mul(columns).ok_or("more elements than there can be")?;
    x.get(..count).ok_or_else(|| format!("`x`: {} elements given, {count} expected", x.len()))
}

/// Where each row of `columns` elements of `x` has its extreme, or its NaN if it has one: the first place, or the last. Every row has an element.
///
/// # Errors
/// `x` is too short, or a row has no elements or more than can be counted; `reduction` is a sum.
pub fn places(x: &[f32], columns: usize, reduction: Reduction, last: bool, out: &mut [u32]) -> Result<(), String> {
    let x = elements(x, out.len(), columns)?;
    if reduction == Reduction::Sum || columns == 0 && !out.is_empty() || u32::try_from(columns).is_err() {
        return Err(format!("{reduction:?} of {columns} elements has no place"));
    }
    let row = |first: usize| &x[first * columns..][..columns];
    let piece = |values: &[f32]| reduction.piece(values);
    if out.len() < 2 * rayon::current_num_threads() && columns > BLOCK {
        for (index, place) in out.iter_mut().enumerate() {
            let x = row(index);
            let pieces: Vec<f64> = x.par_chunks(BLOCK).map(piece).collect();
            let most = reduction.joined(pieces.iter().copied());
            let holds = |piece: &f64| *piece == most || piece.is_nan();
            let piece = if last { pieces.iter().rposition(holds) } else { pieces.iter().position(holds) };
            let first = piece.unwrap_or(0) * BLOCK;
            let end = columns.min(first + BLOCK);
            *place = (first + isa::run(Place { values: &x[first..end], wanted: most as f32, last })) as u32;
        }
        return Ok(());
    }
    blocks(out, 1, columns, |first, out| {
        for (index, place) in out.iter_mut().enumerate() {
            let values = row(first + index);
            let wanted = reduction.joined(values.chunks(BLOCK).map(piece)) as f32;
            *place = isa::run(Place { values, wanted, last }) as u32;
        }
    });
    Ok(())
}

/// The first or last place of a number that is there, or of a NaN.
struct Place<'a> {
    values: &'a [f32],
    wanted: f32,
    last: bool,
}

impl Work for Place<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) -> usize {
        let Self { values, wanted, last } = self;
        let holds = |x: &f32| *x == wanted || x.is_nan();
        // A run is searched through only if one of its elements holds, which vectors find out together.
        let any = |run: &[f32]| run.iter().fold(false, |any, x| any | holds(x));
        let runs = || values.chunks(RUN);
        let run = if last {
            values.len().div_ceil(RUN) - 1 - runs().rev().position(any).unwrap_or(0)
        } else {
            runs().position(any).unwrap_or(0)
        };
        let first = run * RUN;
        let values = &values[first..values.len().min(first + RUN)];
        first + if last { values.iter().rposition(holds) } else { values.iter().position(holds) }.unwrap_or(0)
    }
}

struct Piece<'a> {
    values: &'a [f32],
    reduction: Reduction,
}

impl Work for Piece<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) -> f64 {
        let Self { values, reduction } = self;
        let mut so_far = reduction.start();
        for run in values.chunks(RUN) {
            let value = match reduction {
                Reduction::Sum => lanes::<LANES>(run, 0.0, |a, b| a + b),
                Reduction::Max => lanes::<LANES>(run, f32::NEG_INFINITY, largest),
                Reduction::Min => lanes::<LANES>(run, f32::INFINITY, smallest),
            };
            so_far = reduction.join(so_far, f64::from(value));
        }
        so_far
    }
}

/// Numbers joined, in four vectors side by side, since each waits for the one before it.
#[inline(always)]
fn lanes<const LANES: usize>(values: &[f32], start: f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let (vectors, rest) = values.as_chunks::<LANES>();
    let (fours, others) = vectors.as_chunks::<4>();
    let mut so_far = [[start; LANES]; 4];
    for four in fours {
        for (so_far, vector) in so_far.iter_mut().zip(four) {
            for lane in 0..LANES {
                so_far[lane] = join(so_far[lane], vector[lane]);
            }
        }
    }
    for vector in others {
        for lane in 0..LANES {
            so_far[0][lane] = join(so_far[0][lane], vector[lane]);
        }
    }
    so_far.as_flattened().iter().chain(rest).copied().fold(start, join)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;

    /// Without a pattern, between -1 and 1.
    fn numbers(count: usize) -> Vec<f32> {
        (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    #[test]
    fn rows_of_many_lengths() {
        for (count, columns) in [(0, 3), (3, 0), (1, 1), (7, 13), (131, 67), (2, 16_411), (101, 1031), (1, 100_003)] {
            at_every_level(|| reduces(count, columns));
        }
    }

    fn reduces(count: usize, columns: usize) {
        let x = numbers(count * columns);
        let mut out = vec![0.0; count];
        rows(&x, columns, Reduction::Sum, 1, &mut out).unwrap();
        // Each element is added once in `f32`, to a sum below 16 whatever the number of lanes: half a unit, up as often as down.
        let tolerance = 16.0 * f64::from(f32::EPSILON) * (columns as f64).sqrt();
        for (row, sum) in out.iter().enumerate() {
            let exact: f64 = x[row * columns..][..columns].iter().map(|x| f64::from(*x)).sum();
            assert!((f64::from(*sum) - exact).abs() <= tolerance, "{count} {columns}: {sum}, not {exact}");
        }
        for (reduction, join) in [(Reduction::Max, f32::max as fn(f32, f32) -> f32), (Reduction::Min, f32::min)] {
            rows(&x, columns, reduction, 1, &mut out).unwrap();
            for (row, result) in out.iter().enumerate().filter(|_| columns > 0) {
                let exact = x[row * columns..][..columns].iter().copied().reduce(join).unwrap();
                assert_eq!(*result, exact, "{reduction:?} {count} {columns}");
            }
        }
    }

    #[test]
    fn places_of_ties_and_of_what_is_no_number() {
        for (count, columns) in [(3, 1), (7, 13), (131, 67), (2, 16_411), (1, 100_003)] {
            let mut x: Vec<f32> = numbers(count * columns).into_iter().map(|x| (x * 40.0).round()).collect();
            for nan in [false, true] {
                if nan {
                    [0, columns / 2, columns - 1].into_iter().for_each(|at| x[at] = f32::NAN);
                }
                for (reduction, is_better) in
                    [(Reduction::Max, f32::gt as fn(&f32, &f32) -> bool), (Reduction::Min, f32::lt)]
                {
                    let (mut first, mut last) = (vec![0; count], vec![0; count]);
                    places(&x, columns, reduction, false, &mut first).unwrap();
                    places(&x, columns, reduction, true, &mut last).unwrap();
                    for (index, row) in x.chunks(columns).enumerate() {
                        let beats = |a: &f32, b: &f32| !b.is_nan() && (a.is_nan() || is_better(a, b));
                        let (mut at_first, mut at_last) = (0, 0);
                        for (at, value) in row.iter().enumerate() {
                            at_first = if beats(value, &row[at_first]) { at } else { at_first };
                            at_last = if beats(&row[at_last], value) { at_last } else { at };
                        }
                        let found = [first[index] as usize, last[index] as usize];
                        assert_eq!(found, [at_first, at_last], "{reduction:?} {count} {columns} {index}, {nan}");
                    }
                }
            }
        }
        assert!(places(&[], 0, Reduction::Max, false, &mut [0]).is_err());
    }

    #[test]
    fn what_is_no_number_stays() {
        for at in [0, 1, 31, 255, 256, 1029] {
            let mut x = numbers(1030);
            x[at] = f32::NAN;
            for reduction in [Reduction::Sum, Reduction::Max, Reduction::Min] {
                at_every_level(|| assert!(isa::run(Piece { values: &x, reduction }).is_nan(), "{reduction:?}, {at}"));
            }
        }
    }
}
