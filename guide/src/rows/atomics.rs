//! atomic operations on buffers

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// How often each of 16 values occurs.
#[kernel(workgroup(64))]
pub fn histogram(x: &[u32], counts: &[Atomic<u32>]) {
    let i = global_index();
    if i < x.len() {
        counts[(x[i] % 16) as usize].add(1);
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (0..1000).map(|i| i * i).collect();
    let x = device.buffer(&numbers)?;
    let mut counts = device.zeros::<u32>(16)?;
    device.run(histogram(&x, &mut counts)?.over(numbers.len()))?;
    let mut expected = [0u32; 16];
    numbers.iter().for_each(|x| expected[(x % 16) as usize] += 1);
    expect(&counts.read()?, &expected)
}
