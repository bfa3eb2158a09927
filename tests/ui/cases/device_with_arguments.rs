use trefoil_dsl::prelude::*;

#[device(inline)]
fn twice(x: f32) -> f32 {
    x * 2.0
}

fn main() {}
