use trefoil_dsl::prelude::*;

#[device]
static SCALE: f32 = 2.0;

#[device]
type Real = f32;

#[device]
fn scaled(x: Real) -> Real {
    x * SCALE
}

// Who names them says nothing more.
#[kernel(workgroup(64))]
fn scale(x: &[Real], y: &mut [f32]) {
    let i = global_index();
    y[i] = scaled(x[i]) * SCALE;
}

fn main() {}
