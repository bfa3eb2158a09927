use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn to_bool(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = if x[i] as bool { 1 } else { 0 };
}

#[kernel(workgroup(64))]
fn to_a_vector(x: &[f32], y: &mut [Vec4<f32>]) {
    let i = global_index();
    y[i] = x[i] as Vec4<f32>;
}

#[kernel(workgroup(64))]
fn to_128_bits(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = (x[i] as u128) as u32;
}

#[kernel(workgroup(64))]
fn by_into(x: &[u32], y: &mut [f32]) {
    let i = global_index();
    y[i] = x[i].into();
}

fn main() {}
