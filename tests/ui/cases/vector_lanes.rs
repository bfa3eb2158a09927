use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn fourth(x: &[Vec3<f32>], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i].w;
}

#[kernel(workgroup(64))]
fn mixed(x: &[Vec4<f32>], y: &mut [Vec4<f32>]) {
    let i = global_index();
    y[i] = x[i] + Vec2::new(1.0, 2.0);
}

#[kernel(workgroup(64))]
fn short(y: &mut [Vec4<f32>]) {
    y[0] = Vec4::new(1.0, 2.0, 3.0);
}

fn main() {}
