use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn match_guard(y: &mut [u32], n: u32) {
    y[0] = match n {
        0 => 1,
        x if x > 4 => 2,
        _ => 3,
    };
}

fn main() {}
