use trefoil_dsl::prelude::*;

#[device]
fn apply<F: Fn(f32) -> f32>(x: f32, f: F) -> f32 {
    f(x)
}

#[device]
fn added(a: f32, b: f32) -> f32 {
    a + b
}

fn plain(x: f32) -> f32 {
    x
}

#[kernel(workgroup(64))]
fn two(y: &mut [f32]) {
    y[0] = apply(y[0], added);
}

#[kernel(workgroup(64))]
fn integer(y: &mut [f32]) {
    y[0] = apply(y[0], |v| v as u32);
}

#[kernel(workgroup(64))]
fn not_of_devices(y: &mut [f32]) {
    y[0] = apply(y[0], plain);
}

fn main() {
    let _ = plain(1.0);
}
