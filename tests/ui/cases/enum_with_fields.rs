use trefoil_dsl::prelude::*;

#[device]
enum Act {
    Relu,
    Leaky(f32),
}

#[kernel(workgroup(64))]
fn enum_with_fields(y: &mut [f32], act: Act) {
    y[global_index()] = 1.0;
}

fn main() {}
