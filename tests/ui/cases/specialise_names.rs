use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), specialise(SELF: u32 = 1, in 1..=9))]
fn no_field(y: &mut [u32]) {
    y[0] = SELF;
}

#[kernel(workgroup(64), specialise(r#FINAL: u32 = 1, in 1..=9))]
fn raw(y: &mut [u32]) {
    y[0] = r#FINAL;
}

fn main() {}
