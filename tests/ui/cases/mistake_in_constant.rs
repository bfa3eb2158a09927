use trefoil_dsl::prelude::*;

#[device]
const LANES: usize = 2.0;

#[device]
const TWICE: usize = 2 * LANES;

#[device]
fn sum<const N: usize>(values: [f32; N]) -> f32 {
    let mut sum = 0.0;
    for i in 0..N {
        sum += values[i];
    }
    sum
}

// Nothing follows from it.
#[kernel(workgroup(LANES))]
fn used(x: &[f32], y: &mut [f32]) {
    let mut tile = workgroup_array::<f32>(TWICE);
    let zeros = [0.0; LANES];
    tile[local_index() % LANES] = x[0];
    let same = &tile;
    y[0] = sum::<LANES>([1.0, 2.0]) + zeros[0] + same[0];
    match y.len() {
        LANES => y[1] = 1.0,
        _ => y[1] = 2.0,
    }
}

fn lanes() -> [u32; LANES] {
    [0; LANES]
}

fn main() {
    let _ = lanes();
}
