use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn summed(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let mut acc = 0;
    for k in 0..4 {
        acc += x[i + k];
    }
    y[i] = acc;
}

#[kernel(workgroup(64))]
fn greatest(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let mut most = -1_000;
    most = max(most, x[i]);
    y[i] = most;
}

#[kernel(workgroup(64))]
fn assigned(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let mut last = 0;
    if i > 0 {
        last = x[i - 1];
    }
    y[i] = last;
}

#[kernel(workgroup(64))]
fn doubled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let (factor, other) = (2, 1.0);
    y[i] = x[i] * factor + other;
}

// What a variable begins with that is no literal is what it is.
#[kernel(workgroup(64))]
fn counted(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let count = 1 + 2;
    y[i] = x[i] * count;
}

fn main() {}
