use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), targets(cuda, cpu), requires(CooperativeMatrices))]
fn half_a_team(c: &mut [f32]) {
    let a = workgroup_tile::<f16, 64, 64>(1);
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];
    multiply_tiles(&mut sums, &a, 0, &a, 0, 0);
    sums[0].store(c, 0, 16);
}

#[kernel(workgroup(128), requires(CooperativeMatrices))]
fn on_every_target(c: &mut [f32]) {
    let a = workgroup_tile::<f16, 64, 64>(1);
    let mut sums = [Accumulator::<f32, 16, 16>::fill(0.0); 4];
    multiply_tiles(&mut sums, &a, 0, &a, 0, 0);
    sums[0].store(c, 0, 16);
}

#[kernel(workgroup(128))]
fn no_tile(x: &[Vec4<u32>], y: &mut [u32]) {
    let mut tile = workgroup_array::<Vec4<u32>>(512);
    copy_tile_async(&mut tile, 0, x, 0, 0, 8);
    let bits = workgroup_tile::<f16, 64, 60>(1);
    y[0] = x.len() as u32;
}

#[kernel(workgroup(128))]
fn in_another_function(x: &[Vec4<u32>], y: &mut [u32]) {
    let mut tile = workgroup_tile::<f16, 64, 64>(1);
    copy_tile_async(&mut tile, local_index(), x, 0, 0, 8);
    y[0] = tile.len() as u32;
}

fn main() {}
