//! Norms of rows of `f32` that only the largest workgroups hold, one of them each, which reads its row once; vectors lie as rows do.
//!
//! An invocation holds some quads in registers, and without a residual others in workgroup memory where no other invocation looks. The latter come by copies that go on by themselves, so that they want no
//! registers on their way, and a multiprocessor has room for the rows of two workgroups: one is on its way while the other is added up. What scales and shifts is read a quad ahead, for which no
//! registers but those of two quads are wanted.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{spread, standing, sum_of_team};

use crate::rows::{bounded_inverse_root, quad, total};

/// Elements of the longest rows.
pub const LONGEST: usize = 32_768;

/// A kernel: `(invocations, and the power of two that they are; quads that one holds in registers, and in workgroup memory; whether there is a residual, without which alone quads are kept there; what its compilers are told)`.
macro_rules! norm_widest {
    ($name:ident ($across:tt, $bits:tt; $held:tt, $kept:tt; $residual:tt; $($told:meta),+)) => {
        /// A norm of rows of up to [`LONGEST`] elements, as [`crate::rows::norm`] says.
        #[kernel(workgroup($across), requires(LargeWorkgroups), instances(RESIDUAL = [$residual]), $($told),+)]
        pub fn $name<const RESIDUAL: bool>(
            x: &[f32],
            residual: &[f32],
            bias: &[f32],
            gamma: &[f32],
            beta: &[f32],
            y: &mut [f32],
            sum: &mut [f32],
            moments: &mut [f32],
            shape: [usize; 3],
            levels: usize,
            extents: [usize; 4],
            x_strides: [usize; 5],
            v_strides: [usize; 5],
            numbers: [f32; 2],
            centred: bool,
            wants_sum: bool,
            wants_moments: bool,
        ) {
            // What invocations add up, twice; behind it what they keep.
            let mut shared = workgroup_array::<f32>((2 + 4 * $kept) * $across);
            let at = standing();
            let row = group_index();
            let quads = shape[1] / 4;
            let first = spread(row, levels, extents, x_strides) / 4;
            let column = spread(row, levels, extents, v_strides) / 4;
            let to = row * quads;

            for k in unroll(0..$kept) {
                let i = at + ($held + k) * $across;
                let from = select(i < quads, first + i, x.len() / 4);
                copy_async(&mut shared, (2 + 4 * k) * $across + 4 * local_index(), x, 4 * from, 4);
            }
            async_commit();
            let mut held = [Vec4::splat(0.0); $held];
            for k in unroll(0..$held) {
                held[k] = quad(x, first + at + k * $across, at + k * $across < quads);
            }
            if RESIDUAL {
                for k in unroll(0..$held) {
                    let inside = at + k * $across < quads;
                    let other = quad(residual, first + at + k * $across, inside);
                    held[k] = held[k] + other + quad(bias, column + at + k * $across, inside);
                    if wants_sum && inside {
                        sum.set_vec4(to + at + k * $across, held[k]);
                    }
                }
            }
            // What is divided by is known before what is divided has come.
            let (inverse_count, inverse_divisor) = (1.0 / shape[1] as f32, 1.0 / shape[2] as f32);
            let mut sums = 0.0;
            for k in unroll(0..$held) {
                sums += total(held[k]);
            }
            async_wait(0);
            for k in unroll(0..$kept) {
                let value = shared.vec4((2 + 4 * k) * $across / 4 + local_index());
                sums += select(at + ($held + k) * $across < quads, total(value), 0.0);
            }
            let mut mean = 0.0;
            if centred {
                mean = sum_of_team::<$across>(sums, $bits, 0, &mut shared) * inverse_count;
            }
            let mut squares = 0.0;
            for k in unroll(0..$held) {
                held[k] -= Vec4::splat(mean);
                squares += select(at + k * $across < quads, held[k].dot(held[k]), 0.0);
            }
            for k in unroll(0..$kept) {
                let value = shared.vec4((2 + 4 * k) * $across / 4 + local_index()) - Vec4::splat(mean);
                squares += select(at + ($held + k) * $across < quads, value.dot(value), 0.0);
            }
            squares = sum_of_team::<$across>(squares, $bits, 1, &mut shared);
            let factor = bounded_inverse_root(squares * inverse_divisor + numbers[0], numbers[1]);
            if wants_moments && at == 0 {
                moments[2 * row] = mean;
                moments[2 * row + 1] = factor;
            }
            let mut stretch = quad(gamma, column + at, at < quads);
            let mut shift = quad(beta, column + at, at < quads);
            for k in unroll(0..$held + $kept) {
                let i = at + k * $across;
                let (of_this, to_this) = (stretch, shift);
                if k + 1 < $held + $kept {
                    stretch = quad(gamma, column + i + $across, i + $across < quads);
                    shift = quad(beta, column + i + $across, i + $across < quads);
                }
                let factors = select(gamma.is_empty(), Vec4::splat(1.0), of_this) * factor;
                let value = if k < $held {
                    held[k]
                } else {
                    shared.vec4((2 + 4 * (k - $held)) * $across / 4 + local_index()) - Vec4::splat(mean)
                };
                if i < quads {
                    y.set_vec4(to + i, value * factors + to_this);
                }
            }
        }
    };
}

kernels! {
    norm_widest! norm_widest (1024, 10; 8, 0; false; targets(wgsl, spirv), volatile(spirv(x, gamma, beta)))
    norm_widest! norm_widest_summed (1024, 10; 8, 0; true; targets(cuda))
    norm_widest! norm_kept (512, 9; 4, 12; false; targets(cuda), resident(2))
}
