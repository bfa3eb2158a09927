use trefoil_dsl::prelude::*;

#[device]
fn half_of(x: f32) -> f32 {
    x * 0.5;
}

#[kernel(workgroup(64))]
fn halved(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = half_of(x[i]);
}

#[device]
fn sometimes(x: f32) -> f32 {
    if x > 0.0 {
        return x;
    }
}

#[kernel(workgroup(64))]
fn positive(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = sometimes(x[i]);
}

#[device]
fn pair(x: f32) -> (f32, f32) {
    (x, x)
}

#[kernel(workgroup(64))]
fn doubled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let (a, b) = pair(x[i]);
    y[i] = a + b;
}

fn main() {}
