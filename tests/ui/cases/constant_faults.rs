use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn shifted(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = x[i] << 40;
}

#[kernel(workgroup(64))]
fn divided(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = x[i] / 0;
}

#[kernel(workgroup(64))]
fn outside(y: &mut [f32]) {
    let weights = [0.25, 0.5, 0.25];
    y[0] = weights[3];
}

fn main() {}
