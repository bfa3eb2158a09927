//! Tiles: parts of matrices in workgroup memory, laid out as the device's matrix units read them, and their products.
//!
//! A product of large matrices lives from workgroup memory that is filled while it is read, in the layout that the hardware wants: on NVIDIA's Hopper four subgroups
//! multiply 64 rows by up to 256 columns in one instruction (`wgmma`), which reads both sides from memory whose rows are permuted. A [`WorkgroupTile`] has the layout of
//! the device, and three functions are all that is done with it: [`workgroup_tile`] declares it, [`copy_tile_async`] fills a stage of it, [`multiply_tiles`] adds the
//! product of two tiles to accumulators of the subgroup.
//!
//! Older devices of CUDA multiply by `mma.sync`, Vulkan and the CPU by [`Accumulator`]s of 16x16x16 as [`crate::matrix`] has them: such kernels are written for
//! [`Feature::CooperativeMatrices`](crate::intrinsics::target::Feature::CooperativeMatrices), and not for WGSL.
//!
//! ```
//! use trefoil_dsl::prelude::*;
//!
//! /// `c = a * b`, of `f16` in rows of whole 16 bytes, with sides of multiples of 64.
//! #[kernel(workgroup(128), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
//! fn multiply(a: &[Vec4<u32>], b: &[Vec4<u32>], c: &mut [f32], n: usize, k: usize) {
//!     let mut left = workgroup_tile::<f16, 64, 64>(2);
//!     let mut right = workgroup_tile::<f16, 64, 64>(2);
//!     let (row, column) = (group_index() / (n / 64) * 64, group_index() % (n / 64) * 64);
//!     // Rows of 64 elements are 8 times 16 bytes.
//!     copy_tile_async(&mut left, 0, a, row, 0, k / 8);
//!     copy_tile_async(&mut right, 0, b, 0, column / 8, n / 8);
//!     async_commit();
//!     let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];
//!     for step in 0..k / 64 {
//!         async_wait(0);
//!         // What all invocations copied is there, and the stage that comes next is read by nobody.
//!         barrier();
//!         multiply_tiles(&mut sums, &left, 0, &right, 0, step);
//!         copy_tile_async(&mut left, step + 1, a, row, (step + 1) * 8, k / 8);
//!         copy_tile_async(&mut right, step + 1, b, (step + 1) * 64, column / 8, n / 8);
//!         async_commit();
//!     }
//!     // Each subgroup has 16 of the 64 rows.
//!     let own = row + subgroup_index() % 4 * 16;
//!     for x in unroll(0..4) {
//!         sums[x].store(c, own * n + column + x * 16, n);
//!     }
//! }
//! ```

use crate::matrix::{Accumulator, MatrixScalar};
use crate::vector::Vec4;

/// Stages of `ROWS` by `COLUMNS` elements in workgroup memory, made by [`workgroup_tile`].
#[derive(Clone, Debug)]
pub struct WorkgroupTile<T, const ROWS: usize, const COLUMNS: usize>(Vec<[[T; COLUMNS]; ROWS]>);

/// Elements in 16 bytes.
const LANES: usize = 8;

/// Rows that four subgroups multiply together.
const TEAM_ROWS: usize = 64;

/// A tile of so many stages: `let mut tile = workgroup_tile::<f16, 128, 64>(3);`.
///
/// Rows and columns are multiples of 64, and the elements `f16` or `bf16`. It is one variable of the kernel, wherever the call stands, and used in the function that declares it. Its contents are
/// unspecified until written (zeros on the host).
#[must_use]
pub fn workgroup_tile<T: MatrixScalar, const ROWS: usize, const COLUMNS: usize>(
    stages: usize,
) -> WorkgroupTile<T, ROWS, COLUMNS> {
    WorkgroupTile(vec![[[T::narrow(0.0); COLUMNS]; ROWS]; stages])
}

