//! sums of the invocations before, over a subgroup

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// For each invocation the sum with it and the sum without it.
#[kernel(workgroup(64), requires(Subgroups))]
pub fn scanned(x: &[u32], out: &mut [u32]) {
    let i = global_index();
    let mine = if i < x.len() { x[i] } else { 0 };
    let with = subgroup_inclusive_add(mine);
    let without = subgroup_exclusive_add(mine);
    let size = subgroup_size() as u32;
    if 3 * i + 2 < out.len() {
        out[3 * i] = with;
        out[3 * i + 1] = without;
        out[3 * i + 2] = size;
    }
}

/// Runs it, whatever the size of the device's subgroups.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..64).map(|i| i * 37 % 101).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(192)?;
    device.run(scanned(&x, &mut out)?.over(64))?;
    let given = out.read()?;
    let size = given[2];
    let mut expected = Vec::new();
    for group in numbers.chunks(size as usize) {
        let mut sum = 0;
        for x in group {
            expected.extend([sum + x, sum, size]);
            sum += x;
        }
    }
    expect(&given, &expected)
}
