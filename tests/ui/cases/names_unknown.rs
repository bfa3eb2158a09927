use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn scaled(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i] * scale;
}

#[kernel(workgroup(64))]
fn later(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    {
        let inner = x[i];
    }
    y[i] = inner;
}

#[kernel(workgroup(64))]
fn typed(x: &[Float4], y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
