use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn no_else(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let value: f32 = if x[i] > 0.0 { x[i] };
    y[i] = value;
}

#[kernel(workgroup(64))]
fn two_types(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let value = if x[i] > 0.0 { x[i] } else { 0u32 };
    y[i] = value;
}

#[kernel(workgroup(64))]
fn not_a_condition(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if x[i] {
        y[i] = 1;
    }
}

fn main() {}
