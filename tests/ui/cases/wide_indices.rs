use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), index = 64)]
fn on_every_target(x: &mut [f32]) {
    x[global_index()] = 1.0;
}

#[kernel(workgroup(64), index = [32, 64], targets(wgsl))]
fn on_no_target(x: &mut [f32]) {
    x[global_index()] = 1.0;
}

#[kernel(workgroup(64), index = 16)]
fn too_narrow(x: &mut [f32]) {
    x[global_index()] = 1.0;
}

#[kernel(workgroup(64), index = [64, 32, 64])]
fn twice(x: &mut [f32]) {
    x[global_index()] = 1.0;
}

#[kernel(workgroup(64), index(64))]
fn in_parentheses(x: &mut [f32]) {
    x[global_index()] = 1.0;
}

#[kernel(workgroup(64))]
fn too_large(x: &mut [f32]) {
    x[global_index() + 5_000_000_000] = 1.0;
}

#[kernel(workgroup(64), index = [32, 64])]
fn too_large_for_one(x: &mut [f32]) {
    x[global_index() + far()] = 1.0;
}

#[device]
fn far() -> usize {
    6_000_000_000
}

fn main() {}
