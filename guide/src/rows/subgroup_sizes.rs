//! a stated size of subgroups

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The sum of each 256 numbers, by subgroups of 32: the array has exactly one element for each.
#[kernel(workgroup(256), subgroup(S), instances(S = [32]))]
pub fn totals<const S: usize>(x: &[u32], sums: &mut [u32]) {
    let mut parts = workgroup_array::<u32>(256 / S);
    let sum = subgroup_add(x[global_index()]);
    if subgroup_lane() == 0 {
        parts[subgroup_index()] = sum;
    }
    barrier();
    if local_index() == 0 {
        let mut all = 0;
        for i in unroll(0..256 / subgroup_size()) {
            all += parts[i];
        }
        sums[group_index()] = all;
    }
}

/// Runs it where there are such subgroups; elsewhere the device says what it has.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..1024).collect();
    let x = device.buffer(&numbers)?;
    let mut sums = device.zeros::<u32>(4)?;
    let done = device.run(totals::<32>(&x, &mut sums)?.groups(4));
    if !device.properties().offers_subgroups_of(32) {
        let said = done.err().map(|error| error.to_string()).unwrap_or_default();
        return expect(&[said.contains("wants subgroups of 32")], &[true]);
    }
    done?;
    let expected: Vec<u32> = numbers.chunks(256).map(|chunk| chunk.iter().sum()).collect();
    expect(&sums.read()?, &expected)
}
