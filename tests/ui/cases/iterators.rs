use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn sum(x: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    for value in x.iter() {
        sum += *value;
    }
    y[0] = sum;
}

#[kernel(workgroup(64))]
fn chained(x: &[f32], y: &mut [f32]) {
    y[0] = x.iter().map(|value| value * 2.0).sum();
}

#[kernel(workgroup(64))]
fn parts(x: &[f32], y: &mut [f32]) {
    let head = &x[..4];
    y[0] = head[0];
}

fn main() {}
