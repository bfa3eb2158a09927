//! f16: held in memory, converted to and from f32

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// y = x / 2, rounded to the nearest half.
#[kernel(workgroup(64))]
pub fn halved(x: &[f16], y: &mut [f16]) {
    let i = global_index();
    if i < y.len() {
        y[i] = f16::from_f32(x[i].to_f32() * 0.5);
    }
}

/// Runs it on an odd number of elements.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f16> = (0..77).map(|i| f16::from_f32(i as f32 * 0.37 - 9.0)).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f16>(numbers.len())?;
    device.run(halved(&x, &mut y)?.over(numbers.len()))?;
    let expected: Vec<f16> = numbers.iter().map(|x| f16::from_f32(x.to_f32() * 0.5)).collect();
    expect(&y.read()?, &expected)
}
