//! four or two numbers packed in a word

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A colour in a word, at half its brightness.
#[kernel(workgroup(64))]
pub fn dimmed(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = pack4x8unorm(unpack4x8unorm(x[i]) * 0.5);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[0x1020_40ff_u32, 0])?;
    let mut y = device.zeros::<u32>(2)?;
    device.run(dimmed(&x, &mut y)?.over(2))?;
    expect(&y.read()?, &[0x0810_2080, 0])
}
