//! What the element types mean beside `f32` and 32-bit integers, on every device: held, moved and converted where a device lacks their
//! arithmetic, computed with where it has it.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "../common/mod.rs"]
mod common;
mod narrow;
mod structs;
mod wide;

fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|a| values.iter().map(|b| (*a, *b))).unzip()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || (a == 0.0 && b == 0.0)
}
