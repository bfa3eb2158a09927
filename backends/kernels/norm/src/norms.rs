//! Kernels of norms by the root of a mean or sum of squares.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use crate::doubles::bounded_inverse_root_f64;
use crate::rows::{LARGEST, LARGEST_OF_HALVES, bounded_inverse_root};
use crate::{rows, strided};

/// A kernel for norms of rows that follow on each other: `(types, the type of vectors, how many quads an invocation holds; with how many rows may be longer)`, and what its compilers are told.
macro_rules! norm_rows {
    ($name:ident ($($element:ident),+; own; $($held:tt),+; $most:ident)) => {
        norm_rows! { @kernel $name [] [$($element),+] [T] [$($held),+] $most }
    };
    ($name:ident ($element:ident; own; $held:tt; $most:ident; $volatile:meta)) => {
        norm_rows! { @kernel $name [, $volatile] [$element] [T] [$held] $most }
    };
    ($name:ident ($($element:ident),+; $vectors:ident; $($held:tt),+; $most:ident)) => {
        norm_rows! { @kernel $name [] [$($element),+] [$vectors] [$($held),+] $most }
    };
    (@kernel $name:ident [$($attribute:tt)*] [$($element:ident),+] [$vectors:ident] [$($held:tt),+] $most:ident) => {
        /// A norm of rows that are held in registers, as [`rows::norm`] says.
        #[kernel(workgroup(256), instances(T = [$($element),+], HELD = [$($held),+], RESIDUAL = [false, true]) $($attribute)*)]
        pub fn $name<T: Float, const HELD: usize, const RESIDUAL: bool>(
            x: &[T],
            residual: &[T],
            bias: &[T],
            gamma: &[$vectors],
            beta: &[$vectors],
            y: &mut [T],
            sum: &mut [T],
            moments: &mut [f32],
            shape: [usize; 3],
            bits: usize,
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 5],
            v_strides: [usize; 5],
            runs: [usize; 2],
            numbers: [f32; 2],
            centred: bool,
            wants_sum: bool,
            wants_moments: bool,
        ) {
            let mut scratch = workgroup_array::<f32>(768);
            rows::norm::<T, $vectors, HELD, $most, RESIDUAL>(
                x, residual, bias, gamma, beta, y, sum, moments, &mut scratch, shape, bits, levels, extents, x_strides,
                v_strides, runs, numbers, centred, wants_sum, wants_moments,
            );
        }
    };
}

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
    norm_rows! norm_rows (f32; own; 4, 8, 16; LARGEST)
    norm_rows! norm_long_rows (f32; own; 32; LARGEST; volatile(spirv(x, residual, bias, gamma, beta)))
    norm_rows! norm_half_rows (f16, bf16; own; 8; LARGEST_OF_HALVES)
    norm_rows! norm_half_rows_f32 (f16, bf16; f32; 8; LARGEST_OF_HALVES)
    norm_strided! norm_strided (f32, f16, bf16; own)
    norm_strided! norm_strided_f32 (f16, bf16; f32)
    norm_strided! norm_strided_f64 (f64)
}
