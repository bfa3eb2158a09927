//! Normalisation of rows.

use rayon::prelude::*;

use crate::isa::{self, Work};
use crate::math::{exponentials, largest, sum, sum_of};

/// Elements of a block of rows, which a thread takes: enough to be worth the thread, few enough to stay in its cache.
pub(crate) const BLOCK: usize = 1 << 14;

/// Cuts the rows of `out` into blocks and gives each with its first element's position to `work`; a row of `out`, of `length` elements, is made of `columns`.
pub(crate) fn blocks<T: Send>(out: &mut [T], length: usize, columns: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let length = (BLOCK / columns.max(1)).max(1) * length;
    if out.len() <= length {
        work(0, out);
    } else {
        out.par_chunks_mut(length).enumerate().for_each(|(index, block)| work(index * length, block));
    }
}

/// The operands of a norm.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// Rows, one after the other.
    pub x: &'a [f32],
    /// Added to them first.
    pub residual: Option<&'a [f32]>,
    /// Scales each column.
    pub gamma: Option<&'a [f32]>,
    /// Shifts each column.
    pub beta: Option<&'a [f32]>,
    /// Columns of a row.
    pub columns: usize,
    /// Whether the mean is taken off first.
    pub centred: bool,
    /// What the sum of squares is divided by.
    pub divisor: usize,
    /// Added to that.
    pub epsilon: f32,
    /// What the inverse of its root may be at most.
    pub most: f32,
}

/// (v - mean(v)) / sqrt(squares(v - mean(v)) / divisor + epsilon) * gamma + beta for each row v of x + residual; the mean is 0 unless it is taken off.
///
/// # Errors
/// An operand is too short, or `out` is not made of rows.
pub fn norm(norm: &Norm<'_>, out: &mut [f32]) -> Result<(), String> {
    if out.is_empty() {
        return Ok(());
    }
    let columns = norm.columns;
    if columns == 0 || !out.len().is_multiple_of(columns) {
        return Err(format!("{} elements are no rows of {columns}", out.len()));
    }
    for (name, operand, count) in [
        ("x", Some(norm.x), out.len()),
        ("residual", norm.residual, out.len()),
        ("gamma", norm.gamma, columns),
        ("beta", norm.beta, columns),
    ] {
        if let Some(operand) = operand.filter(|operand| operand.len() < count) {
            return Err(format!("`{name}`: {} elements given, {count} expected", operand.len()));
        }
    }
    blocks(out, columns, columns, |first, out| isa::run(NormBlock { norm, first, out }));
    Ok(())
}

struct NormBlock<'t, 'a> {
    norm: &'t Norm<'a>,
    first: usize,
    out: &'t mut [f32],
}

impl Work for NormBlock<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Norm { x, residual, gamma, beta, columns, centred, divisor, epsilon, most } = *self.norm;
        let (of_mean, share) = (1.0 / columns as f32, 1.0 / divisor as f32);
        for (index, row) in self.out.chunks_exact_mut(columns).enumerate() {
            let first = self.first + index * columns;
            let x = &x[first..][..columns];
            match residual {
                Some(residual) => {
                    let residual = &residual[first..][..columns];
                    row.iter_mut().zip(x).zip(residual).for_each(|((row, x), residual)| *row = x + residual);
                }
                None => row.copy_from_slice(x),
            }
            if centred {
                // What a sum of large numbers rounds away is found in that of their distances: the fewer lanes, the more it is.
                for _ in 0..2 {
                    let mean = sum::<LANES>(row) * of_mean;
                    row.iter_mut().for_each(|x| *x -= mean);
                }
            }
            let exact = 1.0 / (squares::<LANES>(row) * share + epsilon).sqrt();
            // A NaN stays.
            let factor = if exact > most { most } else { exact };
            match gamma {
                Some(gamma) => row.iter_mut().zip(gamma).for_each(|(x, gamma)| *x = *x * factor * gamma),
                None => row.iter_mut().for_each(|x| *x *= factor),
            }
            if let Some(beta) = beta {
                row.iter_mut().zip(beta).for_each(|(x, beta)| *x += beta);
            }
        }
    }
}

/// The sum of squares.
#[inline(always)]
fn squares<const LANES: usize>(values: &[f32]) -> f32 {
    sum_of::<LANES>(values, |x| x * x)
}

/// exp(x - max(x)) / sum(exp(x - max(x))) for each row of `columns` elements, or the logarithm of that.
///
/// # Errors
/// `x` is too short, or `out` is not made of rows.
pub fn softmax(x: &[f32], columns: usize, logarithm: bool, out: &mut [f32]) -> Result<(), String> {
    if out.is_empty() {
        return Ok(());
    }
    if columns == 0 || !out.len().is_multiple_of(columns) {
        return Err(format!("{} elements are no rows of {columns}", out.len()));
    }
    if x.len() < out.len() {
        return Err(format!("`x`: {} elements given, {} expected", x.len(), out.len()));
    }
    blocks(out, columns, columns, |first, out| {
        isa::run(SoftmaxBlock { x: &x[first..][..out.len()], columns, logarithm, out })
    });
    Ok(())
}

struct SoftmaxBlock<'t> {
    x: &'t [f32],
    columns: usize,
    logarithm: bool,
    out: &'t mut [f32],
}

impl Work for SoftmaxBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        for (row, x) in self.out.chunks_exact_mut(self.columns).zip(self.x.chunks_exact(self.columns)) {
            let most = largest::<LANES>(x);
            row.copy_from_slice(x);
            let sum = exponentials::<FMA, LANES>(row, most);
            if self.logarithm {
                let shift = sum.ln();
                row.iter_mut().zip(x).for_each(|(row, x)| *row = x - most - shift);
            } else {
                let factor = 1.0 / sum;
                row.iter_mut().for_each(|x| *x *= factor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::tests::at_every_level;

    #[test]
    fn long_rows_are_accurate() {
        const COLUMNS: usize = 1_000_003;
        let x = vec![0.1; COLUMNS];
        at_every_level(|| {
            let mut out = vec![0.0; COLUMNS];
            let operands = Norm {
                x: &x,
                residual: None,
                gamma: None,
                beta: None,
                columns: COLUMNS,
                centred: false,
                divisor: COLUMNS,
                epsilon: 0.0,
                most: f32::INFINITY,
            };
            norm(&operands, &mut out).unwrap();
            assert!(out.iter().all(|y| (y - 1.0).abs() <= 3e-5), "{}, not 1", out[0]);
        });
    }
}
