//! values of other invocations of a subgroup

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The neighbour's value, the first invocation's, and that of the invocation with the numbers turned around in pairs of pairs.
#[kernel(workgroup(64), requires(Subgroups))]
pub fn exchanged(x: &[u32], out: &mut [u32]) {
    let i = global_index();
    let mine = if i < x.len() { x[i] } else { 0 };
    let neighbour = subgroup_shuffle_xor(mine, 1);
    let first = subgroup_broadcast(mine, 0);
    let turned = subgroup_shuffle(mine, (subgroup_lane() as u32) ^ 3);
    if 3 * i + 2 < out.len() {
        out[3 * i] = neighbour;
        out[3 * i + 1] = mine - first;
        out[3 * i + 2] = turned;
    }
}

/// Runs it on elements that tell the invocation's number.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..64).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(192)?;
    device.run(exchanged(&x, &mut out)?.over(64))?;
    let given = out.read()?;
    // The second column counts the lanes of each subgroup.
    let size = (1..64).find(|i| given[3 * i + 1] == 0).unwrap_or(64) as u32;
    let expected: Vec<u32> = numbers.iter().flat_map(|i| [i ^ 1, i % size, i ^ 3]).collect();
    expect(&given, &expected)
}
