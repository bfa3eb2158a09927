use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn of_the_library(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    y[i] = std::cmp::max(x[i], std::f32::consts::PI);
    let kept = Some(x[i]);
}

#[kernel(workgroup(64))]
fn of_other_languages(x: &[f32], y: &mut [f32]) {
    let i = threadIdx.x;
    let v = vec3(x[i], x[i], x[i]);
    __syncthreads();
    y[get_global_id(0)] = x[i];
}

fn main() {}
