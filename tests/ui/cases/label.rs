use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn label(y: &mut [f32]) {
    'outer: for i in 0..4 {
        for j in 0..4 {
            if i == j {
                continue 'outer;
            }
        }
    }
    y[0] = 1.0;
}

fn main() {}
