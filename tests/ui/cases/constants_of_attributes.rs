use trefoil_dsl::prelude::*;

#[device]
const SIZE: usize = 64;

// What the attribute alone names is found: the one mistake is in the last line.
#[kernel(workgroup(SIZE), subgroup(LANES))]
fn sized(y: &mut [f32]) {
    y[global_index()] = 1u32;
}

#[device]
const LANES: usize = 32;

fn main() {}
