use trefoil_dsl::prelude::*;

#[device]
const SIZE: usize = 32;

#[kernel(workgroup(64))]
fn of_a_number(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    tile[local_index()] = 0.0;
    tile[64] = 1.0;
    barrier();
    y[global_index()] = tile[70] + tile[63];
}

#[kernel(workgroup(64))]
fn of_a_constant(y: &mut [u32]) {
    let tile = workgroup_array::<Atomic<u32>>(2 * SIZE);
    tile[64].store(1);
    barrier();
    y[global_index()] = tile[63].load();
}

// A function that is handed an array looks at its length.
#[device]
fn far(tile: &[f32]) -> f32 {
    if tile.len() > 64 { tile[64] } else { 0.0 }
}

#[kernel(workgroup(64))]
fn handed_on(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    tile[local_index()] = 1.0;
    barrier();
    y[global_index()] = far(&tile);
}

fn main() {}
