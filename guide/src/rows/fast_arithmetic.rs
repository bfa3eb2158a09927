//! cheaper quotients, roots and functions that are less accurate

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// x times the logistic function of x. A mistake in the sixth digit does no harm here.
#[device(fast)]
fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// Two activations of each number.
#[kernel(workgroup(64), fast)]
pub fn activations(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        y[2 * i] = silu(x[i]);
        y[2 * i + 1] = tanh(x[i]);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or is further off than `fast` allows.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (-800..=800).map(|i| i as f32 * 0.01).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(2 * numbers.len())?;
    device.run(activations(&x, &mut y)?.over(numbers.len()))?;
    let given = y.read()?;
    let near = |found: f32, exact: f64| (f64::from(found) - exact).abs() <= 1e-5 * exact.abs().max(1.0);
    let good: Vec<bool> = numbers
        .iter()
        .zip(given.chunks(2))
        .map(|(x, pair)| {
            let x = f64::from(*x);
            near(pair[0], x / (1.0 + (-x).exp())) && near(pair[1], x.tanh())
        })
        .collect();
    expect(&good, &vec![true; numbers.len()])
}
