use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn too_large(y: &mut [u32]) {
    y[0] = 5000000000;
}

#[kernel(workgroup(64))]
fn with_a_fraction(y: &mut [u32]) {
    let count: u32 = 1.5;
    y[0] = count;
}

#[kernel(workgroup(64))]
fn negative(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = -x[i];
}

#[kernel(workgroup(64))]
fn whole(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i] * 2;
}

fn main() {}
