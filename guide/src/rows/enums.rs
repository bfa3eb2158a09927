//! enums without fields as modes, shared by host and kernel

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// What is done with a value.
#[device]
#[derive(Debug)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// Below zero becomes zero.
    Relu,
    /// The square.
    Square,
}

/// y = activation(x).
#[kernel(workgroup(64))]
pub fn activated(x: &[f32], y: &mut [f32], activation: Activation) {
    let i = global_index();
    if i < y.len() {
        y[i] = match activation {
            Activation::Identity => x[i],
            Activation::Relu => select(x[i] > 0.0, x[i], 0.0),
            Activation::Square => x[i] * x[i],
        };
    }
}

/// Runs it in every mode.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[-2.0f32, 3.0])?;
    let mut y = device.zeros::<f32>(2)?;
    for (mode, expected) in [
        (Activation::Identity, [-2.0, 3.0]),
        (Activation::Relu, [0.0, 3.0]),
        (Activation::Square, [4.0, 9.0]),
    ] {
        device.run(activated(&x, &mut y, mode)?.over(2))?;
        expect(&y.read()?, &expected)?;
    }
    Ok(())
}
