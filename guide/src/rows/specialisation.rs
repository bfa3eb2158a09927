//! constants that are fixed when a pipeline is made, within declared ranges

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each workgroup reverses a tile of `TILE` elements, through an array of as many.
#[kernel(workgroup(64), specialise(TILE: usize = 16, in 4..=64, multiple_of 4))]
pub fn reversed(x: &[u32], y: &mut [u32]) {
    let mut tile = workgroup_array::<u32>(TILE);
    let lane = local_index();
    let first = group_index() * TILE;
    if lane < TILE {
        tile[lane] = x[first + lane];
    }
    barrier();
    if lane < TILE {
        y[first + lane] = tile[TILE - 1 - lane];
    }
}

/// Runs it with the usual tile and with a larger one; a tile that is not in the range is an error.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x: Vec<u32> = (0..64).collect();
    let there = device.buffer(&x)?;
    let mut y = device.zeros::<u32>(64)?;
    let expected = |tile: usize| x.chunks(tile).flat_map(|tile| tile.iter().rev().copied()).collect::<Vec<u32>>();
    device.run(reversed(&there, &mut y)?.groups(4))?;
    expect(&y.read()?, &expected(16))?;
    device.run(reversed(&there, &mut y)?.specialise(reversed::Constants { tile: 32 })?.groups(2))?;
    expect(&y.read()?, &expected(32))?;
    match reversed(&there, &mut y)?.specialise(reversed::Constants { tile: 30 }) {
        Ok(_) => Err("a tile of 30 was taken".into()),
        Err(_) => Ok(()),
    }
}
