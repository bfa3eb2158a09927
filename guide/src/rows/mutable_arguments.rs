//! &mut of scalars as arguments of functions

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Puts two numbers in order.
#[device]
fn order(a: &mut u32, b: &mut u32) {
    let (low, high) = (min(*a, *b), max(*a, *b));
    *a = low;
    *b = high;
}

/// Neighbours in order.
#[kernel(workgroup(64))]
pub fn swapped(x: &mut [u32]) {
    let i = global_index();
    if 2 * i + 1 < x.len() {
        let mut low = x[2 * i];
        let mut high = x[2 * i + 1];
        order(&mut low, &mut high);
        x[2 * i] = low;
        x[2 * i + 1] = high;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let mut x = device.buffer(&[5u32, 3, 1, 2])?;
    device.run(swapped(&mut x)?.over(2))?;
    expect(&x.read()?, &[3, 5, 1, 2])
}
