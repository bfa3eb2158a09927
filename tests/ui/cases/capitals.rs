use trefoil_dsl::prelude::*;

// Capitals are names like others: the one mistake is in the last line.
#[allow(non_snake_case)]
#[kernel(workgroup(64))]
fn gemm(A: &[f32], C: &mut [f32], N: u32) {
    let I = global_index();
    for K in 0..N {
        C[I] = A[I] + K;
    }
}

fn main() {}
