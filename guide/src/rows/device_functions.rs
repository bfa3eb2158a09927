//! functions that kernels call, of any module and crate

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect_near};

/// A wave without kinks where its pieces meet: 3 t^2 - 2 t^3 of a tent.
#[device]
fn smooth(x: f32) -> f32 {
    let t = tent(x);
    t * t * (3.0 - 2.0 * t)
}

/// Up to 1 at 1, and down again; defined after its use.
#[device]
fn tent(x: f32) -> f32 {
    if x < 0.0 {
        0.0
    } else if x > 1.0 {
        2.0 - x
    } else {
        x
    }
}

/// y = smooth(x).
#[kernel(workgroup(64))]
pub fn softened(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = smooth(x[i]);
    }
}

/// Runs it, and the function itself as plain Rust.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers = [-50.0f32, 0.0, 0.25, 0.5, 7.0];
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(5)?;
    device.run(softened(&x, &mut y)?.over(5))?;
    expect_near(&y.read()?, &numbers.map(smooth))
}
