//! atomic operations on 64-bit integers

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The sum, the least and the greatest of squares that 32 bits do not hold, by way of workgroup memory.
#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(Int64Atomics))]
pub fn long_sums(x: &[u32], sums: &[Atomic<u64>], extremes: &[Atomic<i64>]) {
    let ours = workgroup_array::<Atomic<u64>>(1);
    let i = global_index();
    if local_index() == 0 {
        ours[0].store(0);
    }
    barrier();
    if i < x.len() {
        let square = x[i] as u64 * x[i] as u64;
        ours[0].add(square);
        extremes[0].min(-(square as i64));
        extremes[1].max(square as i64);
        sums[1].xor(square);
    }
    barrier();
    if local_index() == 0 {
        sums[0].add(ours[0].load());
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let numbers: Vec<u32> = (1..1000).map(|i| i * 50_000).collect();
    let x = device.buffer(&numbers)?;
    let mut sums = device.zeros::<u64>(2)?;
    let mut extremes = device.zeros::<i64>(2)?;
    device.run(long_sums(&x, &mut sums, &mut extremes)?.over(numbers.len()))?;
    let squares: Vec<u64> = numbers.iter().map(|x| u64::from(*x) * u64::from(*x)).collect();
    let xor = squares.iter().fold(0, |all, x| all ^ x);
    expect(&sums.read()?, &[squares.iter().sum(), xor])?;
    let most = squares.iter().max().map_or(0, |most| most.cast_signed());
    expect(&extremes.read()?, &[-most, most])
}
