use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
struct Shape {
    area: f32,
}

fn main() {}
