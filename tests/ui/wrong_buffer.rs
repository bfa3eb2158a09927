use trefoil::prelude::*;

#[kernel(workgroup(64))]
fn copy(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i];
}

fn launch(x: trefoil::Buffer<u32>, mut y: trefoil::Buffer<f32>) -> trefoil::Result<trefoil::Launch> {
    copy(&x, &mut y)
}

fn main() {}
