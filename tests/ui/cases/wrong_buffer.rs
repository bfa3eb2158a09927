use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn copy(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i];
}

fn launch(x: trefoil_dsl::Buffer<u32>, mut y: trefoil_dsl::Buffer<f32>) -> trefoil_dsl::Result<trefoil_dsl::Launch> {
    copy(&x, &mut y)
}

fn main() {}
