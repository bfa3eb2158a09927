use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn view_rank(v: &View<f32, 2>, y: &mut [f32]) {
    y[0] = v.at([1, 2, 3]);
}

fn main() {}
