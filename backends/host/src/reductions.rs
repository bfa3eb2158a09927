//! Sums and extremes of rows.

use rayon::prelude::*;

use crate::isa::{self, Work};

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
/// Elements that are worth a thread. Pieces are the same whatever the number of threads, and so is the order in which they are joined.
const PIECE: usize = 1 << 14;

impl Reduction {
    const fn start(self) -> f64 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f64::NEG_INFINITY,
            Self::Min => f64::INFINITY,
        }
    }

    #[inline(always)]
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Sum => a + b,
            Self::Max => kept(a, b, a >= b || a.is_nan()),
            Self::Min => kept(a, b, a <= b || a.is_nan()),
        }
    }
}

/// What is kept of two. Of a NaN every comparison is false, so that it is taken, and then it stays.
#[inline(always)]
fn kept<T>(a: T, b: T, first: bool) -> T {
    if first { a } else { b }
}

/// Each row of `columns` elements of `x` reduced to one of `out`, which is divided by `divisor` if it is a sum.
///
/// # Errors
/// `x` is too short.
pub fn rows(x: &[f32], columns: usize, reduction: Reduction, divisor: usize, out: &mut [f32]) -> Result<(), String> {
    let count = out.len().checked_mul(columns).ok_or("more elements than there can be")?;
    let x = x.get(..count).ok_or_else(|| format!("`x`: {} elements given, {count} expected", x.len()))?;
    let finish = |value: f64| match reduction {
        Reduction::Sum => (value / divisor as f64) as f32,
        Reduction::Max | Reduction::Min => value as f32,
    };
    let piece = |values: &[f32]| isa::run(Piece { values, reduction });
    let joined = |values: &mut dyn Iterator<Item = f64>| values.fold(reduction.start(), |a, b| reduction.join(a, b));
    let row = |first: usize| &x[first * columns..][..columns];
    if out.len() < 2 * rayon::current_num_threads() && columns > PIECE {
        for (index, result) in out.iter_mut().enumerate() {
            let pieces: Vec<f64> = row(index).par_chunks(PIECE).map(piece).collect();
            *result = finish(joined(&mut pieces.into_iter()));
        }
        return Ok(());
    }
    let together = (PIECE / columns.max(1)).max(1);
    let block = |first: usize, out: &mut [f32]| {
        for (index, result) in out.iter_mut().enumerate() {
            *result = finish(joined(&mut row(first + index).chunks(PIECE).map(piece)));
        }
    };
    if out.len() <= together {
        block(0, out);
    } else {
        out.par_chunks_mut(together).enumerate().for_each(|(index, out)| block(index * together, out));
    }
    Ok(())
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
                Reduction::Max => lanes::<LANES>(run, f32::NEG_INFINITY, |a, b| kept(a, b, a >= b || a.is_nan())),
                Reduction::Min => lanes::<LANES>(run, f32::INFINITY, |a, b| kept(a, b, a <= b || a.is_nan())),
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
            let x = numbers(count * columns);
            let mut out = vec![0.0; count];
            rows(&x, columns, Reduction::Sum, 1, &mut out).unwrap();
            for (row, sum) in out.iter().enumerate() {
                let exact: f64 = x[row * columns..][..columns].iter().map(|x| f64::from(*x)).sum();
                assert!(
                    (f64::from(*sum) - exact).abs() <= 3e-5 * exact.abs().max(1.0),
                    "{count} {columns}: {sum}, not {exact}"
                );
            }
            for (reduction, join) in [(Reduction::Max, f32::max as fn(f32, f32) -> f32), (Reduction::Min, f32::min)] {
                rows(&x, columns, reduction, 1, &mut out).unwrap();
                for (row, result) in out.iter().enumerate().filter(|_| columns > 0) {
                    let exact = x[row * columns..][..columns].iter().copied().reduce(join).unwrap();
                    assert_eq!(*result, exact, "{reduction:?} {count} {columns}");
                }
            }
        }
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
