use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), subgroup(24))]
fn no_power(x: &mut [u32]) {
    x[global_index()] = subgroup_size() as u32;
}

#[kernel(workgroup(48), subgroup(32))]
fn not_whole(x: &mut [u32]) {
    x[global_index()] = subgroup_size() as u32;
}

#[kernel(workgroup(64), subgroup(8))]
fn not_on_cuda(x: &mut [u32]) {
    x[global_index()] = subgroup_size() as u32;
}

#[kernel(workgroup(64), subgroup(8, 16), targets(cpu))]
fn two(x: &mut [u32]) {
    x[global_index()] = subgroup_size() as u32;
}

#[kernel(workgroup(64), subgroup(S), instances(S = [8, 512]), targets(cpu))]
fn too_large<const S: usize>(x: &mut [u32]) {
    x[global_index()] = S as u32;
}

fn main() {}
