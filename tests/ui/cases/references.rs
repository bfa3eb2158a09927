use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn borrowed(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let place = &mut y[i];
    *place = x[i];
}

#[device]
fn add_to(sum: &mut f32, x: f32) {
    *sum += x;
}

#[kernel(workgroup(64))]
fn summed(x: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    add_to(&mut sum, x[0]);
    y[0] = sum;
}

#[kernel(workgroup(64))]
fn with_a_lifetime<'a>(x: &'a [f32], y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
