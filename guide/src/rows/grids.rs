//! grids of one to three dimensions

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each invocation writes where it is.
#[kernel(workgroup(4, 2, 2))]
pub fn positions(out: &mut [u32], width: usize, height: usize) {
    let at = global_id();
    let place = (at.z * height + at.y) * width + at.x;
    if at.x < width && at.y < height && place < out.len() {
        out[place] = (at.x + 100 * at.y + 10000 * at.z) as u32;
    }
}

/// Runs it on sizes that fill no workgroup.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let (width, height, depth) = (5, 3, 3);
    let mut out = device.zeros::<u32>(width * height * depth)?;
    device.run(positions(&mut out, width, height)?.over_axes([width, height, depth]))?;
    let place = |i: usize| (i % width + 100 * (i / width % height) + 10000 * (i / (width * height))) as u32;
    expect(&out.read()?, &(0..width * height * depth).map(place).collect::<Vec<_>>())
}
