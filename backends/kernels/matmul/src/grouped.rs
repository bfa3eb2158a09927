//! Products of rows with a matrix for each group: row r of C is row r of A times the matrix that `groups[r]` names, or zeros where there is no such matrix. The numbers stay on the device.
//!
//! | kernel | a workgroup's work | for |
//! |---|---|---|
//! | `grouped_rows` | a row by 8 or 32 columns, K shared | few rows: every row reads its matrix by itself |
//! | `grouped_tiles` | 64 rows of the order by 64 columns | many rows: rows of one group share what is read of its matrix |
//!
//! **Tiles.** `order` holds the rows sorted by group. A workgroup takes 64 that follow on each other there and goes along K once for each group among them, with the rows of the others masked: no table of tiles is made, and in all
//! there are at most as many passes as tiles of rows and groups together. Where a group ends among the 64 is found by bisection, which every invocation does alike.
//!
//! **Invariants.** A masked row takes part with zeros, and nothing is kept of it: its own pass has sums of its own, so that an infinity in one matrix stays in its group's rows.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use super::{quad_of, tile_of};

/// Rows and columns of a tile.
#[device]
pub const EDGE: usize = 64;
/// How far a tile goes along K at once.
#[device]
const DEPTH: usize = 16;
/// Groups of four from one k of a tile to the next: one more than there are, so that neighbours write to different banks.
#[device]
const LINE: usize = EDGE / 4 + 1;
/// Words of a tile's step.
#[device]
pub const HELD: usize = DEPTH * LINE * 4;

/// A row of A by some columns of its matrix.
///
/// * `sizes`: N, K, and how many groups there are. `a_strides`: from one row and column of A to the next; `b_strides`: from one matrix, row and column to the next.
/// * `columns`: how many a workgroup takes, a power of two that divides its 256 invocations; those that share a column take every so manieth k.
/// * `along`: whether neighbours share a column, for matrices whose columns lie together; otherwise they take neighbouring columns.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn multiply_row<A: Element, B: Element, C: Element, S: Number, L: Fn(A) -> S, R: Fn(B) -> S, E: Fn(S) -> C>(
    a: &[A],
    b: &[B],
    groups: &[u32],
    c: &mut [C],
    sums: &mut [S],
    sizes: [usize; 3],
    a_strides: [usize; 2],
    b_strides: [usize; 3],
    columns: usize,
    along: bool,
    zero: S,
    left: L,
    right: R,
    end: E,
) {
    let (n, k) = (sizes[0], sizes[1]);
    let tiles = n.div_ceil(columns);
    let row = group_index() / tiles;
    let (local, sharing) = (local_index(), 256 / columns);
    let own_column = if along { local / sharing } else { local % columns };
    let part = if along { local % sharing } else { local / columns };
    let column = group_index() % tiles * columns + own_column;
    let group = groups[row] as usize;
    let depth = select(group < sizes[2] && column < n, k, 0);
    let a_first = row * a_strides[0];
    let b_first = group * b_strides[0] + column * b_strides[2];
    let mut sum = zero;
    // Four loads are under way at once; those behind the end read past it, which is zero without a branch.
    for step in 0..depth.div_ceil(4 * sharing) {
        for inner in unroll(0..4) {
            let at = (step * 4 + inner) * sharing + part;
            let x = a[select(at < depth, a_first + at * a_strides[1], a.len())];
            let w = b[select(at < depth, b_first + at * b_strides[1], b.len())];
            sum = left(x) * right(w) + sum;
        }
    }
    sums[part * columns + own_column] = sum;
    barrier();
    if local < columns && group_index() % tiles * columns + local < n {
        let mut all = zero;
        for other in 0..sharing {
            all += sums[other * columns + local];
        }
        c[row * n + group_index() % tiles * columns + local] = end(all);
    }
}

/// Four elements at the places `first`, `first + apart` and so on of a step's k's.
#[device]
fn put(held: &mut [f32], first: usize, four: Vec4<f32>) {
    for lane in unroll(0..4) {
        held[first + lane * (LINE * 4)] = four[lane];
    }
}

