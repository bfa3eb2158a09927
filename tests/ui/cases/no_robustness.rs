use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), targets(cuda, cpu), no_robustness)]
fn nobody_checks(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64), no_robustness, no_robustness)]
fn twice(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

#[kernel(workgroup(64), no_robustness(y))]
fn of_one_slice(y: &mut [f32]) {
    y[global_index()] = 1.0;
}

fn main() {}
