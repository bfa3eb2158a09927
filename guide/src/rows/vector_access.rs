//! several elements of a slice in one access

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// y = 2 x, four elements at a time.
#[kernel(workgroup(64))]
pub fn doubled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < y.len() / 4 {
        y.set_vec4(i, x.vec4(i) * 2.0);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<f32>(numbers.len())?;
    device.run(doubled(&x, &mut y)?.over(numbers.len() / 4))?;
    let expected: Vec<f32> = numbers.iter().map(|x| x * 2.0).collect();
    expect(&y.read()?, &expected)
}
