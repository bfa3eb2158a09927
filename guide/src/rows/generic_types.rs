//! kernels generic over element types, with listed instances

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// y = x * x + 1, for numbers of several types.
#[kernel(workgroup(64), instances(T = [f32, u32, i32]))]
pub fn squares<T: Number>(x: &[T], y: &mut [T]) {
    let i = global_index();
    if i < y.len() {
        y[i] = x[i] * x[i] + T::lit(1.0);
    }
}

/// Runs two of the instances.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[0.5f32, -3.0])?;
    let mut y = device.zeros::<f32>(2)?;
    device.run(squares(&x, &mut y)?.over(2))?;
    expect(&y.read()?, &[1.25, 10.0])?;
    let x = device.buffer(&[-3i32, 65536])?;
    let mut y = device.zeros::<i32>(2)?;
    device.run(squares(&x, &mut y)?.over(2))?;
    expect(&y.read()?, &[10, 1])
}
