use trefoil_dsl::prelude::*;

#[kernel(workgroup(32, 32))]
fn workgroup_too_large(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
