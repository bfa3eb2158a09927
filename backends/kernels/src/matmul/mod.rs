//! Matrix products in f32: C = activation(A B + bias), batch by batch.
//!
//! | kernel | tile of a workgroup | for |
//! |---|---|---|
//! | [`tiled`] | 128 by 128, 64 by 64 | products that fill a device with such tiles |
//! | [`narrow`] | 16 by 32, K shared among groups of invocations | few rows or columns: many small workgroups, and K in parts if they are still too few |
//! | [`strided`] | 16 by 16 | everything else: any strides, any extents |
//!
//! All but the strided kernel read four elements at a time. They want K contiguous in A, K or N contiguous in B, and extents and strides that are multiples of 4.

pub mod narrow;
pub mod strided;
pub mod tiled;

use trefoil_dsl::prelude::*;

use crate::activation::{Activation, activate};

/// Four elements of a row of a matrix whose rows are `stride` apart and `columns` long, from group `quad` on; zero outside. Outside it reads past the end, which
/// gives zero without a branch: compilers wait for a load in a branch before they go on.
#[device]
pub fn row_quad(
    matrix: &[f32],
    first: usize,
    row: usize,
    rows: usize,
    quad: usize,
    columns: usize,
    stride: usize,
) -> Vec4<f32> {
    let inside = row < rows && quad * 4 < columns;
    matrix.vec4(select(inside, (first + row * stride) / 4 + quad, matrix.len()))
}

/// Which tile of which batch a workgroup computes: tiles of a band of 8 tile rows follow each other column by column, so that what they read is still in cache.
#[device]
pub fn tile_of(index: usize, row_tiles: usize, column_tiles: usize) -> Vec2<usize> {
    let band = index / (8 * column_tiles);
    let height = min(8, row_tiles - band * 8);
    let within = index - band * 8 * column_tiles;
    Vec2::new(band * 8 + within % height, within / height)
}

/// `activate` for four elements.
#[device]
pub fn activate_quad(x: Vec4<f32>, activation: Activation) -> Vec4<f32> {
    Vec4::new(
        activate(x.x, activation),
        activate(x.y, activation),
        activate(x.z, activation),
        activate(x.w, activation),
    )
}
