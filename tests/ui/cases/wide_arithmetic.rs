use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn sum(x: &[i64], y: &mut [i64]) {
    let i = global_index();
    y[i] = x[i] + x[i + 1];
}

#[kernel(workgroup(64), targets(wgsl, cuda))]
fn scale(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    y[i] = 2.0 * x[i];
}

#[kernel(workgroup(64), requires(Float64))]
fn root(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    y[i] = cbrt(x[i]);
}

fn main() {}
