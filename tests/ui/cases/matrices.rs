use trefoil_dsl::prelude::*;

#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
pub fn divergent(x: &[f16], out: &mut [f32]) {
    let a = MatrixA::<f16, 16, 16>::load(x, 0, 16);
    let b = MatrixB::<f16, 16, 16>::load(x, local_index(), 16);
    if local_index() < 32 {
        let c = multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0));
        c.store(out, 0, 16);
    }
}

#[kernel(workgroup(64), requires(CooperativeMatrices))]
pub fn without_targets(out: &mut [f32]) {
    Accumulator::<f32, 16, 16>::fill(0.0).store(out, 0, 16);
}

#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(CooperativeMatrices))]
pub fn sizes(x: &[f16], out: &mut [f32]) {
    let a = MatrixA::<f16, 16, 16>::load(x, 0, 16);
    let b = MatrixB::<f16, 8, 16>::load(x, 0, 16);
    multiply_add(a, b, Accumulator::<f32, 16, 16>::fill(0.0)).store(out, 0, 16);
}

fn main() {}
