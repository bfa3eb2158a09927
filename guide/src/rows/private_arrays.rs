//! arrays of an invocation's own

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Each row of 8 in order, by insertion.
#[kernel(workgroup(64))]
pub fn sorted(x: &[u32], y: &mut [u32]) {
    let row = global_index();
    if 8 * row + 7 < x.len() {
        let mut held = [0u32; 8];
        for k in 0..8usize {
            let value = x[8 * row + k];
            let mut place = k;
            while place > 0 && held[place - 1] > value {
                held[place] = held[place - 1];
                place -= 1;
            }
            held[place] = value;
        }
        for k in 0..8usize {
            y[8 * row + k] = held[k];
        }
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let mut numbers: Vec<u32> = (0..32u32).map(|i| i.wrapping_mul(2_654_435_761) % 97).collect();
    let x = device.buffer(&numbers)?;
    let mut y = device.zeros::<u32>(numbers.len())?;
    device.run(sorted(&x, &mut y)?.over(4))?;
    numbers.chunks_mut(8).for_each(<[u32]>::sort_unstable);
    expect(&y.read()?, &numbers)
}
