//! Norms of rows of `f32` that only the largest workgroups hold, one of them each, which reads its row once; vectors lie as rows do.
//!
//! An invocation holds `HELD` quads in registers and `KEPT` in workgroup memory, each where no other invocation looks. The latter come by copies that go on by themselves, so that they want no registers on
//! their way, and a multiprocessor has room for the rows of two workgroups: one is on its way while the other is added up. What scales and shifts is read a quad ahead, for which no registers but
//! those of two quads are wanted.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{spread, standing, sum_of_team};

use crate::rows::{bounded_inverse_root, quad, total};

/// Elements of the longest rows.
pub const LONGEST: usize = 32_768;
/// Invocations of workgroups that hold rows in registers alone.
#[device]
pub const WIDEST: usize = 1024;
/// Invocations of workgroups that keep a part in workgroup memory.
#[device]
pub const KEEPING: usize = 256;

/// A kernel: `(invocations, and the power of two that they are; quads that one holds in registers, and in workgroup memory; what its compilers are told)`.
macro_rules! norm_widest {
    ($name:ident ($across:tt, $bits:tt; $held:tt, $kept:tt; $($told:meta),+)) => {
        /// A norm of rows of up to [`LONGEST`] elements, as [`crate::rows::norm`] says.
        #[kernel(workgroup($across), requires(LargeWorkgroups), instances(RESIDUAL = [false, true]), $($told),+)]
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
                copy_async(&mut shared, (2 + 4 * k) * $across + 4 * at, x, select(i < quads, 4 * (first + i), x.len()), 4);
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
            let mut sums = 0.0;
            for k in unroll(0..$held) {
                sums += total(held[k]);
            }
            async_wait(0);
            for k in unroll(0..$kept) {
                let place = (2 + 4 * k) * $across / 4 + at;
                let mut value = shared.vec4(place);
                if RESIDUAL {
                    let i = at + ($held + k) * $across;
                    value = value + quad(residual, first + i, i < quads) + quad(bias, column + i, i < quads);
                    shared.set_vec4(place, value);
                    if wants_sum && i < quads {
                        sum.set_vec4(to + i, value);
                    }
                }
                sums += total(value);
            }
            let mut mean = 0.0;
            if centred {
                mean = sum_of_team::<$across>(sums, $bits, 0, &mut shared) / shape[1] as f32;
            }
            let mut squares = 0.0;
            for k in unroll(0..$held) {
                held[k] -= Vec4::splat(mean);
                squares += select(at + k * $across < quads, held[k].dot(held[k]), 0.0);
            }
            for k in unroll(0..$kept) {
                let value = shared.vec4((2 + 4 * k) * $across / 4 + at) - Vec4::splat(mean);
                squares += select(at + ($held + k) * $across < quads, value.dot(value), 0.0);
            }
            squares = sum_of_team::<$across>(squares, $bits, 1, &mut shared);
            let factor = bounded_inverse_root(squares / shape[2] as f32 + numbers[0], numbers[1]);
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
                    shared.vec4((2 + 4 * (k - $held)) * $across / 4 + at) - Vec4::splat(mean)
                };
                if i < quads {
                    y.set_vec4(to + i, value * factors + to_this);
                }
            }
        }
    };
}

kernels! {
    norm_widest! norm_widest (1024, 10; 8, 0; targets(wgsl, spirv), volatile(spirv(x, residual, bias, gamma, beta)))
    norm_widest! norm_kept (256, 8; 8, 24; targets(cuda), resident(2))
}
