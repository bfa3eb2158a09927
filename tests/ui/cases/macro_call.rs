use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn macro_call(y: &mut [f32]) {
    let i = global_index();
    assert!(i < y.len());
    println!("{i}");
    y[i] = 1.0;
}

fn main() {}
