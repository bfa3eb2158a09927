use trefoil_dsl::prelude::*;

#[device]
struct Ball {
    radius: f32,
}

#[kernel(workgroup(64))]
fn unknown_method_and_field(balls: &[Ball], y: &mut [f32]) {
    let i = global_index();
    y[i] = balls[i].diameter;
    y[i] = y[i].sinc();
    y[i] = y.sum();
}

fn main() {}
