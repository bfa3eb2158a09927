use trefoil_dsl::prelude::*;

fn helper(x: f32) -> f32 {
    x
}

#[kernel(workgroup(64))]
fn plain_function(y: &mut [f32]) {
    let i = global_index();
    y[i] = helper(y[i]);
}

fn main() {}
