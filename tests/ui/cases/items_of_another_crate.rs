use trefoil_dsl::prelude::*;
use trefoil_test_helpers::{Body, LANES, group_sum};

#[kernel(workgroup(64))]
fn field_of_another_type(bodies: &[Body], x: &[f32], y: &mut [f32]) {
    let mut scratch = workgroup_array::<f32>(LANES);
    y[group_index()] = group_sum(x, &mut scratch) + bodies[0].id;
}

#[kernel(workgroup(64))]
fn argument_of_another_type(x: &[u32], y: &mut [f32]) {
    let mut scratch = workgroup_array::<f32>(LANES);
    y[group_index()] = group_sum(x, &mut scratch);
}

#[kernel(workgroup(64))]
fn field_that_is_not_there(bodies: &[Body], y: &mut [f32]) {
    y[LANES] = bodies[0].mass;
}

fn main() {}
