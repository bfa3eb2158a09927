//! The product of two matrices of `f16`, summed in `f32`, on matrix units.
//!
//! **Idea.** A workgroup computes a tile of 128 by 256. It goes along the depth 32 at a time: a tile of each operand lies in workgroup memory, and while the subgroups multiply
//! them, the loads of the next are under way to registers. They are in no branch, lest a device wait for one before it begins the next: after the last step they are
//! those of the last step again. Eight subgroups share the tile, each with 64 by 64 of it in sixteen accumulators of 16 by 16, so that what a subgroup loads from workgroup
//! memory meets four others. Workgroups that run together have tiles that lie together, eight rows of tiles at a time, so that the operands come from the cache.
//!
//! **Invariants.** Rows of both operands are padded to multiples of 8 elements, so that all loads are of 16 bytes ([`padded`]); what lies in the padding is
//! multiplied by what lies beyond the other operand, which is read as zero. Lines in workgroup memory are odd multiples of 16 bytes apart, so that their loads meet no bank
//! twice. The compiler proves that every tile is in memory. A subgroup beyond the eighth, on devices with small subgroups, does again what the one eight before it does; with subgroups of more than 32
//! there would not be eight, which [`matmul`] refuses.
//!
//! **Cost.** `2 m n k` operations; each operand is read from memory about once for eight rows of tiles.
//!
//! **Limit.** How soon the operands come: at 4096 cubed one H200 does 305 TFLOP/s on CUDA, 247 on Vulkan and 210 on wgpu. Where a device has the memory,
//! [`matmul_tiles`](crate::matmul_tiles) is faster.

use trefoil::prelude::*;
use trefoil::{Buffer, Dispatch, Result};

use crate::{expect_length, refused};

/// Rows of a workgroup's tile.
#[device]
pub const ROWS: usize = 128;
/// Columns of a workgroup's tile.
#[device]
pub const COLUMNS: usize = 256;
/// Rows and columns of a subgroup's part of it.
#[device]
const PART: usize = 64;
/// Elements in 16 bytes.
#[device]
pub const LANES: usize = 8;
/// From one row of the right operand's tile to the next, in 16 bytes.
#[device]
const RIGHT: usize = COLUMNS / LANES + 1;
/// How far it goes along the depth at once.
#[device]
const DEPTH: usize = 32;
/// From one row of the left operand's tile to the next, in 16 bytes.
#[device]
const LEFT: usize = DEPTH / LANES + 1;
/// How many subgroups share a tile.
#[device]
const SUBGROUPS: usize = ROWS / PART * COLUMNS / PART;
/// The largest subgroup of which there are so many.
const LARGEST_SUBGROUP: u32 = 32;
/// Rows of tiles whose workgroups run together.
#[device]
pub const BAND: usize = 8;
/// Invocations.
#[device]
const SIZE: usize = 256;
/// Pieces of 16 bytes that an invocation moves of the left operand's tile.
#[device]
const LEFT_PIECES: usize = ROWS * DEPTH / LANES / SIZE;
/// And of the right operand's.
#[device]
const RIGHT_PIECES: usize = COLUMNS * DEPTH / LANES / SIZE;

/// The row and column of a workgroup's tile among `rows` by `columns` tiles.
#[device]
pub fn tile_of(group: usize, rows: usize, columns: usize) -> Vec2<usize> {
    let first = group / (BAND * columns) * BAND;
    let within = group % (BAND * columns);
    let band = min(BAND, rows - first);
    Vec2::new(first + within % band, within / band)
}

/// 16 bytes of a matrix whose rows are `width` of them; zero beyond its edges, where a tile may reach beyond.
#[device]
fn piece<const EDGES: bool>(x: &[Vec4<u32>], row: usize, rows: usize, column: usize, width: usize) -> Vec4<u32> {
    if !EDGES || row < rows && column < width { x[row * width + column] } else { Vec4::splat(0) }
}

