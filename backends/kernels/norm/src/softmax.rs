//! Kernels of softmax and its logarithm.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::known_or;

use crate::rows::{LARGEST, LARGEST_OF_HALVES};
use crate::{rows, strided};

/// A kernel for the softmax of rows that follow on each other: `(invocations; types, how many quads one holds; with how many rows may be longer)`.
macro_rules! softmax_rows {
    ($name:ident ($across:tt; $($element:ident),+; $($held:tt),+; $most:ident $(; $told:meta)?)) => {
        /// The softmax of rows that are held in registers, as [`rows::softmax`] says.
        #[kernel(workgroup($across), instances(T = [$($element),+], HELD = [$($held),+]), specialise(BITS: usize = 15, in 0..=15) $(, $told)?)]
        pub fn $name<T: Float, const HELD: usize>(
            x: &[T],
            y: &mut [T],
            shape: [usize; 2],
            bits: usize,
            levels: usize,
            extents: [usize; 4],
            strides: [usize; 5],
            logarithm: bool,
        ) {
            let mut scratch = workgroup_array::<f32>(2 * $across);
            rows::softmax::<T, $across, HELD, $most>(x, y, &mut scratch, shape, known_or(BITS, bits), levels, extents, strides, logarithm);
        }
    };
}

/// A kernel for the softmax of any rows: `(types)`.
macro_rules! softmax_strided {
    ($name:ident (f64)) => {
        softmax_strided! {
            @kernel $name [requires(Float64, Int64)] [] [f64] [f64]
            [f64::NEG_INFINITY, |x| x, |x| x, exp, ln]
        }
    };
    ($name:ident ($($element:ident),+)) => {
        softmax_strided! {
            @kernel $name [instances(T = [$($element),+])] [<T: Float>] [T] [f32]
            [f32::NEG_INFINITY, |x| x.to_f32(), |x| T::from_f32(x), exp, ln]
        }
    };
    (
        @kernel $name:ident [$($attribute:tt)*] [$($generics:tt)*] [$element:ty] [$number:ty] [$($closures:tt)*]
    ) => {
        /// The softmax of rows of any strides, as [`strided::softmax`] says.
        #[kernel(workgroup(256), $($attribute)*)]
        pub fn $name $($generics)* (
            x: &[$element],
            y: &mut [$element],
            shape: [usize; 2],
            along: usize,
            beside: bool,
            levels: [usize; 2],
            row_extents: [usize; 4],
            extents: [usize; 4],
            x_rows: [usize; 5],
            x_strides: [usize; 5],
            y_rows: [usize; 5],
            y_strides: [usize; 5],
            logarithm: bool,
        ) {
            let mut scratch = workgroup_array::<$number>(256);
            strided::softmax(
                x, y, &mut scratch, shape, along, beside, levels, row_extents, extents, x_rows, x_strides, y_rows,
                y_strides, logarithm, $($closures)*,
            );
        }
    };
}

kernels! {
    softmax_rows! softmax_rows (256; f32; 4, 8, 16; LARGEST)
    softmax_rows! softmax_long_rows (256; f32; 32; LARGEST; volatile(spirv(x)))
    softmax_rows! softmax_wide_rows (512; f32; 16; LARGEST; targets(cuda))
    softmax_rows! softmax_half_rows (256; f16, bf16; 8; LARGEST_OF_HALVES)
    softmax_strided! softmax_strided (f32, f16, bf16)
    softmax_strided! softmax_strided_f64 (f64)
}
