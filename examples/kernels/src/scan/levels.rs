//! Running sums in two levels: every target can do this.
//!
//! A first launch writes the sum of every tile; the same problem in small gives the sums before them; and a last launch reads the input again.

use trefoil::prelude::*;
use trefoil::{BufferSlice, BufferSliceMut, Device, Dispatch, Result};

use super::tile::{QUADS, SIZE, TILE, quad_sum, set_tile, tile_at};
use crate::workgroup::{four_sums_before, sum_all};

/// The sum of each tile.
#[kernel(workgroup(256), instances(T = [u32, f32]))]
pub fn scan_sums<T: Number>(x: &[T], sums: &mut [T]) {
    let mut scratch = workgroup_array::<T>(SIZE);
    let first = group_index() * SIZE * QUADS + local_index();
    let held = tile_at(x, first);
    let mut own = T::lit(0.0);
    for k in unroll(0..QUADS) {
        own += quad_sum(held[k]);
    }
    let sum = sum_all::<SIZE, T>(own, 0, &mut scratch);
    if local_index() == 0 {
        sums[group_index()] = sum;
    }
}

/// The running sums of each tile, from the sum `before` it on.
#[kernel(workgroup(256), instances(T = [u32, f32], EXCLUSIVE = [false, true]))]
pub fn scan_tiles<T: Number, const EXCLUSIVE: bool>(x: &[T], before: &[T], y: &mut [T]) {
    let mut scratch = workgroup_array::<T>(4 * SIZE);
    let first = group_index() * SIZE * QUADS + local_index();
    let held = tile_at(x, first);
    // A lane for each quarter of the tile.
    let own = Vec4::new(quad_sum(held[0]), quad_sum(held[1]), quad_sum(held[2]), quad_sum(held[3]));
    let mut all = own;
    let within = four_sums_before::<SIZE, T>(own, &mut all, &mut scratch);
    set_tile::<T, EXCLUSIVE>(y, first, held, within, all, before[group_index()]);
}

/// Adds the launches that write the running sums of `x` to `y`.
///
/// # Errors
/// A buffer does not fit the device.
pub fn launches<T: Number, const EXCLUSIVE: bool>(
    device: &Device,
    x: BufferSlice<'_, T>,
    y: BufferSliceMut<'_, T>,
    list: &mut Vec<Dispatch>,
) -> Result<()> {
    let tiles = x.len().div_ceil(TILE);
    // One tile has nothing before it: past the end of nothing there is 0.
    let mut before = device.uninit(if tiles > 1 { tiles } else { 0 })?;
    if tiles > 1 {
        let mut sums = device.uninit(tiles)?;
        list.push(scan_sums::<T>(x, &mut sums)?.groups(tiles));
        launches::<T, true>(device, (&sums).into(), (&mut before).into(), list)?;
    }
    list.push(scan_tiles::<T, EXCLUSIVE>(x, &before, y)?.groups(tiles));
    Ok(())
}
