//! products of tiles, for Hopper's `wgmma` and others

use trefoil::prelude::*;
use trefoil::{Device, DeviceKind};

use crate::{Outcome, expect};

/// The product of two matrices, in tiles of 64 by 64. With two stages the next pair would be on its way while one is multiplied.
#[kernel(workgroup(128), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
pub fn tiled(a: &[Vec4<u32>], b: &[Vec4<u32>], c: &mut [f32], n: usize, k: usize) {
    let mut left = workgroup_tile::<f16, 64, 64>(1);
    let mut right = workgroup_tile::<f16, 64, 64>(1);
    // Rows are padded to whole 16 bytes, and what is beyond a matrix is zero.
    let (a_width, b_width) = (k.div_ceil(8), n.div_ceil(8));
    let across = n.div_ceil(64);
    let (row, column) = (group_index() / across * 64, group_index() % across * 64);
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];
    for step in 0..k.div_ceil(64) {
        copy_tile_async(&mut left, 0, a, row, step * 8, a_width);
        copy_tile_async(&mut right, 0, b, step * 64, column / 8, b_width);
        async_commit();
        async_wait(0);
        // Behind the barrier the tiles are there for all, and behind the next nobody reads them.
        barrier();
        multiply_tiles(&mut sums, &left, 0, &right, 0, 0);
        barrier();
    }
    // Each of four subgroups has 16 rows.
    let own = row + subgroup_index() % 4 * 16;
    for x in unroll(0..4) {
        sums[x].store(c, own * n + column + x * 16, n);
    }
}

/// What a device must list.
pub(super) const PRODUCT: &str = "16x16x16 of f16 in f32";
/// Or, since larger ones are made of these.
pub(super) const PARTS: &str = "8x8x8 of f16 in f32";

/// A number of few bits, so that sums are exact.
pub(super) fn element(i: usize, j: usize) -> f32 {
    ((i * 7 + j * 3) % 11) as f32 * 0.5 - 2.0
}

/// The bits of rows of `columns` elements, each padded to 16 bytes.
pub(super) fn padded(rows: usize, columns: usize) -> Vec<Vec4<u32>> {
    let half = |i: usize, j: usize| if j < columns { u32::from(f16::from_f32(element(i, j)).to_bits()) } else { 0 };
    let eight = |i: usize, j: usize| [0, 2, 4, 6].map(|at| half(i, j + at) | half(i, j + at + 1) << 16);
    (0..rows).flat_map(|i| (0..columns).step_by(8).map(move |j| Vec4::from_array(eight(i, j)))).collect()
}

/// Runs it where the device lists such products, or ones that they are made of, with a depth that ends within a tile and one that does not.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let products = &device.properties().matrices;
    let lists = |product: &str| products.iter().any(|one| one.to_string() == product);
    let listed = device.kind() == DeviceKind::Cpu || lists(PRODUCT) || lists(PARTS);
    for [m, n, k] in [[128, 64, 100], [64, 128, 64]] {
        let (a, b) = (device.buffer(&padded(m, k))?, device.buffer(&padded(k, n))?);
        let mut c = device.zeros::<f32>(m * n)?;
        match device.run(tiled(&a, &b, &mut c, n, k)?.groups(m / 64 * (n / 64))) {
            Err(error) if !listed && error.to_string().contains(PRODUCT) => return Ok(()),
            ran => ran?,
        }
        let expected: Vec<f32> =
            (0..m * n).map(|at| (0..k).map(|d| element(at / n, d) * element(d, at % n)).sum()).collect();
        expect(&c.read()?, &expected)?;
    }
    Ok(())
}
