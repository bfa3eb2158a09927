//! Kernels of norms by the root of a mean or sum of squares, of rows of any strides.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::doubles::bounded_inverse_root_f64;
use crate::rows::bounded_inverse_root;
use crate::strided;

/// A kernel for norms of any rows: `(types; the type of vectors; that of numbers)`.
macro_rules! norm_strided {
    ($name:ident ($($element:ident),+; own)) => {
        norm_strided! {
            @kernel $name [instances(T = [$($element),+])] [<T: Float>] [T] [T] [f32]
            [|x| x.to_f32(), |x| x.to_f32(), |x| T::from_f32(x), |n| n as f32, |x| x, bounded_inverse_root]
        }
    };
    ($name:ident ($($element:ident),+; f32)) => {
        norm_strided! {
            @kernel $name [instances(T = [$($element),+])] [<T: Float>] [T] [f32] [f32]
            [|x| x.to_f32(), |x| x, |x| T::from_f32(x), |n| n as f32, |x| x, bounded_inverse_root]
        }
    };
    ($name:ident (f64)) => {
        norm_strided! {
            @kernel $name [requires(Float64)] [] [f64] [f64] [f64]
            [|x| x, |x| x, |x| x, |n| n as f64, |x| x as f64, bounded_inverse_root_f64]
        }
    };
    (
        @kernel $name:ident [$($attribute:tt)*] [$($generics:tt)*] [$element:ty] [$vectors:ty] [$number:ty]
        [$($closures:tt)*]
    ) => {
        /// A norm of rows of any strides, as [`strided::norm`] says.
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            x: &[$element],
            residual: &[$element],
            bias: &[$element],
            gamma: &[$vectors],
            beta: &[$vectors],
            y: &mut [$element],
            sum: &mut [$element],
            moments: &mut [$number],
            shape: [usize; 3],
            along: usize,
            beside: bool,
            levels: [usize; 2],
            row_extents: [usize; 4],
            extents: [usize; 4],
            x_rows: [usize; 5],
            x_strides: [usize; 5],
            y_rows: [usize; 5],
            y_strides: [usize; 5],
            v_rows: [usize; 5],
            v_strides: [usize; 5],
            numbers: [f32; 2],
            centred: bool,
            wants_sum: bool,
            wants_moments: bool,
        ) {
            let mut scratch = workgroup_array::<$number>(256);
            strided::norm(
                x, residual, bias, gamma, beta, y, sum, moments, &mut scratch, shape, along, beside, levels,
                row_extents, extents, x_rows, x_strides, y_rows, y_strides, v_rows, v_strides, numbers, centred,
                wants_sum, wants_moments, $($closures)*,
            );
        }
    };
}

kernels! {
    norm_strided! norm_strided (f32, f16, bf16; own)
    norm_strided! norm_strided_f32 (f16, bf16; f32)
    norm_strided! norm_strided_f64 (f64)
}
