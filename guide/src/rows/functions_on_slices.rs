//! functions that take slices and workgroup arrays

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The sum of a window.
#[device]
fn window(x: &[f32], start: usize, length: usize) -> f32 {
    let mut sum = 0.0;
    for k in 0..length {
        sum += x[start + k];
    }
    sum
}

/// Sums of windows in memory of a buffer, and of the same values in workgroup memory.
#[kernel(workgroup(64))]
pub fn windows(x: &[f32], out: &mut [f32]) {
    let mut copy = workgroup_array::<f32>(64);
    let (i, lane) = (global_index(), local_index());
    copy[lane] = if i < x.len() { x[i] } else { 0.0 };
    barrier();
    if 2 * i + 1 < out.len() {
        out[2 * i] = window(x, i, 3);
        out[2 * i + 1] = window(&copy, lane, 3);
    }
}

/// Runs it; past the end of a slice there is 0.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let x = device.buffer(&[1.0f32, 2.0, 3.0, 4.0])?;
    let mut out = device.zeros::<f32>(8)?;
    device.run(windows(&x, &mut out)?.over(4))?;
    expect(&out.read()?, &[6.0, 6.0, 9.0, 9.0, 7.0, 7.0, 4.0, 4.0])
}
