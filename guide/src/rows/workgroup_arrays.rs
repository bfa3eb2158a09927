//! memory that a workgroup shares, and barriers

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each workgroup turns its 64 elements around.
#[kernel(workgroup(64))]
pub fn reversed(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    let (i, lane) = (global_index(), local_index());
    tile[lane] = if i < x.len() { x[i] } else { 0.0 };
    barrier();
    if i < y.len() {
        y[i] = tile[63 - lane];
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..128).map(|i| i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(128)?;
    device.run(reversed(&x, &mut y)?.over(128))?;
    let expected: Vec<f32> = numbers.chunks(64).flat_map(|tile| tile.iter().rev()).copied().collect();
    expect(&y.read()?, &expected)
}
