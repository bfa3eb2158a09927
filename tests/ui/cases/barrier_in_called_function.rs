use trefoil_dsl::prelude::*;

#[device]
fn share(tile: &mut [f32], x: f32) -> f32 {
    tile[local_index()] = x;
    barrier();
    tile[0]
}

#[kernel(workgroup(64))]
fn barrier_in_called_function(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(64);
    let i = global_index();
    if x[i] > 0.0 {
        if local_index() > 3 {
            y[i] = share(&mut tile, x[i]);
        }
    }
}

fn main() {}
