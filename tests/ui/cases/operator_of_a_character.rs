use trefoil_dsl::prelude::*;

#[device(operators(Mul<'½'>))]
struct Halved {
    x: f32,
}

fn main() {}
