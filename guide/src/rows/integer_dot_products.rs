//! scalar products of four small integers in a word

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// y += the product of two words of four signed numbers.
#[kernel(workgroup(64))]
pub fn products(a: &[u32], b: &[u32], y: &mut [i32]) {
    let i = global_index();
    if i < y.len() {
        y[i] = dot4_i8(a[i], b[i], y[i]);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let word = |bytes: [i8; 4]| u32::from_le_bytes(bytes.map(i8::cast_unsigned));
    let a = device.buffer(&[word([1, -2, 3, 4]), word([-128; 4])])?;
    let b = device.buffer(&[word([5, 6, -7, 8]), word([-128; 4])])?;
    let mut y = device.buffer(&[100i32, 0])?;
    device.run(products(&a, &b, &mut y)?.over(2))?;
    expect(&y.read()?, &[100 + 5 - 12 - 21 + 32, 65536])
}
