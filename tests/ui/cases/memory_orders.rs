use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn released(x: &mut [u32], flags: &[Atomic<u32>]) {
    x[global_index()] = 1;
    flags[0].store_release(1);
}

#[kernel(workgroup(64), requires(Ordering))]
fn fenced(flags: &[Atomic<u32>]) {
    device_fence();
    flags[0].store(1);
}

#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn misplaced(flags: &[Atomic<u32>]) {
    flags[0].store(flags[1].load_release());
}

#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn alone(flags: &[Atomic<u32>]) {
    let flag = flags[0].workgroup();
}

fn main() {}
