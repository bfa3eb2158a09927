use trefoil_dsl::prelude::*;

#[kernel(workgroup(0))]
fn none(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(8, 8, 8, 8))]
fn four(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel]
fn unsaid(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup("64"))]
fn quoted(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
