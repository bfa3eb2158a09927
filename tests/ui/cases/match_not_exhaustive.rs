use trefoil_dsl::prelude::*;

#[device]
enum Shape {
    Round,
    Square,
    Flat,
}

#[kernel(workgroup(64))]
fn match_not_exhaustive(y: &mut [u32], shape: Shape) {
    y[0] = match shape {
        Shape::Round => 1,
        Shape::Square => 2,
    };
}

fn main() {}
