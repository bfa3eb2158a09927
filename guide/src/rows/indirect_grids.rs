//! grids that come from a buffer

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Counts the even numbers, which decide how many workgroups the next kernel has.
#[kernel(workgroup(64))]
pub fn counted(x: &[u32], counts: &[Atomic<u32>]) {
    let i = global_index();
    if i < x.len() && x[i] % 2 == 0 {
        counts[0].add(1);
    }
}

/// One workgroup for each.
#[kernel(workgroup(64), indirect)]
pub fn marked(y: &mut [u32]) {
    y[global_index()] = group_count() as u32;
}

/// Runs both, without a look at what the first one counts.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..9).collect();
    let x = device.buffer(&numbers)?;
    let mut counts = device.buffer(&[0, 1, 1])?;
    let mut y = device.zeros::<u32>(640)?;
    let first = counted(&x, &mut counts)?.over(numbers.len());
    let then = marked(&mut y)?.indirect(&counts)?;
    device.run_all([first, then])?;
    let expected: Vec<u32> = (0..640).map(|i| if i < 5 * 64 { 5 } else { 0 }).collect();
    expect(&y.read()?, &expected)
}
