use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn generic_without_instances<T: Float>(x: &[T], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i].to_f32();
}

fn main() {}
