use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn params(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64))]
fn half(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64), targets(wgsl))]
fn read_write(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
