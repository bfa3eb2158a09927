//! atomic operations on workgroup memory

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// In each workgroup, how many elements are odd.
#[kernel(workgroup(64))]
pub fn counted(x: &[u32], out: &mut [u32]) {
    let count = workgroup_array::<Atomic<u32>>(1);
    let (i, lane) = (global_index(), local_index());
    if lane == 0 {
        count[0].store(0);
    }
    barrier();
    if i < x.len() && x[i] % 2 == 1 {
        count[0].add(1);
    }
    barrier();
    if lane == 0 {
        out[group_index()] = count[0].load();
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..200).map(|i| i * i / 3).collect();
    let x = device.buffer(&numbers)?;
    let mut out = device.zeros::<u32>(4)?;
    device.run(counted(&x, &mut out)?.over(200))?;
    let odd = |block: &[u32]| block.iter().filter(|x| *x % 2 == 1).count() as u32;
    expect(&out.read()?, &numbers.chunks(64).map(odd).collect::<Vec<_>>())
}
