use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn labelled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let value = loop {
        break x[i];
    };
    y[i] = value;
}

#[kernel(workgroup(64))]
fn counted(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let mut sum = 0.0;
    for k in 0..4 {
        sum += x[i + k];
        k += 1;
    }
    y[i] = sum;
}

#[kernel(workgroup(64))]
fn matched(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    while let Some(value) = x.get(i) {
        y[i] = *value;
    }
}

#[kernel(workgroup(64))]
fn over_floats(y: &mut [f32]) {
    for k in 0.0..4.0 {
        y[0] = k;
    }
}

#[kernel(workgroup(64))]
fn endless(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    loop {
        y[i] = x[i];
    }
}

fn main() {}
