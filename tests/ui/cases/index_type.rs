use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn index_type(y: &mut [f32], n: u32) {
    y[n] = 1.0;
}

fn main() {}
