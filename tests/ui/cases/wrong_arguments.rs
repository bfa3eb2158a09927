use trefoil_dsl::prelude::*;

#[device]
fn mid(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

#[kernel(workgroup(64))]
fn wrong_arguments(y: &mut [f32], n: u32) {
    y[0] = mid(1.0, 2.0);
    y[1] = mid(1.0, 2.0, n);
    y[2] = clamp(1.0, 2.0);
}

fn main() {}
