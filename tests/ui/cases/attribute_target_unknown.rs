use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), targets(wgsl, metal), requires(Tensors))]
fn attribute_target_unknown(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
