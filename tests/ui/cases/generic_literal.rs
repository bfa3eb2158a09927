use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), instances(T = [f32, u32]))]
fn generic_literal<T: Number>(y: &mut [T]) {
    let i = global_index();
    y[i] = y[i] * 2.0;
}

fn main() {}
