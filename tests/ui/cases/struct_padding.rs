use trefoil_dsl::prelude::*;

#[device]
struct Padded {
    id: u32,
    place: Vec4<f32>,
}

#[device]
struct Ended {
    place: Vec4<f32>,
    id: u32,
}

#[kernel(workgroup(64))]
fn struct_padding(y: &mut [Padded]) {
    y[global_index()].id = 1;
}

fn main() {}
