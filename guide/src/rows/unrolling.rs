//! loops that are written out on request

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Scalar products of rows of 8.
#[kernel(workgroup(64))]
pub fn dots(x: &[f32], y: &[f32], out: &mut [f32]) {
    let row = global_index();
    if row < out.len() {
        let mut sum = 0.0;
        for k in unroll(0..8) {
            sum += x[8 * row + k] * y[8 * row + k];
        }
        out[row] = sum;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<f32>(2)?;
    device.run(dots(&x, &x, &mut out)?.over(2))?;
    expect(&out.read()?, &[140.0, 1100.0])
}
