//! Four elements that follow on each other, read and written 16 bytes at a time, by the number of such groups before them.

use trefoil_dsl::prelude::*;

/// Four elements of at most four bytes.
#[device]
pub fn quad<T: Element>(x: &[T], at: usize) -> Vec4<T> {
    x.vec4(at)
}

/// Writes four elements of at most four bytes.
#[device]
pub fn set_quad<T: Element>(y: &mut [T], at: usize, value: Vec4<T>) {
    y.set_vec4(at, value);
}

/// Four elements of eight bytes, 16 bytes at a time: a binding is no smaller than an access.
#[device]
pub fn two_pairs<T: Element>(x: &[T], at: usize) -> Vec4<T> {
    let low = x.vec2(2 * at);
    let high = x.vec2(2 * at + 1);
    Vec4::new(low.x, low.y, high.x, high.y)
}

/// Writes four elements of eight bytes.
#[device]
pub fn set_two_pairs<T: Element>(y: &mut [T], at: usize, value: Vec4<T>) {
    y.set_vec2(2 * at, Vec2::new(value.x, value.y));
    y.set_vec2(2 * at + 1, Vec2::new(value.z, value.w));
}