/// `c = a * b`, of `m` by `k` and `k` by `n`; without `EDGES` all of them are multiples of a tile's.
#[kernel(workgroup(SIZE), targets(spirv, cuda, cpu), requires(CooperativeMatrices), instances(EDGES = [false, true]))]
pub fn matmul_f16<const EDGES: bool>(a: &[Vec4<u32>], b: &[Vec4<u32>], c: &mut [f32], m: usize, n: usize, k: usize) {
    let mut left = workgroup_array::<Vec4<u32>>(ROWS * LEFT);
    let mut right = workgroup_array::<Vec4<u32>>(DEPTH * RIGHT);
    let (a_width, b_width) = (k.div_ceil(LANES), n.div_ceil(LANES));
    let tile = tile_of(group_index(), m.div_ceil(ROWS), n.div_ceil(COLUMNS));
    let (row, column) = (tile.x * ROWS, tile.y * COLUMNS);
    let i = local_index();
    // Neighbours move pieces that lie together.
    let (left_row, left_column) = (i / (DEPTH / LANES), i % (DEPTH / LANES));
    let (right_row, right_column) = (i / (COLUMNS / LANES), i % (COLUMNS / LANES));
    let (left_step, right_step) = (SIZE * LANES / DEPTH, SIZE * LANES / COLUMNS);
    let subgroup = subgroup_index() % SUBGROUPS;
    let (top, start) = (subgroup % (ROWS / PART) * PART, subgroup / (ROWS / PART) * PART);

    let mut sums = [[Accumulator::<f32, 16, 16>::fill(0.0); 4]; 4];
    let mut next_left = [Vec4::<u32>::splat(0); LEFT_PIECES];
    let mut next_right = [Vec4::<u32>::splat(0); RIGHT_PIECES];
    for p in unroll(0..LEFT_PIECES) {
        next_left[p] = piece::<EDGES>(a, row + left_row + p * left_step, m, left_column, a_width);
    }
    for p in unroll(0..RIGHT_PIECES) {
        next_right[p] = piece::<EDGES>(b, right_row + p * right_step, k, column / LANES + right_column, b_width);
    }
    let steps = k.div_ceil(DEPTH);
    for step in 0..steps {
        for p in unroll(0..LEFT_PIECES) {
            left[(left_row + p * left_step) * LEFT + left_column] = next_left[p];
        }
        for p in unroll(0..RIGHT_PIECES) {
            right[(right_row + p * right_step) * RIGHT + right_column] = next_right[p];
        }
        barrier();
        let depth = min(step + 1, steps - 1) * DEPTH;
        for p in unroll(0..LEFT_PIECES) {
            let from = depth / LANES + left_column;
            next_left[p] = piece::<EDGES>(a, row + left_row + p * left_step, m, from, a_width);
        }
        for p in unroll(0..RIGHT_PIECES) {
            let from = column / LANES + right_column;
            next_right[p] = piece::<EDGES>(b, depth + right_row + p * right_step, k, from, b_width);
        }
        for d in unroll(0..DEPTH / 16) {
            let mut sides = [MatrixA::<f16, 16, 16>::fill(f16::from_f32(0.0)); 4];
            for y in unroll(0..4) {
                sides[y] = MatrixA::load(&left, (top + y * 16) * LEFT + d * 2, LEFT);
            }
            for x in unroll(0..4) {
                let side = MatrixB::<f16, 16, 16>::load(&right, d * 16 * RIGHT + start / LANES + x * 2, RIGHT);
                for y in unroll(0..4) {
                    sums[y][x] = multiply_add(sides[y], side, sums[y][x]);
                }
            }
        }
        barrier();
    }
    if !EDGES || row + ROWS <= m && column + COLUMNS <= n && n % 4 == 0 {
        for y in unroll(0..4) {
            for x in unroll(0..4) {
                sums[y][x].store(c, (row + top + y * 16) * n + column + start + x * 16, n);
            }
        }
    } else {
        // At the edge every element is looked at: by way of workgroup memory, where the place of each is known.
        for y in unroll(0..4) {
            for x in unroll(0..4) {
                sums[y][x].store(&mut left, subgroup * 64, 4);
                barrier();
                for p in unroll(0..SUBGROUPS * 64 / SIZE) {
                    let number = i + p * SIZE;
                    let from = number / 64;
                    let to_row = row + from % (ROWS / PART) * PART + y * 16 + number % 64 / 4;
                    let to_column = column + from / (ROWS / PART) * PART + x * 16 + number % 4 * 4;
                    let values = left[number];
                    let words = [values.x, values.y, values.z, values.w];
                    for lane in unroll(0..4) {
                        if to_row < m && to_column + lane < n {
                            c[to_row * n + to_column + lane] = bitcast::<f32>(words[lane]);
                        }
                    }
                }
                barrier();
            }
        }
    }
}

/// The rows of a matrix, each followed by zeros to a multiple of 8 elements, as [`matmul`] wants its operands.
pub fn padded(elements: &[f16], columns: usize) -> Vec<Vec4<u32>> {
    let mut all = Vec::new();
    for row in elements.chunks(columns.max(1)) {
        for eight in row.chunks(LANES) {
            let bits = |at: usize| eight.get(at).map_or(0, |half| u32::from(half.to_bits()));
            all.push(Vec4::from_array([0, 2, 4, 6].map(|at| bits(at) | bits(at + 1) << 16)));
        }
    }
    all
}

/// Checks the arguments of a product, and whether there is anything to do.
pub(crate) fn checked(
    a: &Buffer<Vec4<u32>>,
    b: &Buffer<Vec4<u32>>,
    c: &Buffer<f32>,
    [m, n, k]: [usize; 3],
) -> Result<bool> {
    expect_length("matmul", "a", a.len(), m * k.div_ceil(LANES))?;
    expect_length("matmul", "b", b.len(), k * n.div_ceil(LANES))?;
    expect_length("matmul", "c", c.len(), m * n)?;
    if m * n > 0 && k == 0 {
        return Err(refused("matmul", "k", "a sum of no products is no product: fill `c` with zeros"));
    }
    Ok(m * n > 0)
}

/// `c = a * b`: `a` of `m` rows and `k` columns, `b` of `k` rows and `n` columns, each [`padded`].
///
/// # Errors
/// An argument does not have the length that the sizes ask for, or a size is 0 where another is not, or the device has too large subgroups.
pub fn matmul(
    a: &Buffer<Vec4<u32>>,
    b: &Buffer<Vec4<u32>>,
    c: &mut Buffer<f32>,
    [m, n, k]: [usize; 3],
) -> Result<Vec<Dispatch>> {
    if !checked(a, b, c, [m, n, k])? {
        return Ok(Vec::new());
    }
    let largest = a.device().limits().max_subgroup;
    if largest > LARGEST_SUBGROUP {
        let message = format!("subgroups of up to {largest} on this device, at most {LARGEST_SUBGROUP} expected");
        return Err(refused("matmul", "a", message));
    }
    let groups = m.div_ceil(ROWS) * n.div_ceil(COLUMNS);
    let whole = m.is_multiple_of(ROWS) && n.is_multiple_of(COLUMNS) && k.is_multiple_of(DEPTH);
    let launch = if whole { matmul_f16::<false>(a, b, c, m, n, k)? } else { matmul_f16::<true>(a, b, c, m, n, k)? };
    Ok(vec![launch.groups(groups)])
}
