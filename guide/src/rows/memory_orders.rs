//! atomics that order other memory: acquire, release, fences

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The sums of all numbers up to each, in one dispatch: a workgroup waits for the sum of the one before it.
#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
pub fn running_sums(x: &[u32], y: &mut [u32], sums: &mut [u32], flags: &[Atomic<u32>]) {
    let mut tile = workgroup_array::<u32>(65);
    let i = local_index();
    // Workgroups are numbered as they start: each waits for one that has started.
    if i == 0 {
        tile[64] = flags[0].add(1);
    }
    let group = workgroup_uniform_load(&tile[64]) as usize;
    let at = group * 64 + i;
    tile[i] = x[at];
    barrier();
    if i == 0 {
        let mut sum = 0;
        if group > 0 {
            while flags[group].load_acquire() == 0 {}
            sum = sums[group - 1];
        }
        for k in 0..64 {
            sum += tile[k];
            tile[k] = sum;
        }
        sums[group] = sum;
        flags[group + 1].store_release(1);
    }
    barrier();
    y[at] = tile[i];
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    // A GPU played by a processor may end a loop that waits for long: there one workgroup, which waits for none.
    let count = if device.properties().software { 64 } else { 6400 };
    let numbers: Vec<u32> = (0..count).map(|i| i % 7).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<u32>(numbers.len())?;
    let mut sums = device.zeros::<u32>(100)?;
    let mut flags = device.zeros::<u32>(101)?;
    device.run(running_sums(&x, &mut y, &mut sums, &mut flags)?.over(numbers.len()))?;
    let expected: Vec<u32> = numbers
        .iter()
        .scan(0, |sum, x| {
            *sum += x;
            Some(*sum)
        })
        .collect();
    expect(&y.read()?, &expected)
}
