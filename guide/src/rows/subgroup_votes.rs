//! votes and ballots of a subgroup

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Whether any and all of a subgroup are odd, and who of the first 32 lanes is.
#[kernel(workgroup(64), requires(Subgroups))]
pub fn voted(x: &[u32], out: &mut [u32]) {
    let i = global_index();
    let odd = i < x.len() && x[i] % 2 == 1;
    let any = subgroup_any(odd);
    let all = subgroup_all(odd);
    let who = subgroup_ballot(odd);
    let size = subgroup_size() as u32;
    if 4 * i + 3 < out.len() {
        out[4 * i] = any as u32;
        out[4 * i + 1] = all as u32;
        out[4 * i + 2] = who.x;
        out[4 * i + 3] = size;
    }
}

/// Runs it, whatever the size of the device's subgroups.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..64).map(|i| if i < 32 { 2 * (i % 3) + i % 2 } else { 1 }).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(256)?;
    device.run(voted(&x, &mut out)?.over(64))?;
    let given = out.read()?;
    let size = given[3];
    let mut expected = Vec::new();
    for group in numbers.chunks(size as usize) {
        let odd = |x: &u32| x % 2 == 1;
        let who = group.iter().take(32).enumerate().fold(0, |who, (lane, x)| who | u32::from(odd(x)) << lane);
        let row = [u32::from(group.iter().any(odd)), u32::from(group.iter().all(odd)), who, size];
        expected.extend(row.repeat(group.len()));
    }
    expect(&given, &expected)
}
