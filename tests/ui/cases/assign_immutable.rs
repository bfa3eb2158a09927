use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn assign_immutable(y: &mut [f32]) {
    let sum = 0.0;
    sum += 1.0;
    y[global_index()] = sum;
}

fn main() {}
