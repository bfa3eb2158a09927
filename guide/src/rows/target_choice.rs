//! code by what the device has, decided while building

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each workgroup's sum: by subgroups where there are any, otherwise through workgroup memory.
#[kernel(workgroup(128))]
pub fn sums(x: &[u32], out: &mut [u32]) {
    let mut partial = workgroup_array::<u32>(128);
    let (i, lane) = (global_index(), local_index());
    let mine = if i < x.len() { x[i] } else { 0 };
    if const { target::has(Feature::Subgroups) } {
        partial[lane] = 0;
        barrier();
        let sum = subgroup_add(mine);
        if subgroup_lane() == 0 {
            partial[subgroup_index()] = sum;
        }
    } else {
        partial[lane] = mine;
    }
    barrier();
    if lane == 0 {
        let mut sum = 0u32;
        for k in 0..128usize {
            sum += partial[k];
        }
        out[group_index()] = sum;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..300).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(3)?;
    device.run(sums(&x, &mut out)?.over(300))?;
    let expected: Vec<u32> = numbers.chunks(128).map(|block| block.iter().sum()).collect();
    expect(&out.read()?, &expected)
}
