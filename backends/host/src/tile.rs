//! The inner loop of every product: a tile of sums in registers, from rows of A as they lie and a *panel* of B.
//!
//! A panel is as many columns of B as a tile has, rearranged so that the numbers of one step along K lie together: `[K][VECTORS][LANES]`. Columns that B does not have
//! are zeros.
//!
//! A sum of many terms is made of those of pieces, so that what its additions round away does not grow with their number.

use crate::isa::{self, Work};
use crate::math::mul_add;

/// Terms that are added one after the other: as many additions in `f32` round away 3e-5 of a sum of positive terms at most, which is the accuracy that is stated of sums.
pub(crate) const PIECE: usize = 512;

/// Steps along K that are rearranged at once, so that both sides stay in the first cache.
const STEPS: usize = 16;

/// Rows and columns that are transposed at once, in registers.
const SQUARE: usize = 8;

/// A panel's place in a vector of them.
#[inline(always)]
pub(crate) fn steps<const VECTORS: usize, const LANES: usize>(panel: &[f32]) -> &[[[f32; LANES]; VECTORS]] {
    panel.as_chunks::<LANES>().0.as_chunks::<VECTORS>().0
}

/// Rearranges columns of a matrix, at most as many as the panel has; `strides` are those of K and of columns, and `b` starts at the first.
#[inline(always)]
pub(crate) fn pack<const VECTORS: usize, const LANES: usize>(
    panel: &mut [f32],
    b: &[f32],
    strides: [usize; 2],
    columns: usize,
) {
    let width = VECTORS * LANES;
    let [along, across] = strides;
    if columns < width {
        panel.fill(0.0);
    }
    if across == 1 {
        for (step, row) in panel.chunks_exact_mut(width).enumerate() {
            row[..columns].copy_from_slice(&b[step * along..][..columns]);
        }
        return;
    }
    if along == 1 && columns.is_multiple_of(SQUARE) {
        isa::run(Transpose { panel, width, b, across, columns });
        return;
    }
    for (block, rows) in panel.chunks_mut(STEPS * width).enumerate() {
        let first = block * STEPS * along;
        for column in 0..columns {
            let from = &b[first + column * across..];
            for (step, row) in rows.chunks_exact_mut(width).enumerate() {
                row[column] = from[step * along];
            }
        }
    }
}

/// Copies columns whose numbers lie together into the rows of a panel.
struct Transpose<'t> {
    panel: &'t mut [f32],
    width: usize,
    b: &'t [f32],
    across: usize,
    columns: usize,
}

impl Work for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let Transpose { panel, width, b, across, columns } = self;
        let steps = panel.len() / width;
        let whole = steps / SQUARE * SQUARE;
        for (block, to) in panel.chunks_exact_mut(SQUARE * width).enumerate() {
            for column in (0..columns).step_by(SQUARE) {
                let mut square = [[0.0; SQUARE]; SQUARE];
                for i in 0..SQUARE {
                    square[i].copy_from_slice(&b[(column + i) * across + block * SQUARE..][..SQUARE]);
                }
                let square = transposed(square);
                for i in 0..SQUARE {
                    to[i * width + column..][..SQUARE].copy_from_slice(&square[i]);
                }
            }
        }
        for (step, row) in panel.chunks_exact_mut(width).enumerate().skip(whole) {
            for (column, to) in row[..columns].iter_mut().enumerate() {
                *to = b[column * across + step];
            }
        }
    }
}

/// A square transposed by interleaving its upper half's rows with those of the lower, three times over: each time is a shuffle of two vectors.
#[inline(always)]
fn transposed(mut rows: [[f32; SQUARE]; SQUARE]) -> [[f32; SQUARE]; SQUARE] {
    const HALF: usize = SQUARE / 2;
    for _ in 0..SQUARE.ilog2() {
        let old = rows;
        for i in 0..HALF {
            for l in 0..HALF {
                rows[2 * i][2 * l] = old[i][l];
                rows[2 * i][2 * l + 1] = old[i + HALF][l];
                rows[2 * i + 1][2 * l] = old[i][HALF + l];
                rows[2 * i + 1][2 * l + 1] = old[i + HALF][HALF + l];
            }
        }
    }
    rows
}

/// Adds the products of rows of A with a panel to `sums`, piece by piece; rows are at least as long as the panel.
#[inline(always)]
pub(crate) fn add_products<const ROWS: usize, const VECTORS: usize, const LANES: usize>(
    rows: [&[f32]; ROWS],
    panel: &[[[f32; LANES]; VECTORS]],
    sums: &mut [[[f32; LANES]; VECTORS]; ROWS],
) {
    let (first, others) = panel.split_at(panel.len().min(PIECE));
    isa::run(Tile { rows, panel: first, sums });
    for (index, panel) in others.chunks(PIECE).enumerate() {
        let rows = rows.map(|row| &row[(index + 1) * PIECE..]);
        let mut piece = [[[0.0; LANES]; VECTORS]; ROWS];
        isa::run(Tile { rows, panel, sums: &mut piece });
        let sums = sums.as_flattened_mut().as_flattened_mut();
        for (sum, more) in sums.iter_mut().zip(piece.as_flattened().as_flattened()) {
            *sum += *more;
        }
    }
}

/// Adds the products of rows of A with a panel, of at most a piece, to `sums`, one after the other.
///
/// This is work of its own, and not inlined, because the compiler keeps the sums in registers only where it sees nothing but this loop.
struct Tile<'t, const ROWS: usize, const VECTORS: usize, const LANES: usize> {
    rows: [&'t [f32]; ROWS],
    panel: &'t [[[f32; LANES]; VECTORS]],
    sums: &'t mut [[[f32; LANES]; VECTORS]; ROWS],
}

impl<const R: usize, const V: usize, const L: usize> Work for Tile<'_, R, V, L> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool, const ROWS: usize, const VECTORS: usize, const LANES: usize>(self) {
        let mut sums = *self.sums;
        let panel = self.panel;
        let k = panel.len();
        let rows = self.rows.map(|row| &row[..k]);
        for k in 0..k {
            let b = panel[k];
            for i in 0..R {
                let a = rows[i][k];
                for v in 0..V {
                    for l in 0..L {
                        sums[i][v][l] = mul_add::<FMA>(a, b[v][l], sums[i][v][l]);
                    }
                }
            }
        }
        *self.sums = sums;
    }
}

/// Writes a row of a tile, of which `to` may want fewer columns.
#[inline(always)]
pub(crate) fn write<const LANES: usize>(to: &mut [f32], row: &[[f32; LANES]]) {
    let (whole, rest) = to.as_chunks_mut::<LANES>();
    for (to, vector) in whole.iter_mut().zip(row) {
        *to = *vector;
    }
    if let Some(vector) = row.get(whole.len()) {
        rest.copy_from_slice(&vector[..rest.len()]);
    }
}
