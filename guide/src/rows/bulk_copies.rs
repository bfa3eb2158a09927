//! tiles that a Hopper's bulk copies (TMA) fill, by tensor maps that the host derives

use trefoil::prelude::*;
use trefoil::{Device, DeviceKind};

use super::tiled_matrices::{PARTS, PRODUCT, element, padded};
use crate::{Outcome, expect};

/// How large the left side is, and by what its columns are padded.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Columns.
    pub columns: u32,
    /// The columns of a row in memory, a multiple of 8.
    pub pitch: u32,
}

/// A product with a matrix of 64 columns: while one pair of tiles is multiplied, the next is on its way.
///
/// The widths follow from parameters and constants alone. So the host knows them before the launch, and on a Hopper the hardware copies by itself.
#[kernel(workgroup(128), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
pub fn projected(x: &[Vec4<u32>], weights: &[Vec4<u32>], y: &mut [f32], shape: Shape) {
    let mut left = workgroup_tile::<f16, 64, 64>(2);
    let mut right = workgroup_tile::<f16, 64, 64>(2);
    let width = shape.pitch as usize / 8;
    let row = group_index() * 64;
    copy_tile_async(&mut left, 0, x, row, 0, width);
    copy_tile_async(&mut right, 0, weights, 0, 0, 8);
    async_commit();
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];
    for step in 0..(shape.columns as usize).div_ceil(64) {
        async_wait(0);
        barrier();
        multiply_tiles(&mut sums, &left, 0, &right, 0, step);
        copy_tile_async(&mut left, step + 1, x, row, (step + 1) * 8, width);
        copy_tile_async(&mut right, step + 1, weights, (step + 1) * 64, 0, 8);
        async_commit();
    }
    let own = row + subgroup_index() % 4 * 16;
    for part in unroll(0..4) {
        sums[part].store(y, own * 64 + part * 16, 64);
    }
}

/// Runs it where the device lists such products, with depths that end within a tile, within its first and nowhere, and with nothing to sum up.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let products = &device.properties().matrices;
    let lists = |product: &str| products.iter().any(|one| one.to_string() == product);
    let listed = device.kind() == DeviceKind::Cpu || lists(PRODUCT) || lists(PARTS);
    let room = device.properties().limits.max_workgroup_bytes >= projected::KERNEL.workgroup_bytes;
    for (rows, columns) in [(128, 300), (64, 7), (192, 64), (64, 0)] {
        let (x, weights) = (device.buffer(&padded(rows, columns))?, device.buffer(&padded(columns, 64))?);
        // What is not written stays visible.
        let mut y = device.buffer(&vec![f32::NAN; rows * 64])?;
        let pitch = columns.next_multiple_of(8) as u32;
        let shape = Shape { columns: columns as u32, pitch };
        match device.run(projected(&x, &weights, &mut y, shape)?.groups(rows / 64)) {
            Err(error) if !listed && error.to_string().contains(PRODUCT) => return Ok(()),
            Err(error) if !room && error.to_string().contains("bytes of workgroup memory") => return Ok(()),
            ran => ran?,
        }
        let expected: Vec<f32> =
            (0..rows * 64).map(|at| (0..columns).map(|d| element(at / 64, d) * element(d, at % 64)).sum()).collect();
        expect(&y.read()?, &expected)?;
    }
    Ok(())
}
