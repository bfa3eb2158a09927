use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn nested(x: &[f32], y: &mut [f32]) {
    fn twice(x: f32) -> f32 {
        x * 2.0
    }
    let i = global_index();
    y[i] = twice(x[i]);
}

#[kernel(workgroup(64))]
fn imported(x: &[f32], y: &mut [f32]) {
    use std::f32::consts::PI;
    let i = global_index();
    y[i] = x[i] * PI;
}

#[kernel(workgroup(64))]
fn counted(y: &mut [u32]) {
    static COUNT: u32 = 1;
    y[0] = COUNT;
}

fn main() {}
