use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn too_much(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(1024);
    let i = local_index();
    copy_async(&mut tile, 8 * i, x, 8 * i, 8);
    y[i] = tile[i];
}

#[kernel(workgroup(64))]
fn wrong_ends(x: &[f32], y: &mut [f32], count: usize) {
    let mut tile = workgroup_array::<f32>(64);
    copy_async(y, 0, x, 0, 4);
    copy_async(&mut tile, 0, x, 0, count);
    async_wait(count);
}

fn main() {}
