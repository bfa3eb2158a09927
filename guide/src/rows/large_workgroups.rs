//! workgroups of up to 1024 invocations and 32 KiB of memory

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each workgroup turns its 8192 elements around, which take 32 KiB. Every device has workgroups of 256 invocations and 16 KiB.
#[kernel(workgroup(1024), requires(LargeWorkgroups))]
pub fn turned_around(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(8192);
    let (first, lane) = (group_index() * 8192, local_index());
    for i in (lane..8192).step_by(1024) {
        tile[i] = if first + i < x.len() { x[first + i] } else { 0.0 };
    }
    barrier();
    for i in (lane..8192).step_by(1024) {
        if first + i < y.len() {
            y[first + i] = tile[8191 - i];
        }
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..2 * 8192).map(|i| i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(numbers.len())?;
    device.run(turned_around(&x, &mut y)?.groups(2))?;
    let expected: Vec<f32> = numbers.chunks(8192).flat_map(|tile| tile.iter().rev()).copied().collect();
    expect(&y.read()?, &expected)
}
