//! indices of 64 bits, for buffers of more than 2^32 elements

use trefoil::Device;
use trefoil::artefact::IndexWidth;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// Where the elements of a diagonal lie in a matrix of so many columns.
#[kernel(workgroup(64), index = 64, targets(spirv, cuda, cpu))]
pub fn diagonal(positions: &mut [u64], columns: usize) {
    let i = global_index();
    if i < positions.len() {
        positions[i] = (i * columns + i) as u64;
    }
}

/// The same modulo 1000, with an instance of either width: a launch runs the narrower one where its arguments fit, and WGSL has no other.
#[kernel(workgroup(64), index = [32, 64])]
pub fn last_digits(digits: &mut [u32], columns: usize) {
    let i = global_index();
    if i < digits.len() {
        digits[i] = ((i * columns + i) % 1000) as u32;
    }
}

/// Runs them.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let columns = 5_000_000_000;
    let mut positions = device.zeros::<u64>(100)?;
    device.run(diagonal(&mut positions, columns)?.over(100))?;
    let expected: Vec<u64> = (0..100).map(|i| i * (columns as u64 + 1)).collect();
    expect(&positions.read()?, &expected)?;

    let mut digits = device.zeros::<u32>(100)?;
    for (columns, width) in [(700, IndexWidth::Bits32), (columns, IndexWidth::Bits64)] {
        let dispatch = last_digits(&mut digits, columns)?.over(100);
        if dispatch.kernel().index != width {
            return Err(format!("{} ran for {columns} columns", dispatch.kernel().name).into());
        }
        device.run(dispatch)?;
        let expected: Vec<u32> = (0..100).map(|i| (i * (columns as u64 + 1) % 1000) as u32).collect();
        expect(&digits.read()?, &expected)?;
    }
    Ok(())
}
