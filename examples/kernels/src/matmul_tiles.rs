//! The product of two matrices of `f16`, summed in `f32`, from tiles that are filled while others are multiplied.
//!
//! **Idea.** A workgroup computes a tile of 128 by 256. Four pairs of tiles lie in workgroup memory, 64 of the depth each: while one pair is multiplied, three are on their way by
//! asynchronous copies. The widths follow from parameters, so that a Hopper makes the copies in bulk by itself. Two teams of four subgroups share the right side, each with 64 rows of the left and of the result, so that an invocation holds 128 sums. On a Hopper the
//! products are `wgmma`, which reads both sides from workgroup memory by itself; copies are begun while it does.
//!
//! **Invariants.** One barrier a step: behind it the step's tiles are there for all, and the stage that is filled next was multiplied before it. Rows of both operands are
//! padded to multiples of 8 elements, as in [`matmul_f16`]; what is beyond a matrix is zero in a tile. Behind the last step zeros are copied, which read no memory, so that waiting for all but
//! the last two groups waits for the right one until the end.
//!
//! **Cost.** `2 m n k` operations; each operand is read from memory about once for eight rows of tiles.
//!
//! **Limit.** The barrier of each step, at which the matrix units have nothing to do: 500 to 514 TFLOP/s of one H200 at 4096 cubed on CUDA. It takes 200 KiB of workgroup memory, which Hoppers
//! have and the CPU; elsewhere [`matmul`] is that of [`matmul_f16`].

use trefoil::prelude::*;
use trefoil::{Buffer, Device, DeviceKind, Dispatch, Result};

use crate::matmul_f16::{self, LANES, checked, tile_of};

/// Rows of a workgroup's tile, 64 for each team.
#[device]
const ROWS: usize = 128;
/// Columns of it.
#[device]
const COLUMNS: usize = 256;
/// How far it goes along the depth at once.
#[device]
const DEPTH: usize = 64;
/// Pairs of tiles in workgroup memory.
#[device]
const STAGES: usize = 4;
/// Subgroups that have rows of their own.
#[device]
const SUBGROUPS: usize = ROWS / 16;
/// Accumulators of each.
#[device]
const SUMS: usize = COLUMNS / 16;
/// Invocations.
#[device]
const SIZE: usize = 256;
/// Bytes of the tiles, and of what is written at an edge.
const BYTES: usize = STAGES * (ROWS + COLUMNS) * DEPTH * 2 + SUBGROUPS * 256 * 4;

/// `c = a * b`, of `m` by `k` and `k` by `n`; without `EDGES` rows and columns are multiples of a tile's.
#[kernel(workgroup(SIZE), targets(cuda, cpu), requires(CooperativeMatrices), instances(EDGES = [false, true]))]
pub fn matmul_tiles<const EDGES: bool>(a: &[Vec4<u32>], b: &[Vec4<u32>], c: &mut [f32], m: usize, n: usize, k: usize) {
    let mut left = workgroup_tile::<f16, ROWS, DEPTH>(STAGES);
    let mut right = workgroup_tile::<f16, DEPTH, COLUMNS>(STAGES);
    let (a_width, b_width) = (k.div_ceil(LANES), n.div_ceil(LANES));
    let tile = tile_of(group_index(), m.div_ceil(ROWS), n.div_ceil(COLUMNS));
    let (row, column) = (tile.x * ROWS, tile.y * COLUMNS);
    let steps = k.div_ceil(DEPTH);
    let subgroup = subgroup_index() % SUBGROUPS;

    for step in unroll(0..STAGES - 1) {
        copy_tile_async(&mut left, step, a, row, step * (DEPTH / LANES), a_width);
        copy_tile_async(&mut right, step, b, step * DEPTH, column / LANES, b_width);
        async_commit();
    }
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); SUMS];
    for step in 0..steps {
        async_wait(STAGES - 2);
        barrier();
        multiply_tiles(&mut sums, &left, subgroup / 4, &right, 0, step);
        let next = step + STAGES - 1;
        copy_tile_async(&mut left, next, a, row, next * (DEPTH / LANES), a_width);
        copy_tile_async(&mut right, next, b, next * DEPTH, column / LANES, b_width);
        async_commit();
    }
    if !EDGES || row + ROWS <= m && column + COLUMNS <= n && n % 4 == 0 {
        for x in unroll(0..SUMS) {
            sums[x].store(c, (row + subgroup * 16) * n + column + x * 16, n);
        }
    } else {
        // At the edge every element is looked at: by way of workgroup memory, where the place of each is known.
        let mut edge = workgroup_array::<f32>(SUBGROUPS * 256);
        for x in unroll(0..SUMS) {
            sums[x].store(&mut edge, subgroup * 256, 16);
            barrier();
            for p in unroll(0..SUBGROUPS) {
                let number = local_index() + p * SIZE;
                let (to_row, to_column) = (row + number / 16, column + x * 16 + number % 16);
                if to_row < m && to_column < n {
                    c[to_row * n + to_column] = edge[number];
                }
            }
            barrier();
        }
    }
}

/// Whether a device has the memory for it.
pub fn has_room(device: &Device) -> bool {
    let bytes = device.limits().max_workgroup_bytes as usize;
    matches!(device.kind(), DeviceKind::Cuda | DeviceKind::Cpu) && bytes >= BYTES
}

/// `c = a * b`: `a` of `m` rows and `k` columns, `b` of `k` rows and `n` columns, each [padded](matmul_f16::padded).
///
/// # Errors
/// As [`matmul_f16::matmul`].
pub fn matmul(
    a: &Buffer<Vec4<u32>>,
    b: &Buffer<Vec4<u32>>,
    c: &mut Buffer<f32>,
    sizes: [usize; 3],
) -> Result<Vec<Dispatch>> {
    if !has_room(a.device()) {
        return matmul_f16::matmul(a, b, c, sizes);
    }
    if !checked(a, b, c, sizes)? {
        return Ok(Vec::new());
    }
    let [m, n, k] = sizes;
    let whole = m.is_multiple_of(ROWS) && n.is_multiple_of(COLUMNS);
    let launch = if whole { matmul_tiles::<false>(a, b, c, m, n, k)? } else { matmul_tiles::<true>(a, b, c, m, n, k)? };
    Ok(vec![launch.groups(m.div_ceil(ROWS) * n.div_ceil(COLUMNS))])
}
