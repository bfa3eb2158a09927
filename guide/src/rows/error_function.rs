//! functions of f32 that few languages have: erf

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect_near};

/// The error function.
#[kernel(workgroup(64))]
pub fn erfs(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = erf(x[i]);
    }
}

/// Runs it; the values are known to many digits.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[0.0f32, 0.5, -1.0, 3.0])?;
    let mut y = device.zeros::<f32>(4)?;
    device.run(erfs(&x, &mut y)?.over(4))?;
    expect_near(&y.read()?, &[0.0, 0.520_499_9, -0.842_700_8, 0.999_977_9])
}
