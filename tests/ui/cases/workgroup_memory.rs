use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn workgroup_memory(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(1024 * 1024);
    let i = local_index();
    tile[i] = y[i];
    barrier();
    y[i] = tile[63 - i];
}

fn main() {}
