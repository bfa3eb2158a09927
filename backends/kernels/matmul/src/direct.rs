//! An element of the result an invocation, which reads its row of A and its column of B as they lie: for products of so little along K, or of so few columns, that sharing what is read takes longer than reading it again.

use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate};

/// Pairs that an invocation asks for before it multiplies the first.
#[device]
const ASKED: usize = 4;

/// * `sizes`: M, N and K. `a_strides` and `b_strides`: from one matrix, row and column to the next.
#[kernel(workgroup(256), targets(wgsl, spirv, cuda), instances(T = [f32]))]
pub fn matmul_direct<T: Float>(
    a: &[T],
    b: &[T],
    bias: &[T],
    c: &mut [T],
    sizes: [usize; 3],
    a_strides: [usize; 3],
    b_strides: [usize; 3],
    activation: Activation,
) {
    let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
    let at = global_index();
    if at < c.len() {
        let (batch, row, column) = (at / (m * n), at / n % m, at % n);
        let a_first = batch * a_strides[0] + row * a_strides[1];
        let b_first = batch * b_strides[0] + column * b_strides[2];
        let mut sum = 0.0;
        for step in 0..k.div_ceil(ASKED) {
            let mut left = [0.0; ASKED];
            let mut right = [0.0; ASKED];
            for asked in unroll(0..ASKED) {
                let here = step * ASKED + asked;
                // Past the end is zero without a branch.
                left[asked] = a[select(here < k, a_first + here * a_strides[2], a.len())].to_f32();
                right[asked] = b[select(here < k, b_first + here * b_strides[1], b.len())].to_f32();
            }
            for asked in unroll(0..ASKED) {
                sum = left[asked] * right[asked] + sum;
            }
        }
        if !bias.is_empty() {
            sum += bias[column].to_f32();
        }
        c[at] = T::from_f32(activate(sum, activation));
    }
}