/// Rows in the order of their groups, in tiles of [`EDGE`] by [`EDGE`]; 256 invocations.
///
/// * `order`: rows, those of a group together, groups ascending.
/// * `sizes`: rows, N, K, and how many groups there are; N and K are multiples of 4.
/// * `strides`: from one row of A to the next, whose elements lie together; from one matrix to the next; and from one line of a matrix to the next, all multiples of 4.
/// * `along`: whether a matrix's lines are its columns; otherwise they are its rows.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn multiply_tile<A: Float, B: Float, C: Float>(
    a: &[A],
    b: &[B],
    groups: &[u32],
    order: &[u32],
    c: &mut [C],
    a_held: &mut [f32],
    b_held: &mut [f32],
    sizes: [usize; 4],
    strides: [usize; 3],
    along: bool,
) {
    let (rows, n, k, count) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    let tile = tile_of(group_index(), rows.div_ceil(EDGE), n.div_ceil(EDGE));
    let top = tile.x * EDGE;
    let bottom = min(top + EDGE, rows);
    let local = local_index();
    // What an invocation moves of a step: four k's of a row, and four k's or four columns of a matrix.
    let (a_line, a_quad) = (local / (DEPTH / 4), local % (DEPTH / 4));
    let a_row = order[select(top + a_line < rows, top + a_line, order.len())] as usize;
    let b_line = if along { local / (DEPTH / 4) } else { local / (EDGE / 4) };
    let b_quad = if along { local % (DEPTH / 4) } else { local % (EDGE / 4) };
    // What it computes: four rows of four columns.
    let (own_row, own_column) = (local / (EDGE / 4), local % (EDGE / 4));
    let column = tile.y * EDGE + own_column * 4;

    let mut first = top;
    while first < bottom {
        let group = groups[order[first] as usize];
        let mut end = bottom;
        let mut low = first + 1;
        while low < end {
            let middle = (low + end) / 2;
            if groups[order[middle] as usize] == group {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        let is_own = top + a_line >= first && top + a_line < end;
        let a_lines = select(is_own, a_row + 1, 0);
        let depth = select((group as usize) < count, k, 0);
        let mut sums = [Vec4::splat(0.0); 4];
        for step in 0..depth.div_ceil(DEPTH) {
            let from = step * DEPTH;
            let a_four = quad_of::<A>(a, 0, a_row, a_lines, from / 4 + a_quad, k, strides[0]);
            let line = b_line + select(along, tile.y * EDGE, from);
            let quad = b_quad + select(along, from, tile.y * EDGE) / 4;
            let lines = select(along, n, k);
            let length = select(along, k, n);
            let b_four = quad_of::<B>(b, group as usize * strides[1], line, lines, quad, length, strides[2]);
            barrier();
            put(a_held, a_quad * (16 * LINE) + a_line, a_four);
            if along {
                put(b_held, b_quad * (16 * LINE) + b_line, b_four);
            } else {
                b_held.set_vec4(b_line * LINE + b_quad, b_four);
            }
            barrier();
            for inner in unroll(0..DEPTH) {
                let left = a_held.vec4(inner * LINE + own_row);
                let right = b_held.vec4(inner * LINE + own_column);
                for r in unroll(0..4) {
                    sums[r] = right * left[r] + sums[r];
                }
            }
        }
        for r in unroll(0..4) {
            let at = top + own_row * 4 + r;
            if at >= first && at < end && column < n {
                let row = order[at] as usize;
                c.set_vec4((row * n + column) / 4, Vec4::<C>::from_f32(sums[r]));
            }
        }
        first = end;
    }
}

/// A kernel of rows in groups, row by row: as `strided!`.
macro_rules! grouped_rows {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty, $sum:ty, [$($closures:tt)*]
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            groups: &[u32],
            c: &mut [$c],
            sizes: [usize; 3],
            a_strides: [usize; 2],
            b_strides: [usize; 3],
            columns: usize,
            along: bool,
        ) {
            let mut sums = workgroup_array::<$sum>(256);
            multiply_row(
                a, b, groups, c, &mut sums, sizes, a_strides, b_strides, columns, along, $($closures)*,
            );
        }
    };
}

/// A kernel of rows in groups, in tiles: attributes, generics, `A, B => C`.
macro_rules! grouped_tiles {
    ($(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty) => {
        $(#[$doc])*
        #[kernel(
            workgroup(256),
            targets(wgsl, spirv, cuda),
            specialise(ALONG: bool = true),
            $($attribute)*
        )]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            groups: &[u32],
            order: &[u32],
            c: &mut [$c],
            sizes: [usize; 4],
            strides: [usize; 3],
        ) {
            let mut a_held = workgroup_array::<f32>(HELD);
            let mut b_held = workgroup_array::<f32>(HELD);
            multiply_tile::<$a, $b, $c>(
                a, b, groups, order, c, &mut a_held, &mut b_held, sizes, strides, ALONG,
            );
        }
    };
}

kernels! {
    /// Rows in groups, row by row.
    grouped_rows! matmul_grouped_rows {
        [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| T::from_f32(x)]
    }
    /// Rows in groups, row by row, of `f32` and halves.
    grouped_rows! matmul_grouped_rows_mixed {
        [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, f32, [0.0, |x| x, |x| x.to_f32(), |x| x]
    }
    /// Rows in groups, row by row, of `f64`.
    grouped_rows! matmul_grouped_rows_f64 {
        [requires(Float64)] [] f64, f64 => f64, f64, [0.0, |x| x, |x| x, |x| x]
    }
    /// Rows in groups, in tiles.
    grouped_tiles! matmul_grouped_tiles { [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T }
    /// Rows in groups, in tiles, of `f32` and halves.
    grouped_tiles! matmul_grouped_tiles_mixed { [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32 }
}
