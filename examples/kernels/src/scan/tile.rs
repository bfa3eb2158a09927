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

/// What an invocation has of the tile whose quad `first` is its own; zeros past the end.
#[device]
pub fn tile_at<T: Number>(x: &[T], first: usize) -> [Vec4<T>; QUADS] {
    let mut held = [Vec4::splat(T::lit(0.0)); QUADS];
    for k in unroll(0..QUADS) {
        held[k] = x.vec4(first + k * SIZE);
    }
    for k in unroll(0..QUADS) {
        held[k] = with_end(held[k], x, first + k * SIZE);
    }
    held
}

/// Writes an invocation's part of a tile: the running sums of what it `held`, with the sum `before` the tile, those `within` each quarter of the tile before its own, and
/// those of `all` of each quarter.
#[device]
pub fn set_tile<T: Number, const EXCLUSIVE: bool>(
    y: &mut [T],
    first: usize,
    held: [Vec4<T>; QUADS],
    within: Vec4<T>,
    all: Vec4<T>,
    before: T,
) {
    let mut start = before;
    for k in unroll(0..QUADS) {
        let a = start + within[k];
        let b = a + held[k].x;
        let c = b + held[k].y;
        let d = c + held[k].z;
        if EXCLUSIVE {
            set_quad(y, first + k * SIZE, Vec4::new(a, b, c, d));
        } else {
            set_quad(y, first + k * SIZE, Vec4::new(b, c, d, d + held[k].w));
        }
        start += all[k];
    }
}
