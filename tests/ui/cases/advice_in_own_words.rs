use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn halves(x: &[f16], y: &mut [f16]) {
    let i = global_index();
    y[i] = x[i] * 2.25;
    y[i] = x[i] * (-3);
}

#[kernel(workgroup(64), instances(T = [f32, u32]))]
fn generic<T: Number>(y: &mut [T]) {
    let i = global_index();
    y[i] = y[i] * 3;
}

#[kernel(workgroup(64))]
fn greatest(y: &mut [u32]) {
    let none = usize::MAX;
    y[global_index()] = none as u32;
}

// What is written instead.
#[kernel(workgroup(64))]
fn greatest_of_32_bits(y: &mut [u32]) {
    let none = u32::MAX as usize;
    y[global_index()] = none as u32;
}

#[kernel(workgroup(64))]
fn text(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let shown = format!("{}", x[i]);
    y[i] = x[i];
}

fn main() {}
