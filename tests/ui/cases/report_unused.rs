use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn report_unused(y: &mut [f32]) {
    let i = global_index();
    assert!(i < y.len(), "too far", i);
    println!("{:x}", 1.5f32);
    y[i] = 1.0;
}

fn main() {}
