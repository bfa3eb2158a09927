//! The product of two matrices of `f16`, summed in `f32`, on matrix units.
//!
//! **Idea.** A workgroup computes a tile of 128 by 128. It goes along the depth 32 at a time, or 16 where workgroup memory is small: two tiles of the operands lie in workgroup memory, and while the
//! subgroups multiply one, the loads of the next are under way to registers, from where they are stored to the other. Eight subgroups share the tile, each with 64 by 32 of it in
//! eight accumulators of 16 by 16. Workgroups that run together have tiles that lie together, eight rows of tiles at a time, so that the operands come from the cache.
//!
//! **Invariants.** Rows of both operands are padded to multiples of 8 elements, so that all loads are of 16 bytes ([`padded`]); what lies in the padding is
//! multiplied by what lies beyond the other operand, which is read as zero. Lines in workgroup memory are odd multiples of 16 bytes apart, so that their loads meet no bank
//! twice. The compiler proves that every tile is in memory. A subgroup beyond the eighth, on devices with small subgroups, does again what the one eight before it does.
//!
//! **Cost.** `2 m n k` operations; each operand is read from memory about once for eight rows of tiles.
//!
//! **Limit.** The matrix units, as far as `mma.sync` feeds them: 260 TFLOP/s of one H200 at 4096 cubed on CUDA, and half of that by its Vulkan driver.

use trefoil::prelude::*;
use trefoil::{Buffer, Dispatch, Result};

use crate::{expect_length, refused};

/// Rows and columns of a workgroup's tile.
#[device]
pub const TILE: usize = 128;
/// Elements in 16 bytes.
#[device]
pub const LANES: usize = 8;
/// From one row of the right operand's tile to the next, in 16 bytes.
#[device]
const RIGHT: usize = TILE / LANES + 1;
/// How many subgroups share a tile.
#[device]
const SUBGROUPS: usize = 8;
/// Rows of tiles whose workgroups run together.
#[device]
const BAND: usize = 8;
/// Invocations.
#[device]
const SIZE: usize = 256;

