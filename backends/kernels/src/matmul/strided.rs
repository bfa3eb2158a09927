//! Any strides and any extents.

use trefoil_dsl::prelude::*;

use crate::activation::{Activation, activate};

/// Tiles of 16 by 16, one element an invocation.
#[kernel(workgroup(256))]
pub fn matmul_strided(
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    c: &mut [f32],
    m: usize,
    n: usize,
    k: usize,
    a_strides: [usize; 2],
    b_strides: [usize; 2],
    a_batch: usize,
    b_batch: usize,
    activation: Activation,
) {
    let mut a_tile = workgroup_array::<f32>(256);
    let mut b_tile = workgroup_array::<f32>(256);
    let column_tiles = n.div_ceil(16);
    let row_tiles = m.div_ceil(16);
    let batch = group_index() / (row_tiles * column_tiles);
    let tile = group_index() % (row_tiles * column_tiles);
    let local_row = local_index() / 16;
    let local_column = local_index() % 16;
    let row = tile / column_tiles * 16 + local_row;
    let column = tile % column_tiles * 16 + local_column;
    let mut sum = 0.0;
    for step in 0..k.div_ceil(16) {
        let a_column = step * 16 + local_column;
        let b_row = step * 16 + local_row;
        let mut left = 0.0;
        if row < m && a_column < k {
            left = a[batch * a_batch + row * a_strides[0] + a_column * a_strides[1]];
        }
        let mut right = 0.0;
        if b_row < k && column < n {
            right = b[batch * b_batch + b_row * b_strides[0] + column * b_strides[1]];
        }
        a_tile[local_index()] = left;
        b_tile[local_index()] = right;
        barrier();
        for inner in unroll(0..16) {
            sum = a_tile[local_row * 16 + inner] * b_tile[inner * 16 + local_column] + sum;
        }
        barrier();
    }
    if row < m && column < n {
        if !bias.is_empty() {
            sum += bias[column];
        }
        c[(batch * m + row) * n + column] = activate(sum, activation);
    }
}
