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

/// What `x.vec4(quad)` gave, or at the end of `x`, where the last elements are no whole group and it gave zeros, those elements. This is apart from the read lest a
/// device wait for one read before it begins the next.
#[device]
pub fn with_end<T: Number>(held: Vec4<T>, x: &[T], quad: usize) -> Vec4<T> {
    if quad == x.len() / 4 { Vec4::new(x[4 * quad], x[4 * quad + 1], x[4 * quad + 2], T::lit(0.0)) } else { held }
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
