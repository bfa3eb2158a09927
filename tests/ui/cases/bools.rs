use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn counted(x: &[f32], y: &mut [u32]) {
    let i = global_index();
    y[i] = (x[i] > 0.0) + 1;
}

#[kernel(workgroup(64))]
fn negated(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = !x[i];
}

#[kernel(workgroup(64))]
fn joined(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if x[i] && 1 {
        y[i] = 1;
    }
}

#[kernel(workgroup(64))]
fn stored(x: &[f32], y: &mut [bool]) {
    let i = global_index();
    y[i] = x[i] > 0.0;
}

fn main() {}
