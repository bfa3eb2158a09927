//! constants, by other constants

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

#[device]
const STEP: f32 = 0.25;

/// Twice the step.
#[device]
pub const STRIDE: f32 = 2.0 * STEP;

/// y = STRIDE x.
#[kernel(workgroup(64))]
pub fn scaled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = STRIDE * x[i];
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1.0f32, 3.0])?;
    let mut y = device.zeros::<f32>(2)?;
    device.run(scaled(&x, &mut y)?.over(2))?;
    expect(&y.read()?, &[0.5, 1.5])
}
