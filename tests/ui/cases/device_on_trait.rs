use trefoil_dsl::prelude::*;

#[device]
trait Shape {
    fn area(self) -> f32;
}

fn main() {}
