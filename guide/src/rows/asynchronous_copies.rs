//! copies to workgroup memory that go on while the kernel computes

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// The sum of each row, tile by tile: while one is summed up, the next is on its way.
#[kernel(workgroup(64))]
pub fn row_sums(x: &[u32], y: &mut [u32], width: usize) {
    let mut tiles = workgroup_array::<u32>(2 * 256);
    let i = local_index();
    let row = group_index() * width;
    let count = width.div_ceil(256);
    copy_async(&mut tiles, 4 * i, x, row + 4 * i, 4);
    async_commit();
    let mut sum = 0;
    for tile in 0..count {
        let here = tile % 2 * 256;
        let next = (tile + 1) % 2 * 256;
        copy_async(&mut tiles, next + 4 * i, x, row + (tile + 1) * 256 + 4 * i, 4);
        async_commit();
        // All but the one just begun are there; behind the barrier for every invocation.
        async_wait(1);
        barrier();
        for k in 0..4 {
            if tile * 256 + k * 64 + i < width {
                sum += tiles[here + k * 64 + i];
            }
        }
        // Nobody overwrites what another still reads.
        barrier();
    }
    let sums = workgroup_array::<Atomic<u32>>(1);
    if i == 0 {
        sums[0].store(0);
    }
    barrier();
    sums[0].add(sum);
    barrier();
    if i == 0 {
        y[group_index()] = sums[0].load();
    }
}

/// Runs it, with rows that end at a tile's end and rows that do not, and start at a multiple of a piece or do not.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    for width in [1024, 1023, 257, 4, 1] {
        let numbers: Vec<u32> = (0..5 * width as u32).map(|i| i % 11 + 1).collect();
        let x = device.buffer(&numbers)?;
        let mut y = device.zeros::<u32>(5)?;
        device.run(row_sums(&x, &mut y, width)?.groups(5))?;
        let expected: Vec<u32> = numbers.chunks(width).map(|row| row.iter().sum()).collect();
        expect(&y.read()?, &expected)?;
    }
    Ok(())
}
