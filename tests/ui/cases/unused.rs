#![deny(unused)]
use trefoil_dsl::prelude::*;

/// What rustc says about any function it says about a kernel.
#[kernel(workgroup(64))]
pub fn unused(x: &[f32], y: &mut [f32], factor: f32) {
    let i = global_index();
    let mut once = 1.0;
    let never = 2.0;
    y[i] = once;
}

/// Unless the author allows it.
#[allow(unused_variables)]
#[kernel(workgroup(64))]
pub fn allowed(y: &mut [f32], factor: f32) {
    y[global_index()] = 1.0;
}

fn main() {}
