use trefoil_dsl::prelude::*;

#[device]
fn first(tile: &[f32]) -> f32 {
    barrier();
    tile[0]
}

#[kernel(workgroup(64))]
fn report_waits(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    tile[local_index()] = 1.0;
    assert!(first(&tile) > 0.0);
    y[global_index()] = 2.0;
}

fn main() {}
