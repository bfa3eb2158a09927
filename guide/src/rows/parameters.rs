//! parameters by value: scalars, vectors, arrays

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// y = a x + b, with the coefficients of each of four channels.
#[kernel(workgroup(64))]
pub fn affine(x: &[f32], y: &mut [f32], factors: [f32; 4], offset: Vec2<f32>, swap: bool) {
    let i = global_index();
    if i < y.len() {
        let channel = i % 4;
        let shift = if swap { offset.y } else { offset.x };
        y[i] = x[i] * factors[channel] + shift;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1.0f32, 1.0, 1.0, 1.0, 2.0])?;
    let mut y = device.zeros::<f32>(5)?;
    device.run(affine(&x, &mut y, [1.0, 2.0, 3.0, 4.0], Vec2::new(0.0, 0.5), true)?.over(5))?;
    expect(&y.read()?, &[1.5, 2.5, 3.5, 4.5, 2.5])
}
