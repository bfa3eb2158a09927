use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn types_differ(x: &[f32], n: &[u32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i] + n[i];
}

fn main() {}
