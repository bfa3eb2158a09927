use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn of_a_shared_slice(x: &[u32], y: &mut [u32]) {
    x[0].fetch_add(1);
    y[0] = x[0];
}

#[kernel(workgroup(64))]
fn read_as_it_is(count: &[Atomic<u32>], y: &mut [u32]) {
    let i = global_index();
    y[i] = count[0] + 1;
}

#[kernel(workgroup(64))]
fn of_halves(count: &[Atomic<f16>], y: &mut [f16]) {
    count[0].fetch_add(y[0]);
}

fn main() {}
