use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn float_times_integer(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i] * 2;
}

fn main() {}
