//! A tile: what a workgroup reads, sums and writes.

use trefoil::prelude::*;

/// Invocations of a workgroup.
#[device]
pub const SIZE: usize = 256;
/// Groups of four elements of an invocation, each in another quarter of the tile, so that neighbours read what lies together. A vector
/// holds a number for each.
#[device]
pub const QUADS: usize = 4;
/// Elements of a tile.
#[device]
pub const TILE: usize = 4 * SIZE * QUADS;

/// The elements from `4 * quad` on; zeros past the end.
#[device]
pub fn quad_of<T: Number>(x: &[T], quad: usize) -> Vec4<T> {
    let mut held = x.vec4(quad);
    if quad == x.len() / 4 {
        // The last elements are no whole group.
        held = Vec4::new(x[4 * quad], x[4 * quad + 1], x[4 * quad + 2], T::lit(0.0));
    }
    held
}

/// Writes four elements, as far as there are so many.
#[device]
pub fn set_quad<T: Number>(y: &mut [T], quad: usize, value: Vec4<T>) {
    if quad < y.len() / 4 {
        y.set_vec4(quad, value);
    } else {
        for lane in unroll(0..3) {
            y[4 * quad + lane] = value[lane];
        }
    }
}

/// The sum of four elements.
#[device]
pub fn quad_sum<T: Number>(quad: Vec4<T>) -> T {
    ((quad.x + quad.y) + quad.z) + quad.w
}
