use trefoil_dsl::prelude::*;

#[kernel(workgroup(N), instances(T = [f32, bool], N = [64, 1.5], M = [1]))]
fn instance_of_unknown_type<T: Number, const N: usize>(x: &[T], y: &mut [T]) {
    let i = global_index();
    y[i] = x[i];
}

fn main() {}
