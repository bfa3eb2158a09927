use trefoil_dsl::prelude::*;

#[device]
fn vec(x: f32) -> f32 {
    x * 2.0
}

#[device]
fn format(x: f32) -> f32 {
    x + 1.0
}

#[kernel(workgroup(64))]
fn doubled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = vec(x[i]);
}

// Variables have any name.
#[kernel(workgroup(64))]
fn variables(x: &[f32], y: &mut [f32]) {
    let line = global_index();
    let column = x[line];
    y[line] = column;
}

fn main() {
    let _ = vec![format!("{}", 1)];
}
