//! bool: logic that stops early, selection

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Whether x lies between two others; 1 - x otherwise.
#[kernel(workgroup(64))]
pub fn between(x: &[f32], y: &mut [f32], low: f32, high: f32) {
    let i = global_index();
    if i < x.len() {
        let inside = x[i] >= low && !(x[i] > high);
        y[i] = select(inside, 1.0, 1.0 - x[i]);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[0.0f32, 2.0, 5.0])?;
    let mut y = device.zeros::<f32>(3)?;
    device.run(between(&x, &mut y, 1.0, 3.0)?.over(3))?;
    expect(&y.read()?, &[1.0, 1.0, -4.0])
}
