use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn in_a_branch(x: &[f32], y: &mut [f32]) {
    let l = local_index();
    if x[0] > 0.0 {
        let mut part = workgroup_array::<f32>(64);
        part[l] = x[l];
        barrier();
        y[l] = part[63 - l];
    }
}

#[kernel(workgroup(64))]
fn of_a_parameter(x: &[f32], y: &mut [f32], size: usize) {
    let mut part = workgroup_array::<f32>(size);
    let l = local_index();
    part[l] = x[l];
    barrier();
    y[l] = part[63 - l];
}

#[kernel(workgroup(64))]
fn without_a_type(x: &[f32], y: &mut [f32]) {
    let mut part = workgroup_array(64);
    let l = local_index();
    part[l] = x[l];
    barrier();
    y[l] = part[63 - l];
}

fn main() {}
