//! u32, i32, usize: arithmetic that wraps, shifts, division by anything

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Wraps, masks the shift, gives 0 for a division by 0, and the sign of the left side to a remainder.
#[kernel(workgroup(64))]
pub fn wrapping(x: &[i32], y: &[i32], z: &mut [i32]) {
    let i = global_index();
    if i < x.len() {
        z[4 * i] = x[i] + y[i];
        z[4 * i + 1] = x[i] / y[i];
        z[4 * i + 2] = x[i] % y[i];
        z[4 * i + 3] = x[i] << (y[i] as u32);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let (x, y) = (device.buffer(&[i32::MAX, -7, i32::MIN])?, device.buffer(&[1, 0, -1])?);
    let mut z = device.zeros::<i32>(12)?;
    device.run(wrapping(&x, &y, &mut z)?.over(3))?;
    expect(&z.read()?, &[i32::MIN, i32::MAX, 0, -2, -7, 0, 0, -7, i32::MAX, i32::MIN, 0, 0])
}
