use trefoil_dsl::prelude::*;

#[device]
fn apply(x: f32, f: impl Fn(f32) -> f32) -> f32 {
    f(x)
}

#[kernel(workgroup(64))]
fn captures(y: &mut [f32], factor: f32) {
    let i = global_index();
    y[i] = apply(y[i], |v| v * factor);
}

fn main() {}
