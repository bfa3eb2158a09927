use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn several_mistakes(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    let a: u32 = x[i];
    y[i] = missing;
    if y[i] {
        y[i] = true;
    }
}

fn main() {}
