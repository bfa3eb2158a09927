//! One row times a matrix: each number of the matrix is read once, so that rearranging it would cost more than multiplying.

use crate::isa::{self, Work};
use crate::math::mul_add;
use crate::number::Number;

/// Vectors of a column whose numbers lie together that are multiplied at once: its sums are as many chains of additions, and memory brings in one column after the other.
const VECTORS_AT_ONCE: usize = 4;
/// Rows of the matrix that are walked along at once: a row's part in a block is too short for the processor to read ahead in it, so that as many are asked for together.
const ROWS_AT_ONCE: usize = 16;

/// Adds the products of a row with columns of a matrix to `sums`, of which there are as many as columns; the matrix starts at the first.
pub(crate) struct OneRow<'t, B> {
    pub(crate) a: &'t [f32],
    pub(crate) b: &'t [B],
    /// Of K and of columns; one of them is 1.
    pub(crate) strides: [usize; 2],
    pub(crate) sums: &'t mut [f32],
}

impl<B: Number> Work for OneRow<'_, B> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Self { a, b, strides: [along, across], sums } = self;
        if along == 1 {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum += dot::<B, FMA, LANES>(a, &b[column * across..][..a.len()]);
            }
            return;
        }
        let (groups, rest) = a.as_chunks::<ROWS_AT_ONCE>();
        for (group, a) in groups.iter().enumerate() {
            let first = group * ROWS_AT_ONCE;
            let rows = std::array::from_fn(|i| &b[(first + i) * along..][..sums.len()]);
            add_rows::<B, FMA, LANES, ROWS_AT_ONCE>(a, rows, sums);
        }
        let first = groups.len() * ROWS_AT_ONCE;
        for (i, a) in rest.iter().enumerate() {
            add_rows::<B, FMA, LANES, 1>(&[*a], [&b[(first + i) * along..][..sums.len()]], sums);
        }
    }
}

/// The sum of the products of two lists; each lane of each vector sums its own.
#[inline(always)]
fn dot<B: Number, const FMA: bool, const LANES: usize>(a: &[f32], b: &[B]) -> f32 {
    let ((a_vectors, a_rest), (b_vectors, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let (a_groups, a_left) = a_vectors.as_chunks::<VECTORS_AT_ONCE>();
    let (b_groups, b_left) = b_vectors.as_chunks::<VECTORS_AT_ONCE>();
    let mut sums = [[0.0; LANES]; VECTORS_AT_ONCE];
    isa::run(Groups { a: a_groups, b: b_groups, sums: &mut sums });
    let [first, ..] = &mut sums;
    for (a, b) in a_left.iter().zip(b_left) {
        for l in 0..LANES {
            first[l] = mul_add::<FMA>(a[l], b[l].wide(), first[l]);
        }
    }
    let rest = a_rest.iter().zip(b_rest);
    rest.fold(sums.as_flattened().iter().sum(), |sum, (a, b)| mul_add::<FMA>(*a, b.wide(), sum))
}

/// Adds the products of two lists of groups of vectors to `sums`. It is work of its own for the same reason as a product's tile.
struct Groups<'t, B, const LANES: usize> {
    a: &'t [[[f32; LANES]; VECTORS_AT_ONCE]],
    b: &'t [[[B; LANES]; VECTORS_AT_ONCE]],
    sums: &'t mut [[f32; LANES]; VECTORS_AT_ONCE],
}

impl<B: Number, const L: usize> Work for Groups<'_, B, L> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let mut sums = *self.sums;
        for (a, b) in self.a.iter().zip(self.b) {
            for v in 0..VECTORS_AT_ONCE {
                for l in 0..L {
                    sums[v][l] = mul_add::<FMA>(a[v][l], b[v][l].wide(), sums[v][l]);
                }
            }
        }
        *self.sums = sums;
    }
}

/// Adds so many times each of some rows to `sums`, which they are as long as.
#[inline(always)]
fn add_rows<B: Number, const FMA: bool, const LANES: usize, const N: usize>(
    times: &[f32; N],
    rows: [&[B]; N],
    sums: &mut [f32],
) {
    let (vectors, rest) = sums.as_chunks_mut::<LANES>();
    let parts = rows.map(|row| row.as_chunks::<LANES>());
    // Lengths that the compiler sees are the same are not looked at again within the loop.
    let (of_vectors, of_rest) = (parts.map(|(own, _)| &own[..vectors.len()]), parts.map(|(_, own)| &own[..rest.len()]));
    for (index, sums) in vectors.iter_mut().enumerate() {
        let mut sum = *sums;
        for i in 0..N {
            for l in 0..LANES {
                sum[l] = mul_add::<FMA>(times[i], of_vectors[i][index][l].wide(), sum[l]);
            }
        }
        *sums = sum;
    }
    for (index, sum) in rest.iter_mut().enumerate() {
        for i in 0..N {
            *sum = mul_add::<FMA>(times[i], of_rest[i][index].wide(), *sum);
        }
    }
}
