//! functions of f64: exp, ln, sin, powf and others

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The logarithm of 1 + e^x, which `f32` rounds to 1e-7 of it. Functions of doubles are made of their bits where a target has none, so that they ask for 64-bit integers too.
#[kernel(workgroup(64), requires(Float64, Int64))]
pub fn softened_doubles(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    if i < y.len() {
        y[i] = max(x[i], 0.0) + ln_1p(exp(-abs(x[i])));
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f64> = (-50..50).map(|i| f64::from(i) * 0.7).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f64>(numbers.len())?;
    device.run(softened_doubles(&x, &mut y)?.over(numbers.len()))?;
    let expected = numbers.iter().map(|x| x.max(0.0) + (-x.abs()).exp().ln_1p());
    let near: Vec<bool> = y.read()?.iter().zip(expected).map(|(y, exact)| (y / exact - 1.0).abs() < 2e-15).collect();
    expect(&near, &vec![true; numbers.len()])
}
