use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn catches_all(y: &mut [u32]) {
    let i = global_index();
    y[i] = match y[i] {
        limit => 1,
        _ => 2,
    };
}

fn main() {}
