//! i64, u64: arithmetic

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A linear congruential generator of 64 bits, a step for each element.
#[kernel(workgroup(64), requires(Int64))]
pub fn stepped(state: &mut [u64], high: &mut [i64]) {
    let i = global_index();
    if i < state.len() {
        let next = state[i] * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407;
        state[i] = next;
        high[i] = (next as i64 >> 33) / -3;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let seeds: Vec<u64> = (0..77).map(|i| i << 55 | i).collect();
    let mut state = device.buffer(&seeds)?;
    let mut high = device.zeros::<i64>(seeds.len())?;
    device.run(stepped(&mut state, &mut high)?.over(seeds.len()))?;
    let next = |seed: &u64| seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let expected: Vec<u64> = seeds.iter().map(next).collect();
    expect(&state.read()?, &expected)?;
    expect(&high.read()?, &expected.iter().map(|next| (next.cast_signed() >> 33) / -3).collect::<Vec<_>>())
}
