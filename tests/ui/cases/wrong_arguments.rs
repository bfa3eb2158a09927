use trefoil_dsl::prelude::*;

#[device]
fn mix(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

#[kernel(workgroup(64))]
fn wrong_arguments(y: &mut [f32], n: u32) {
    y[0] = mix(1.0, 2.0);
    y[1] = mix(1.0, 2.0, n);
    y[2] = clamp(1.0, 2.0);
}

fn main() {}
