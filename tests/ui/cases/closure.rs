use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn closure(y: &mut [f32]) {
    let twice = |x: f32| x * 2.0;
    y[global_index()] = twice(1.0);
}

fn main() {}
