use trefoil::prelude::*;

#[kernel(workgroup(64))]
struct Shape {
    area: f32,
}

fn main() {}
