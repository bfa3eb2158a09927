use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn root(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = sqroot(x[i]);
}

#[kernel(workgroup(64))]
fn few(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = clamp(x[i], 0.0);
}

#[kernel(workgroup(64))]
fn method(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i].sigmoid();
}

fn main() {}
