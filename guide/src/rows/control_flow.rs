//! if, match, for, while, loop, break, continue, early return

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Steps until the rule "half if even, 3 n + 1 if odd" reaches 1, at most `most` of them.
#[kernel(workgroup(64))]
pub fn collatz(x: &[u32], steps: &mut [u32], most: u32) {
    let i = global_index();
    if i >= x.len() {
        return;
    }
    let mut n = x[i];
    let mut count = 0u32;
    loop {
        if n <= 1 || count == most {
            break;
        }
        count += 1;
        match n % 2 {
            0 => {
                n /= 2;
                continue;
            }
            _ => n = 3 * n + 1,
        }
    }
    let mut waste = 0u32;
    while waste < 3 {
        waste += 1;
    }
    for _ in 0..waste {
        count += 1;
    }
    steps[i] = count - waste;
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1u32, 6, 7, 27])?;
    let mut steps = device.zeros::<u32>(4)?;
    device.run(collatz(&x, &mut steps, 100)?.over(4))?;
    expect(&steps.read()?, &[0, 8, 16, 100])
}
