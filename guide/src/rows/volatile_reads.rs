//! reads that stay where they are written

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Sums of four elements that lie apart, all of which are asked for before the first is used.
#[kernel(workgroup(64), volatile(x))]
pub fn sums_of_four(x: &[f32], y: &mut [f32]) {
    let (i, count) = (global_index(), y.len());
    let mut held = [0.0; 4];
    for k in unroll(0..4) {
        held[k] = x[select(i < count, i + k * count, x.len())];
    }
    if i < count {
        y[i] = (held[0] + held[1]) + (held[2] + held[3]);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..400u16).map(f32::from).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(100)?;
    device.run(sums_of_four(&x, &mut y)?.over(100))?;
    let expected: Vec<f32> = (0..100u16).map(|i| f32::from(4 * i + 600)).collect();
    expect(&y.read()?, &expected)
}
