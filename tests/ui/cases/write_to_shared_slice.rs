use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn write_to_shared_slice(x: &[f32]) {
    let i = global_index();
    x[i] = 0.0;
}

fn main() {}
