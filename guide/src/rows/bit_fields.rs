//! bits turned around, rotated, taken out and put in

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A word after all of it.
#[kernel(workgroup(64))]
pub fn shuffled(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < y.len() {
        let turned = reverse_bits(x[i]);
        y[i] = insert_bits(rotate_left(turned, 8), extract_bits(x[i], 4, 8), 16, 8);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let words = [0x1234_5678u32, 0x8000_0001, 0];
    let x = device.buffer(&words)?;
    let mut y = device.zeros::<u32>(3)?;
    device.run(shuffled(&x, &mut y)?.over(3))?;
    let expected = words.map(|x| (x.reverse_bits().rotate_left(8) & !0x00ff_0000) | (x >> 4 & 0xff) << 16);
    expect(&y.read()?, &expected)
}
