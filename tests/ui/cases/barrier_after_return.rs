use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn barrier_after_return(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    let i = global_index();
    if i >= y.len() {
        return;
    }
    tile[local_index()] = y[i];
    barrier();
    y[i] = tile[63 - local_index()];
}

fn main() {}
