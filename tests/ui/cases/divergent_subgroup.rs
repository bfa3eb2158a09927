use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), requires(Subgroups))]
fn divergent_subgroup(y: &mut [f32]) {
    let i = global_index();
    if i % 2 == 0 {
        y[i] = subgroup_add(y[i]);
    }
}

fn main() {}
