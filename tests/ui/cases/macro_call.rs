use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn macro_call(y: &mut [f32]) {
    let i = global_index();
    if i >= y.len() {
        panic!("too far: {i}");
    }
    if matches!(i, 0 | 1) {
        y[i] = 1.0;
    }
    dbg!(i);
}

fn main() {}
