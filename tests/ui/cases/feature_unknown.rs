use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), targets(wgsl))]
fn feature_unknown(y: &mut [f32]) {
    let i = global_index();
    if const { target::has(Feature::Subgroup) } {
        y[i] = 1.0;
    }
}

fn main() {}
