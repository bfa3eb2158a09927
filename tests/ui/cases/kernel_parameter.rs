use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn kernel_parameter(x: Vec<f32>, name: &str, (a, b): (u32, u32), y: &mut [f32]) {
    y[0] = x[0];
}

fn main() {}
