//! i64, u64, f64: held, moved, converted between integers and compared

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// What a device can do with 64 bits that has no arithmetic of them.
#[kernel(workgroup(64))]
pub fn kept(keys: &[u64], values: &[f64], wanted: u64, found: &mut [f64], low: &mut [u32]) {
    let i = global_index();
    if i < keys.len() {
        low[i] = keys[i] as u32;
        found[i] = if keys[i] == wanted { values[i] } else { 0.0 };
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let keys = [7u64 << 40 | 3, u64::MAX, 3];
    let (k, v) = (device.buffer(&keys)?, device.buffer(&[1.5e300f64, -2.0, 0.1])?);
    let mut found = device.zeros::<f64>(3)?;
    let mut low = device.zeros::<u32>(3)?;
    device.run(kept(&k, &v, keys[0], &mut found, &mut low)?.over(3))?;
    expect(&found.read()?, &[1.5e300, 0.0, 0.0])?;
    expect(&low.read()?, &[3, u32::MAX, 3])
}
