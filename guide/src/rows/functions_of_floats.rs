//! functions of f32: exp, ln, sqrt, sin and others

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect_near};

/// A value that goes through several functions and comes back.
#[kernel(workgroup(64))]
pub fn elementary(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        let (sine, cosine) = (sin(x[i]), cos(x[i]));
        y[i] = ln(exp(x[i])) * sqrt(sine * sine + cosine * cosine) + floor(x[i]) - x[i].floor();
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (1..100).map(|i| i as f32 * 0.1).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(numbers.len())?;
    device.run(elementary(&x, &mut y)?.over(numbers.len()))?;
    expect_near(&y.read()?, &numbers)
}