/// Begins to copy a part of a matrix to a stage of a tile.
///
/// The matrix is the bits of its elements, 16 bytes at a time, in rows of `width` such pieces; the part begins at `row` and at piece `column` of a row. What is beyond a row's
/// end, or beyond the last whole row of `from`, is zero in the tile. `stage` counts modulo the number of stages.
///
/// The workgroup does it together: every invocation gets there or none, and all give the same numbers. It is an asynchronous copy: [`async_commit`](crate::asynchronous::async_commit)
/// closes a group, and the tile is there behind an [`async_wait`](crate::asynchronous::async_wait) for it and a [`barrier`](crate::intrinsics::barrier).
///
/// On a Hopper the hardware copies whole boxes by itself (TMA) where the kernel's own body calls it with a `width` that is computed from parameters, `.len()`s and constants alone: the
/// launch then hands over a tensor map of the matrix, which is of up to 2^28 times 16 bytes by 2^31 - 4096 rows. Elsewhere, and where parameters are read from a buffer, each
/// invocation copies pieces of 16 bytes.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// let x = vec![Vec4::<u32>::splat(0); 64 * 16];
/// let mut tile = workgroup_tile::<f16, 64, 64>(2);
/// // Of rows of 128 elements the right half.
/// copy_tile_async(&mut tile, 1, &x, 0, 8, 16);
/// ```
pub fn copy_tile_async<T: MatrixScalar, const ROWS: usize, const COLUMNS: usize>(
    tile: &mut WorkgroupTile<T, ROWS, COLUMNS>,
    stage: usize,
    from: &[Vec4<u32>],
    row: usize,
    column: usize,
    width: usize,
) {
    let rows = from.len().checked_div(width).unwrap_or(0);
    let stages = tile.0.len();
    for (i, line) in tile.0[stage % stages].iter_mut().enumerate() {
        for (j, element) in line.iter_mut().enumerate() {
            let (row, column) = (row.saturating_add(i), column.saturating_add(j / LANES));
            let inside = row < rows && column < width;
            *element = if inside { T::of_bits(from[row * width + column], j % LANES) } else { T::narrow(0.0) };
        }
    }
}

/// Adds the product of 64 rows of a tile and some columns of another to the accumulators of the subgroups that share it.
///
/// Four consecutive subgroups are a team: those whose [`subgroup_index`](crate::intrinsics::subgroup_index) divided by four is the same. A team adds to 64 rows, of which the
/// subgroup with index `s` has 16, those from `16 * (s % 4)` on: `sums` are its accumulators, from left to right. They are 4, 8, 12 or 16.
///
/// `rows` tells which 64 rows of `a`, `columns` which group of columns of `b`, each as many as the accumulators have, and `stage` which stage of both tiles; all of them count modulo
/// what the tiles have. The subgroups of a team give the same numbers, and every invocation of the workgroup gets there or none. A workgroup has a multiple of 128 invocations.
///
/// On a Hopper the team's product is one instruction for each 16 of the depth, and goes on while the kernel does something else, until it looks at the sums, or comes to a barrier
/// or to the end of the block: what is begun between the product and these, as the copy to the next stage, costs no time. Nothing may write to that stage before the next barrier.
///
/// Where subgroups have 32 invocations, a team has 128. On devices with smaller ones a workgroup has more teams, which may do the same again; one with larger ones does not load the kernel.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// let ones = f16::from_f32(1.0).to_bits();
/// let x = vec![Vec4::<u32>::splat(u32::from(ones) << 16 | u32::from(ones)); 64 * 8];
/// let mut a = workgroup_tile::<f16, 64, 64>(1);
/// let mut b = workgroup_tile::<f16, 64, 64>(1);
/// copy_tile_async(&mut a, 0, &x, 0, 0, 8);
/// copy_tile_async(&mut b, 0, &x, 16, 0, 8);
/// let mut sums = [Accumulator::<f32, 16, 16>::fill(0.5); 4];
/// multiply_tiles(&mut sums, &a, 0, &b, 0, 0);
/// let mut out = [0.0; 256];
/// sums[3].store(&mut out, 0, 16);
/// assert_eq!(out, [48.5; 256]);
/// ```
pub fn multiply_tiles<T, const SUMS: usize, const ROWS: usize, const DEPTH: usize, const COLUMNS: usize>(
    sums: &mut [Accumulator<f32, 16, 16>; SUMS],
    a: &WorkgroupTile<T, ROWS, DEPTH>,
    rows: usize,
    b: &WorkgroupTile<T, DEPTH, COLUMNS>,
    columns: usize,
    stage: usize,
) where
    T: MatrixScalar,
{
    // On the host there is the first subgroup alone.
    let top = rows % (ROWS / TEAM_ROWS) * TEAM_ROWS;
    let left = columns % (COLUMNS / (16 * SUMS)) * 16 * SUMS;
    let (a, b) = (&a.0[stage % a.0.len()], &b.0[stage % b.0.len()]);
    for (number, sum) in sums.iter_mut().enumerate() {
        sum.add_each(|i, j| {
            let column = left + number * 16 + j;
            (0..DEPTH).map(|k| a[top + i][k].widen() * b[k][column].widen()).sum()
        });
    }
}
