//! kernels generic over constants, as sizes of workgroups and arrays

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each workgroup turns its tile around.
#[kernel(workgroup(TILE), instances(TILE = [32, 64]))]
pub fn tiles<const TILE: usize>(x: &[u32], y: &mut [u32]) {
    let mut tile = workgroup_array::<u32>(TILE);
    let (i, lane) = (global_index(), local_index());
    tile[lane] = if i < x.len() { x[i] } else { 0 };
    barrier();
    if i < y.len() {
        y[i] = tile[TILE - 1 - lane];
    }
}

/// Runs both instances.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..128).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<u32>(128)?;
    let turned = |tile: usize| -> Vec<u32> { numbers.chunks(tile).flat_map(|tile| tile.iter().rev()).copied().collect() };
    device.run(tiles::<32>(&x, &mut y)?.over(128))?;
    expect(&y.read()?, &turned(32))?;
    device.run(tiles::<64>(&x, &mut y)?.over(128))?;
    expect(&y.read()?, &turned(64))
}
