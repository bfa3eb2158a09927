use trefoil_dsl::prelude::*;

#[kernel]
fn attribute_missing(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
