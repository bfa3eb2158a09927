//! bf16: held in memory, and arithmetic rounded after every operation

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A step of gradient descent: what training keeps in bf16.
#[kernel(workgroup(64))]
pub fn stepped(weights: &mut [bf16], gradients: &[bf16], rate: bf16) {
    let i = global_index();
    if i < weights.len() {
        weights[i] = weights[i] - gradients[i] * rate;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers = |by: f32| (0..77).map(|i| bf16::from_f32((i as f32 - 30.0) * by)).collect::<Vec<_>>();
    let (weights, gradients, rate) = (numbers(0.37), numbers(1.9), bf16::from_f32(0.125));
    let mut w = device.buffer(&weights)?;
    let g = device.buffer(&gradients)?;
    device.run(stepped(&mut w, &g, rate)?.over(weights.len()))?;
    let expected: Vec<bf16> = weights.iter().zip(&gradients).map(|(w, g)| *w - *g * rate).collect();
    expect(&w.read()?, &expected)
}
