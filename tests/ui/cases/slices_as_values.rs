use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn copied(x: &[f32], y: &mut [f32]) {
    y = x;
}

#[kernel(workgroup(64))]
fn moved(x: &[f32], y: &mut [f32]) {
    let z = x;
    y[0] = z[0];
}

#[kernel(workgroup(64))]
fn indexed(x: &[f32], y: &mut [f32]) {
    let i = global_index() as i32;
    y[0] = x[i];
}

#[kernel(workgroup(64))]
fn two_at_once(x: &[f32], y: &mut [f32]) {
    let [a, b] = x;
    y[0] = a + b;
}

fn main() {}
