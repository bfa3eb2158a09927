//! the same bits as another type

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// x with its sign turned, through its bits.
#[kernel(workgroup(64))]
pub fn flipped(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = bitcast::<f32>(bitcast::<u32>(x[i]) ^ 0x8000_0000);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1.5f32, -2.0, f32::INFINITY])?;
    let mut y = device.zeros::<f32>(3)?;
    device.run(flipped(&x, &mut y)?.over(3))?;
    expect(&y.read()?, &[-1.5, 2.0, f32::NEG_INFINITY])
}
