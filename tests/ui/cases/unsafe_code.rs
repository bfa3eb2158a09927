use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn raw(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    unsafe {
        y[i] = *x.get_unchecked(i);
    }
}

#[kernel(workgroup(64))]
fn pointer(x: &[f32], y: &mut [f32]) {
    let first = x.as_ptr();
    y[0] = 1.0;
}

#[kernel(workgroup(64))]
unsafe fn declared(y: &mut [f32]) {
    y[0] = 1.0;
}

fn main() {}
