use trefoil::prelude::*;

#[kernel(workgroup(64))]
fn copy(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i];
}

fn launch(mut y: trefoil::Buffer<f32>) -> trefoil::Result<trefoil::Launch> {
    copy(&y, &mut y)
}

fn main() {}
