//! f32: arithmetic and comparison

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The larger of x y + z and x / y.
#[kernel(workgroup(64))]
pub fn arithmetic(x: &[f32], y: &[f32], z: &mut [f32]) {
    let i = global_index();
    if i < z.len() {
        let (sum, quotient) = (x[i] * y[i] + z[i], x[i] / y[i]);
        z[i] = if sum > quotient { sum } else { -quotient };
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let (x, y) = (device.buffer(&[1.0f32, -8.0, 3.0])?, device.buffer(&[2.0f32, 4.0, -4.0])?);
    let mut z = device.buffer(&[0.5f32, 16.0, 0.0])?;
    device.run(arithmetic(&x, &y, &mut z)?.over(3))?;
    expect(&z.read()?, &[2.5, 2.0, 0.75])
}
