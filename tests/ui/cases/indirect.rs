use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), indirect, indirect)]
fn twice(x: &mut [u32]) {
    x[global_index()] = 1;
}

#[kernel(workgroup(64), indirect(x))]
fn with_content(x: &mut [u32]) {
    x[global_index()] = 1;
}

fn main() {}
