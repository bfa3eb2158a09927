//! values of workgroup memory that all invocations agree on

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Every invocation of a workgroup adds the first element, and there is a barrier in a branch on it.
#[kernel(workgroup(32))]
pub fn shared_first(x: &[u32], y: &mut [u32]) {
    let mut first = workgroup_array::<u32>(1);
    let (i, lane) = (global_index(), local_index());
    if lane == 0 {
        first[0] = if i < x.len() { x[i] } else { 0 };
    }
    let agreed = workgroup_uniform_load(&first[0]);
    if agreed > 0 {
        barrier();
    }
    if i < y.len() {
        y[i] = x[i] + agreed;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..64).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<u32>(64)?;
    device.run(shared_first(&x, &mut y)?.over(64))?;
    let expected: Vec<u32> = numbers.iter().map(|x| x + x / 32 * 32).collect();
    expect(&y.read()?, &expected)
}
