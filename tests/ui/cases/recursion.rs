use trefoil_dsl::prelude::*;

#[device]
fn factorial(n: u32) -> u32 {
    if n < 2 { 1 } else { n * factorial(n - 1) }
}

#[kernel(workgroup(64))]
fn recursion(y: &mut [u32]) {
    y[global_index()] = factorial(5);
}

fn main() {}
