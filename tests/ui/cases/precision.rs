use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), strict)]
fn not_in_wgsl(x: &mut [f32]) {
    x[0] = x[0] * x[1] + x[2];
}

#[device(strict)]
fn exact(x: f32) -> f32 {
    x * x + 1.0
}

#[kernel(workgroup(64))]
fn calls(x: &mut [f32]) {
    x[0] = exact(x[0]);
}

#[kernel(workgroup(64), strict, fast)]
fn both(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel(workgroup(64), fast(exp))]
fn with_content(x: &mut [f32]) {
    x[0] = 1.0;
}

#[device(precise)]
fn unknown(x: f32) -> f32 {
    x
}

#[device(fast)]
const NUMBER: f32 = 1.0;

fn main() {}
