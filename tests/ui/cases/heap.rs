use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn collected(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let mut values = Vec::new();
    values.push(x[i]);
    y[i] = values[0];
}

#[kernel(workgroup(64))]
fn boxed(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let value = Box::new(x[i]);
    y[i] = *value;
}

fn main() {}
