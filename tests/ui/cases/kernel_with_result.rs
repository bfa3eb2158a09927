use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn kernel_with_result(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
