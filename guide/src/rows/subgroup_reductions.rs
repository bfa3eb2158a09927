//! sums, least and greatest over a subgroup

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// For each invocation, what its subgroup agrees on.
#[kernel(workgroup(64), requires(Subgroups))]
pub fn reduced(x: &[u32], out: &mut [u32]) {
    let i = global_index();
    let mine = if i < x.len() { x[i] } else { 0 };
    let (sum, least, greatest) = (subgroup_add(mine), subgroup_min(mine), subgroup_max(mine));
    if 4 * i + 3 < out.len() {
        out[4 * i] = sum;
        out[4 * i + 1] = least;
        out[4 * i + 2] = greatest;
        out[4 * i + 3] = subgroup_size() as u32;
    }
}

/// Runs it, whatever the size of the device's subgroups.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..64).map(|i| i * 37 % 101).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(256)?;
    device.run(reduced(&x, &mut out)?.over(64))?;
    let given = out.read()?;
    let size = given[3] as usize;
    let expected: Vec<u32> = numbers
        .chunks(size)
        .flat_map(|group| {
            let (sum, least, most) = (group.iter().sum(), group.iter().min(), group.iter().max());
            let row = [sum, least.copied().unwrap_or(0), most.copied().unwrap_or(0), size as u32];
            row.repeat(group.len())
        })
        .collect();
    expect(&given, &expected)
}
