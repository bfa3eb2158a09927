use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn slice_of_slices(x: &[&[f32]], flags: &[bool], y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
