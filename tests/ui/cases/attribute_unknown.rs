use trefoil_dsl::prelude::*;

#[kernel(workgroups(64))]
fn attribute_unknown(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
