use trefoil_dsl::prelude::*;

#[kernel(workgroup(64))]
fn sums(x: &[f32], counts: &[u32], y: &mut [f32]) {
    let mut part = workgroup_array::<f32>(64);
    let l = local_index();
    let mut sum = 0.0;
    for k in 0..counts[l] {
        part[l] = x[k as usize];
        barrier();
        sum += part[63 - l];
    }
    y[global_index()] = sum;
}

#[kernel(workgroup(64))]
fn leaves(x: &[f32], y: &mut [f32]) {
    let mut part = workgroup_array::<f32>(64);
    let l = local_index();
    loop {
        if x[l] > 0.0 {
            break;
        }
        part[l] = x[l];
        barrier();
    }
    y[global_index()] = part[63 - l];
}

fn main() {}
