use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), specialise(TILE: usize = 16))]
fn without_range(y: &mut [f32]) {
    y[0] = TILE as f32;
}

#[kernel(workgroup(64), specialise(TILE: usize = 16, in 1..=64))]
fn private_array(y: &mut [f32]) {
    let v = [0.0; TILE];
    y[0] = v[0];
}

#[kernel(workgroup(64), specialise(TILE: usize = 16, in 1..=100000))]
fn too_large(y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(TILE);
    tile[0] = 1.0;
    y[0] = tile[0];
}

#[kernel(workgroup(64), specialise(TILE: usize = 16, in 1..=64))]
fn fine(y: &mut [f32]) {
    y[0] = TILE as f32;
}

fn launch(y: &mut trefoil_dsl::Buffer<f32>) -> trefoil_dsl::Result<()> {
    let _ = fine(y)?.specialise(fine::Constants { tile: 3u32 })?;
    Ok(())
}

fn main() {
    let _ = launch;
}
