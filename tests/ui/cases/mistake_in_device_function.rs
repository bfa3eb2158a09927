use trefoil_dsl::prelude::*;

#[device]
fn wrong(x: f32) -> f32 {
    x + true
}

#[device]
fn through(x: f32) -> f32 {
    wrong(x) * 2.0
}

#[kernel(workgroup(64))]
fn one(y: &mut [f32]) {
    y[global_index()] = wrong(1.0);
}

#[kernel(workgroup(64))]
fn two(y: &mut [f32]) {
    y[global_index()] = through(1.0);
}

fn launch(mut y: trefoil_dsl::Buffer<f32>) -> trefoil_dsl::Result<trefoil_dsl::Dispatch> {
    Ok(two(&mut y)?.over(1))
}

fn main() {}
