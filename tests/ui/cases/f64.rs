use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn double(x: &[f64], y: &mut [f32], by: i64) {
    let i = global_index();
    y[i] = x[i] as f32;
}

fn main() {}
