//! f64: arithmetic

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A row's mean and variance, where f32 would cancel.
#[kernel(workgroup(64), requires(Float64))]
pub fn spread(x: &[f64], width: u32, mean: &mut [f64], variance: &mut [f64]) {
    let row = global_index();
    if row < mean.len() && row < variance.len() {
        let mut sum = 0.0f64;
        let mut squares = 0.0f64;
        for column in 0..width {
            let value = x[row * width as usize + column as usize];
            sum += value;
            squares += value * value;
        }
        let count = width as f64;
        mean[row] = sum / count;
        variance[row] = squares / count - (sum / count) * (sum / count);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    // Sums that are exact, so that contraction changes nothing.
    let numbers: Vec<f64> = (0..8).map(|i| 4_000_000.0 + f64::from(i % 4)).collect();
    let x = device.buffer(&numbers)?;
    let (mut mean, mut variance) = (device.zeros::<f64>(2)?, device.zeros::<f64>(2)?);
    device.run(spread(&x, 4, &mut mean, &mut variance)?.over(2))?;
    expect(&mean.read()?, &[4_000_001.5; 2])?;
    expect(&variance.read()?, &[1.25; 2])
}
