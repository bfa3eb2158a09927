use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn divergent_barrier(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    let i = local_index();
    if i < 32 {
        tile[i] = y[i];
        barrier();
    }
    y[i] = tile[0];
}

fn main() {}