/// The row and column of a workgroup's tile among `rows` by `columns` tiles.
#[device]
fn tile_of(group: usize, rows: usize, columns: usize) -> Vec2<usize> {
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

/// `c = a * b`, of `m` by `k` and `k` by `n`; without `EDGES` all of them are multiples of a tile's. It goes along the depth `DEPTH` at a time.
#[kernel(
    workgroup(256),
    targets(spirv, cuda, cpu),
    requires(CooperativeMatrices),
    instances(EDGES = [false, true], DEPTH = [32, 16])
)]
pub fn matmul_f16<const EDGES: bool, const DEPTH: usize>(
    a: &[Vec4<u32>],
    b: &[Vec4<u32>],
    c: &mut [f32],
    m: usize,
    n: usize,
    k: usize,
) {
    let mut left = workgroup_array::<Vec4<u32>>(2 * TILE * (DEPTH / LANES + 1));
    let mut right = workgroup_array::<Vec4<u32>>(2 * DEPTH * RIGHT);
    let (a_width, b_width) = (k.div_ceil(LANES), n.div_ceil(LANES));
    let tile = tile_of(group_index(), m.div_ceil(TILE), n.div_ceil(TILE));
    let (row, column) = (tile.x * TILE, tile.y * TILE);
    let i = local_index();
    // From one row of the left operand's tile to the next, in 16 bytes.
    let line = DEPTH / LANES + 1;
    // An invocation moves `DEPTH / 16` pieces of each tile.
    let (left_row, left_column) = (i / (DEPTH / LANES), i % (DEPTH / LANES));
    let (right_row, right_column) = (i / 16, i % 16);
    let subgroup = subgroup_index() % SUBGROUPS;
    let (top, start) = (subgroup / 4 * 64, subgroup % 4 * 32);

    let mut sums = [[Accumulator::<f32, 16, 16>::fill(0.0); 2]; 4];
    let mut next_left = [Vec4::<u32>::splat(0); 2];
    let mut next_right = [Vec4::<u32>::splat(0); 2];
    for p in unroll(0..DEPTH / 16) {
        next_left[p] = piece::<EDGES>(a, row + left_row + p * 64, m, left_column, a_width);
        next_right[p] = piece::<EDGES>(b, right_row + p * 16, k, column / LANES + right_column, b_width);
    }
    for p in unroll(0..DEPTH / 16) {
        left[(left_row + p * 64) * line + left_column] = next_left[p];
        right[(right_row + p * 16) * RIGHT + right_column] = next_right[p];
    }
    barrier();
    let steps = k.div_ceil(DEPTH);
    for step in 0..steps {
        let more = step + 1 < steps;
        if more {
            let depth = (step + 1) * DEPTH;
            for p in unroll(0..DEPTH / 16) {
                next_left[p] = piece::<EDGES>(a, row + left_row + p * 64, m, depth / LANES + left_column, a_width);
                next_right[p] =
                    piece::<EDGES>(b, depth + right_row + p * 16, k, column / LANES + right_column, b_width);
            }
        }
        let half = step % 2;
        for d in unroll(0..DEPTH / 16) {
            let mut sides = [MatrixA::<f16, 16, 16>::fill(f16::from_f32(0.0)); 4];
            for y in unroll(0..4) {
                sides[y] = MatrixA::load(&left, half * (TILE * line) + (top + y * 16) * line + d * 2, line);
            }
            for x in unroll(0..2) {
                let at = half * (DEPTH * RIGHT) + d * 16 * RIGHT + start / LANES + x * 2;
                let side = MatrixB::<f16, 16, 16>::load(&right, at, RIGHT);
                for y in unroll(0..4) {
                    sums[y][x] = multiply_add(sides[y], side, sums[y][x]);
                }
            }
        }
        if more {
            let other = 1 - half;
            for p in unroll(0..DEPTH / 16) {
                left[other * (TILE * line) + (left_row + p * 64) * line + left_column] = next_left[p];
                right[other * (DEPTH * RIGHT) + (right_row + p * 16) * RIGHT + right_column] = next_right[p];
            }
        }
        barrier();
    }
    if !EDGES || row + TILE <= m && column + TILE <= n && n % 4 == 0 {
        for y in unroll(0..4) {
            for x in unroll(0..2) {
                sums[y][x].store(c, (row + top + y * 16) * n + column + start + x * 16, n);
            }
        }
    } else {
        // At the edge every element is looked at: by way of workgroup memory, where the place of each is known.
        for y in unroll(0..4) {
            for x in unroll(0..2) {
                sums[y][x].store(&mut left, subgroup * 64, 4);
                barrier();
                for p in unroll(0..2) {
                    let number = i + p * SIZE;
                    let from = number / 64;
                    let to_row = row + from / 4 * 64 + y * 16 + number % 64 / 4;
                    let to_column = column + from % 4 * 32 + x * 16 + number % 4 * 4;
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

/// `c = a * b`: `a` of `m` rows and `k` columns, `b` of `k` rows and `n` columns, each [`padded`].
///
/// # Errors
/// An argument does not have the length that the sizes ask for, or a size is 0 where another is not.
pub fn matmul(
    a: &Buffer<Vec4<u32>>,
    b: &Buffer<Vec4<u32>>,
    c: &mut Buffer<f32>,
    [m, n, k]: [usize; 3],
) -> Result<Vec<Dispatch>> {
    expect_length("matmul", "a", a.len(), m * k.div_ceil(LANES))?;
    expect_length("matmul", "b", b.len(), k * n.div_ceil(LANES))?;
    expect_length("matmul", "c", c.len(), m * n)?;
    if m * n == 0 {
        return Ok(Vec::new());
    }
    if k == 0 {
        return Err(refused("matmul", "k", "a sum of no products is no product: fill `c` with zeros"));
    }
    let groups = m.div_ceil(TILE) * n.div_ceil(TILE);
    let whole = |depth| m.is_multiple_of(TILE) && n.is_multiple_of(TILE) && k.is_multiple_of(depth);
    let deep = if whole(32) {
        matmul_f16::<false, 32>(a, b, &mut *c, m, n, k)?
    } else {
        matmul_f16::<true, 32>(a, b, &mut *c, m, n, k)?
    };
    let launch = if deep.kernel().workgroup_bytes <= a.device().limits().max_workgroup_bytes {
        deep
    } else if whole(16) {
        matmul_f16::<false, 16>(a, b, c, m, n, k)?
    } else {
        matmul_f16::<true, 16>(a, b, c, m, n, k)?
    };
    Ok(vec![launch.groups(groups)])
}
