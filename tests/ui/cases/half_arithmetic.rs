use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn half_arithmetic(x: &[f16], y: &mut [f16]) {
    let i = global_index();
    y[i] = x[i] * 0.5;
    y[i + 1] = exp(x[i]);
}

fn main() {}
