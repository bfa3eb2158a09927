//! Any strides, any extents, and every element type.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::activation::{Activation, activate, activate_f64};

/// Rows and columns of a workgroup's tile, and how far it goes along K at once.
#[device]
pub const EDGE: usize = 16;

/// Tiles of [`EDGE`] by [`EDGE`], one element an invocation, of which `EDGE * EDGE` make a workgroup.
///
/// * `sizes`: M, N and K. `a_strides` and `b_strides`: from one matrix, row and column to the next.
/// * `left`, `right` and `start` make what is summed of elements of A, B and the bias; `zero` is a sum of nothing, and `end` makes an element of the result of a sum.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn multiply<
    A: Element,
    B: Element,
    C: Element,
    S: Number,
    L: Fn(A) -> S,
    R: Fn(B) -> S,
    I: Fn(C) -> S,
    E: Fn(S, Activation) -> C,
>(
    a: &[A],
    b: &[B],
    bias: &[C],
    c: &mut [C],
    a_tile: &mut [S],
    b_tile: &mut [S],
    sizes: [usize; 3],
    a_strides: [usize; 3],
    b_strides: [usize; 3],
    activation: Activation,
    zero: S,
    left: L,
    right: R,
    start: I,
    end: E,
) {
    let (m, n, k) = (sizes[0], sizes[1], sizes[2]);
    let column_tiles = n.div_ceil(EDGE);
    let tiles = m.div_ceil(EDGE) * column_tiles;
    let batch = group_index() / tiles;
    let tile = group_index() % tiles;
    let (local_row, local_column) = (local_index() / EDGE, local_index() % EDGE);
    let row = tile / column_tiles * EDGE + local_row;
    let column = tile % column_tiles * EDGE + local_column;
    let a_first = batch * a_strides[0] + row * a_strides[1];
    let b_first = batch * b_strides[0] + column * b_strides[2];
    let mut sum = zero;
    for step in 0..k.div_ceil(EDGE) {
        let a_column = step * EDGE + local_column;
        let b_row = step * EDGE + local_row;
        // Past the end is zero without a branch.
        let a_at = select(row < m && a_column < k, a_first + a_column * a_strides[2], a.len());
        let b_at = select(column < n && b_row < k, b_first + b_row * b_strides[1], b.len());
        let (a_here, b_here) = (a[a_at], b[b_at]);
        a_tile[local_index()] = left(a_here);
        b_tile[local_index()] = right(b_here);
        barrier();
        for inner in unroll(0..EDGE) {
            sum = a_tile[local_row * EDGE + inner] * b_tile[inner * EDGE + local_column] + sum;
        }
        barrier();
    }
    if row < m && column < n {
        if !bias.is_empty() {
            sum += start(bias[column]);
        }
        c[(batch * m + row) * n + column] = end(sum, activation);
    }
}

/// A kernel of any strides: attributes, generics, `A, B => C, the type of sums`, and what [`multiply`] wants to know.
macro_rules! strided {
    (
        $(#[$doc:meta])* $name:ident [$($attribute:tt)*] [$($generics:tt)*] $a:ty, $b:ty => $c:ty, $sum:ty, [$($closures:tt)*]
    ) => {
        $(#[$doc])*
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            a: &[$a],
            b: &[$b],
            bias: &[$c],
            c: &mut [$c],
            sizes: [usize; 3],
            a_strides: [usize; 3],
            b_strides: [usize; 3],
            activation: Activation,
        ) {
            let mut a_tile = workgroup_array::<$sum>(EDGE * EDGE);
            let mut b_tile = workgroup_array::<$sum>(EDGE * EDGE);
            multiply(
                a, b, bias, c, &mut a_tile, &mut b_tile, sizes, a_strides, b_strides, activation, $($closures)*,
            );
        }
    };
}

kernels! {
    /// Of one type of floats, any strides.
    strided! matmul_strided {
        [instances(T = [f32, f16, bf16])] [<T: Float>] T, T => T, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| x.to_f32(), |x, activation| T::from_f32(activate(x, activation))]
    }
    /// Of halves, with sums as results, any strides.
    strided! matmul_strided_wide {
        [instances(T = [f16, bf16])] [<T: Float>] T, T => f32, f32,
        [0.0, |x| x.to_f32(), |x| x.to_f32(), |x| x, |x, activation| activate(x, activation)]
    }
    /// Of `f32` and halves, any strides.
    strided! matmul_strided_mixed {
        [instances(T = [f16, bf16])] [<T: Float>] f32, T => f32, f32,
        [0.0, |x| x, |x| x.to_f32(), |x| x, |x, activation| activate(x, activation)]
    }
    /// Of `f64`, any strides.
    strided! matmul_strided_f64 {
        [requires(Float64, Int64)] [] f64, f64 => f64, f64,
        [0.0, |x| x, |x| x, |x| x, |x, activation| activate_f64(x, activation)]
    }
    /// Of integers of 32 bits, any strides, without an activation.
    strided! matmul_strided_words { [] [] u32, u32 => u32, u32, [0, |x| x, |x| x, |x| x, |x, _| x] }
    /// Of integers of 64 bits, any strides, without an activation.
    strided! matmul_strided_longs { [requires(Int64)] [] u64, u64 => u64, u64, [0, |x| x, |x| x, |x| x, |x, _| x] }
    /// Of signed and signed bytes, any strides, without an activation.
    strided! matmul_strided_bytes_i8_i8 {
        [] [] i8, i8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of signed and unsigned bytes, any strides, without an activation.
    strided! matmul_strided_bytes_i8_u8 {
        [] [] i8, u8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of unsigned and signed bytes, any strides, without an activation.
    strided! matmul_strided_bytes_u8_i8 {
        [] [] u8, i8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
    /// Of unsigned and unsigned bytes, any strides, without an activation.
    strided! matmul_strided_bytes_u8_u8 {
        [] [] u8, u8 => i32, i32, [0, |x| x as i32, |x| x as i32, |x| x, |x, _| x]
    }
}
