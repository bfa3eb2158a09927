//! One row times a matrix: each number of the matrix is read once, so that rearranging it would cost more than multiplying.

use crate::isa::Work;
use crate::math::mul_add;

/// Columns whose numbers lie together and that are walked along at once.
const COLUMNS: usize = 4;
/// Vectors of neighbouring columns whose sums stay in registers.
const STRIP: usize = 8;

/// Adds the products of a row with columns of a matrix to `sums`, of which there are as many as columns; the matrix starts at the first.
pub(crate) struct OneRow<'t> {
    pub(crate) a: &'t [f32],
    pub(crate) b: &'t [f32],
    /// Of K and of columns; one of them is 1.
    pub(crate) strides: [usize; 2],
    pub(crate) sums: &'t mut [f32],
}

impl Work for OneRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { a, b, strides: [along, across], sums } = self;
        if along == 1 {
            let (fours, rest) = sums.as_chunks_mut::<COLUMNS>();
            let done = fours.len() * COLUMNS;
            for (four, sums) in fours.iter_mut().enumerate() {
                let columns = std::array::from_fn(|i| &b[(four * COLUMNS + i) * across..][..a.len()]);
                dots::<FMA, LANES, COLUMNS>(a, columns, sums);
            }
            for (column, sum) in rest.iter_mut().enumerate() {
                let column = &b[(done + column) * across..][..a.len()];
                dots::<FMA, LANES, 1>(a, [column], std::array::from_mut(sum));
            }
            return;
        }
        let mut first = 0;
        for sums in sums.chunks_mut(STRIP * LANES) {
            let strip = &b[first..];
            match sums.as_chunks_mut::<LANES>() {
                (whole, []) if whole.len() == STRIP => {
                    let mut registers = [[0.0; LANES]; STRIP];
                    registers.copy_from_slice(whole);
                    for (k, a) in a.iter().enumerate() {
                        let row = &strip[k * along..][..STRIP * LANES];
                        for v in 0..STRIP {
                            for l in 0..LANES {
                                registers[v][l] = mul_add::<FMA>(*a, row[v * LANES + l], registers[v][l]);
                            }
                        }
                    }
                    whole.copy_from_slice(&registers);
                }
                _ => {
                    for (k, a) in a.iter().enumerate() {
                        let row = &strip[k * along..][..sums.len()];
                        sums.iter_mut().zip(row).for_each(|(sum, b)| *sum = mul_add::<FMA>(*a, *b, *sum));
                    }
                }
            }
            first += STRIP * LANES;
        }
    }
}

/// Adds the products of a row with columns whose numbers lie together; each lane sums its own.
#[inline(always)]
fn dots<const FMA: bool, const LANES: usize, const N: usize>(a: &[f32], columns: [&[f32]; N], sums: &mut [f32; N]) {
    let (a_whole, a_rest) = a.as_chunks::<LANES>();
    let parts = columns.map(|column| column.as_chunks::<LANES>());
    let whole = parts.map(|(whole, _)| &whole[..a_whole.len()]);
    let mut lanes = [[0.0; LANES]; N];
    for (k, a) in a_whole.iter().enumerate() {
        for i in 0..N {
            for l in 0..LANES {
                lanes[i][l] = mul_add::<FMA>(a[l], whole[i][k][l], lanes[i][l]);
            }
        }
    }
    for i in 0..N {
        sums[i] += lanes[i].iter().sum::<f32>();
        for (a, b) in a_rest.iter().zip(parts[i].1) {
            sums[i] = mul_add::<FMA>(*a, *b, sums[i]);
        }
    }
}
