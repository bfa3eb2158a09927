use trefoil::prelude::*;

#[device]
trait Shape {
    fn area(self) -> f32;
}

fn main() {}
