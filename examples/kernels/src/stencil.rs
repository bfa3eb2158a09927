//! A stencil: each element of a grid becomes a weighted sum of itself and its eight neighbours, any number of times in a row.
//!
//! **Idea.** A workgroup computes a tile of 32 by 32 elements. It first reads the tile and a *halo* of one element on every side into workgroup memory, so that each
//! element is read from the buffer once for each tile that needs it instead of nine times.
//!
//! **Invariants.** Beyond the grid there are zeros. A row or column before the first wraps to a large number, so that one comparison finds both ends. A step
//! reads one buffer and writes another.
//!
//! **Cost.** A step reads 34 * 34 elements for 32 * 32, of which a cache serves most of the halo: 8.5 bytes and 9 multiply-adds an element. Memory
//! limits it.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Device, Dispatch, Result};

use crate::{expect_length, refused};

/// Rows and columns of a tile.
#[device]
const TILE: usize = 32;
/// The same with the halo.
#[device]
const EDGE: usize = TILE + 2;
/// Invocations of a workgroup, a quarter of a tile.
#[device]
const SIZE: usize = 256;

/// One step; `weights` row by row.
#[kernel(workgroup(256))]
pub fn stencil_step(from: &[f32], to: &mut [f32], width: usize, height: usize, weights: [f32; 9]) {
    let mut tile = workgroup_array::<f32>(EDGE * EDGE);
    let across = width.div_ceil(TILE);
    let first_row = group_index() / across * TILE;
    let first_column = group_index() % across * TILE;
    for at in (local_index()..EDGE * EDGE).step_by(SIZE) {
        let row = first_row + at / EDGE - 1;
        let column = first_column + at % EDGE - 1;
        tile[at] = select(row < height && column < width, from[row * width + column], 0.0);
    }
    barrier();
    let column = local_index() % TILE;
    for part in unroll(0..4) {
        let row = local_index() / TILE + part * (SIZE / TILE);
        let mut sum = 0.0;
        for down in unroll(0..3) {
            for right in unroll(0..3) {
                sum = weights[3 * down + right] * tile[(row + down) * EDGE + column + right] + sum;
            }
        }
        if first_row + row < height && first_column + column < width {
            to[(first_row + row) * width + first_column + column] = sum;
        }
    }
}

/// `to` = `from` after `steps` steps; both have `height` rows of `width` elements.
///
/// # Errors
/// There are no steps, a buffer has another size, or a buffer does not fit the device.
pub fn stencil<'a>(
    device: &Device,
    from: impl ReadBuffer<'a, f32>,
    to: impl WriteBuffer<'a, f32>,
    [height, width]: [usize; 2],
    weights: [f32; 9],
    steps: usize,
) -> Result<Vec<Dispatch>> {
    let (from, mut to) = (from.slice(), to.slice_mut());
    if steps == 0 {
        return Err(refused("stencil", "steps", "0 given, at least 1 expected"));
    }
    let size = height.checked_mul(width).ok_or_else(|| refused("stencil", "size", "it has too many elements"))?;
    expect_length("stencil", "from", from.len(), size)?;
    expect_length("stencil", "to", to.len(), size)?;
    let groups = height.div_ceil(TILE) * width.div_ceil(TILE);
    // What all steps but the last write, by turns.
    let mut even = device.uninit::<f32>(if steps > 1 { size } else { 0 })?;
    let mut odd = device.uninit::<f32>(if steps > 2 { size } else { 0 })?;
    let mut launches = Vec::with_capacity(steps);
    for number in 0..steps {
        let (read, write) = if number % 2 == 0 { (&odd, &mut even) } else { (&even, &mut odd) };
        let read = if number == 0 { from } else { read.into() };
        let write = if number + 1 == steps { to.reborrow() } else { write.into() };
        launches.push(stencil_step(read, write, width, height, weights)?.groups(groups));
    }
    Ok(launches)
}
