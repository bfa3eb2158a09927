//! counts of bits

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Bits set, zeros above, zeros below.
#[kernel(workgroup(64))]
pub fn counts(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < x.len() {
        y[3 * i] = x[i].count_ones();
        y[3 * i + 1] = x[i].leading_zeros();
        y[3 * i + 2] = x[i].trailing_zeros();
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[0u32, 1, 0xf0, u32::MAX])?;
    let mut y = device.zeros::<u32>(12)?;
    device.run(counts(&x, &mut y)?.over(4))?;
    expect(&y.read()?, &[0, 32, 32, 1, 31, 0, 4, 24, 4, 32, 0, 0])
}
