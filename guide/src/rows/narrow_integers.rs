//! i8, u8, i16, u16: held in memory without races between neighbours, and arithmetic that wraps

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Bytes brightened, and a row of 16-bit sums, each by its own invocation.
#[kernel(workgroup(64))]
pub fn brightened(pixels: &mut [u8], sums: &mut [i16], by: u8) {
    let i = global_index();
    if i < pixels.len() {
        let pixel = pixels[i] + by;
        pixels[i] = pixel;
        sums[i] = pixel as i16 - 200;
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let pixels: Vec<u8> = (0..77).map(|i| i * 3).collect();
    let mut p = device.buffer(&pixels)?;
    let mut s = device.zeros::<i16>(pixels.len())?;
    device.run(brightened(&mut p, &mut s, 100)?.over(pixels.len()))?;
    let bright: Vec<u8> = pixels.iter().map(|pixel| pixel.wrapping_add(100)).collect();
    expect(&p.read()?, &bright)?;
    expect(&s.read()?, &bright.iter().map(|pixel| i16::from(*pixel) - 200).collect::<Vec<_>>())
}
