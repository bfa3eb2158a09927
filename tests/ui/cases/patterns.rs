use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn of_floats(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = match x[i] {
        0.0 => 1.0,
        _ => 2.0,
    };
}

#[kernel(workgroup(64))]
fn without_a_rest(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    y[i] = match x[i] {
        0 => 1,
        1 => 2,
    };
}

#[kernel(workgroup(64))]
fn optional(x: &[u32], y: &mut [u32]) {
    let i = global_index();
    if let Some(value) = Some(x[i]) {
        y[i] = value;
    }
}

fn main() {}
