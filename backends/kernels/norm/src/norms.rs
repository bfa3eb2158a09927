//! Kernels of norms by the root of a mean or sum of squares, of rows whose elements follow on each other.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::known_or;

use crate::rows;
use crate::rows::{LARGEST, LARGEST_OF_HALVES};

/// A kernel for norms of rows that follow on each other: `(types, the type of vectors, how many quads an invocation holds; with how many rows may be longer)`, and how many invocations a workgroup has, how many quads of vectors one holds, whether it reads these a quad ahead, with and without a residual, and what its compilers are told.
macro_rules! norm_rows {
    ($name:ident ($($element:ident),+; own; $($held:tt),+; $most:ident)) => {
        norm_rows! { @kernel $name [256] [8] [false] [false, true] [] [$($element),+] [T] [$($held),+] $most }
    };
    ($name:ident ($element:ident; own; $held:tt; $most:ident; $across:tt, $beside:tt, $ahead:tt, [$($residual:tt),+], $told:meta)) => {
        norm_rows! { @kernel $name [$across] [$beside] [$ahead] [$($residual),+] [, $told] [$element] [T] [$held] $most }
    };
    ($name:ident ($($element:ident),+; $vectors:ident; $($held:tt),+; $most:ident)) => {
        norm_rows! { @kernel $name [256] [8] [false] [false, true] [] [$($element),+] [$vectors] [$($held),+] $most }
    };
    (@kernel $name:ident [$across:tt] [$beside:tt] [$ahead:tt] [$($residual:tt),+] [$($attribute:tt)*] [$($element:ident),+] [$vectors:ident] [$($held:tt),+] $most:ident) => {
        /// A norm of rows that are held in registers, as [`rows::norm`] says.
        #[kernel(workgroup($across), instances(T = [$($element),+], HELD = [$($held),+], RESIDUAL = [$($residual),+]), specialise(BITS: usize = 15, in 0..=15) $($attribute)*)]
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
            let mut scratch = workgroup_array::<f32>(3 * $across);
            rows::norm::<T, $vectors, $across, HELD, $most, $beside, $ahead, RESIDUAL>(
                x, residual, bias, gamma, beta, y, sum, moments, &mut scratch, shape, known_or(BITS, bits), levels, extents, x_strides,
                v_strides, runs, numbers, centred, wants_sum, wants_moments,
            );
        }
    };
}

kernels! {
    norm_rows! norm_rows (f32; own; 4, 8, 16; LARGEST)
    norm_rows! norm_long_rows (f32; own; 32; LARGEST; 256, 16, false, [false, true], volatile(spirv(x, residual, bias, gamma, beta)))
    norm_rows! norm_long_scaled_rows (f32; own; 32; LARGEST; 256, 8, false, [false], volatile(spirv(x, residual, bias, gamma, beta)))
    norm_rows! norm_wide_rows (f32; own; 16; LARGEST; 512, 4, false, [false, true], targets(cuda))
    norm_rows! norm_widest_rows (f32; own; 8; LARGEST; 1024, 4, true, [false, true], targets(cuda))
    norm_rows! norm_half_rows (f16, bf16; own; 8; LARGEST_OF_HALVES)
    norm_rows! norm_half_rows_f32 (f16, bf16; f32; 8; LARGEST_OF_HALVES)
}
