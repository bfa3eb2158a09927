//! functions as parameters: device functions, and closures that capture nothing

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// What `combine` makes of a row, from its first element on.
#[device]
pub fn reduce_row<F: Fn(f32, f32) -> f32>(x: &[f32], start: usize, length: usize, combine: F) -> f32 {
    let mut result = x[start];
    for i in 1..length {
        result = combine(result, x[start + i]);
    }
    result
}

/// The one of two that is farther from zero.
#[device]
pub fn farther(a: f32, b: f32) -> f32 {
    if abs(a) < abs(b) { b } else { a }
}

/// Reduces each row in three ways.
#[kernel(workgroup(64))]
pub fn reductions(x: &[f32], y: &mut [f32], width: usize) {
    let row = global_index();
    if (row + 1) * width <= x.len() {
        let start = row * width;
        y[3 * row] = reduce_row(x, start, width, |a, b| a * b);
        y[3 * row + 1] = reduce_row(x, start, width, farther);
        y[3 * row + 2] = reduce_row(x, start, width, max);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1.0f32, -4.0, 2.0, 3.0, 0.5, 2.0])?;
    let mut y = device.zeros::<f32>(6)?;
    device.run(reductions(&x, &mut y, 3)?.over(2))?;
    expect(&y.read()?, &[-8.0, -4.0, 2.0, 3.0, 3.0, 3.0])
}
