use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn shifted(y: &mut [f32]) {
    y[global_index() + (1 << 35)] = 1.0;
}

#[kernel(workgroup(64))]
fn multiplied(y: &mut [f32]) {
    y[global_index() + 65_536 * 65_536] = 1.0;
}

fn main() {}
