use trefoil_dsl::prelude::*;

#[kernel(workgroups(64))]
fn attribute_unknown(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup_size(64))]
fn of_wgsl(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64), specialize(TILE: usize = 16, in 1..=64))]
fn spelt_otherwise(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64), shape(2))]
fn like_nothing(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
