use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn named(y: &mut [f32]) {
    let name = "sum";
    y[0] = 1.0;
}

#[kernel(workgroup(64))]
fn letter(y: &mut [u32]) {
    y[0] = 'a' as u32;
}

#[kernel(workgroup(64))]
fn printed(y: &mut [f32]) {
    println!("{}", y[0]);
}

fn main() {}
