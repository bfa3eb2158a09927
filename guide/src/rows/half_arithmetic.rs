//! f16: arithmetic, rounded after every operation

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Horner's rule in halves.
#[kernel(workgroup(64))]
pub fn polynomial(x: &[f16], y: &mut [f16], factor: f16) {
    let i = global_index();
    if i < y.len() {
        y[i] = (x[i] * x[i] - factor) * x[i] + f16::from_f32(0.5);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f16> = (0..77).map(|i| f16::from_f32(i as f32 * 0.375 - 9.0)).collect();
    let factor = f16::from_f32(3.5);
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f16>(numbers.len())?;
    device.run(polynomial(&x, &mut y, factor)?.over(numbers.len()))?;
    let expected: Vec<f16> = numbers.iter().map(|x| (*x * *x - factor) * *x + f16::from_f32(0.5)).collect();
    expect(&y.read()?, &expected)
}
