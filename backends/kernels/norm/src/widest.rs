//! Norms that scale and do no more, of rows of `f32` that only the largest workgroups hold, one of them each, which reads its row once. On CUDA [`crate::kept`] is faster where the mean is taken off, and [`crate::rows`] where it is not.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{spread, standing, sum_of_team};

use crate::rows::{HELD_BY_WIDEST, WIDEST, bounded_inverse_root, quad, total};

/// [`WIDEST`] as a power of two.
#[device]
const BITS: usize = 10;
const _: () = assert!(1 << BITS == WIDEST, "a team is the workgroup");

/// A norm of rows of up to `4 * HELD_BY_WIDEST * WIDEST` elements, as [`crate::rows::norm`] says, without residual and `beta`; `gamma`, if it is there, lies as the row does, and is read a quad ahead, for which no registers but those of two
/// quads are wanted.
///
/// * `shape`: rows, elements of each, and the divisor.
/// * `levels`, `extents`: over what rows are spread, with `x_strides` in `x` and `v_strides` in `gamma`; in `y` rows follow on each other.
/// * `numbers`: epsilon and the bound of the factor.
/// * `centred`, `wants_moments`: whether the mean is taken off; whether mean and factor go to `moments`.
#[kernel(workgroup(WIDEST), requires(LargeWorkgroups), targets(wgsl, spirv), volatile(spirv(x, gamma)))]
pub fn norm_widest(
    x: &[f32],
    gamma: &[f32],
    y: &mut [f32],
    moments: &mut [f32],
    shape: [usize; 3],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 5],
    v_strides: [usize; 5],
    numbers: [f32; 2],
    centred: bool,
    wants_moments: bool,
) {
    let mut scratch = workgroup_array::<f32>(2 * WIDEST);
    let at = standing();
    let row = group_index();
    let quads = shape[1] / 4;
    let first = spread(row, levels, extents, x_strides) / 4;
    let column = spread(row, levels, extents, v_strides) / 4;
    let to = row * quads;

    let mut held = [Vec4::splat(0.0); HELD_BY_WIDEST];
    for k in unroll(0..HELD_BY_WIDEST) {
        held[k] = quad(x, first + at + k * WIDEST, at + k * WIDEST < quads);
    }
    // What is divided by is known before what is divided has come.
    let (inverse_count, inverse_divisor) = (1.0 / shape[1] as f32, 1.0 / shape[2] as f32);
    let mut mean = 0.0;
    if centred {
        let mut sums = 0.0;
        for k in unroll(0..HELD_BY_WIDEST) {
            sums += total(held[k]);
        }
        mean = sum_of_team::<WIDEST>(sums, BITS, 0, &mut scratch) * inverse_count;
    }
    let mut squares = 0.0;
    for k in unroll(0..HELD_BY_WIDEST) {
        held[k] -= Vec4::splat(mean);
        squares += select(at + k * WIDEST < quads, held[k].dot(held[k]), 0.0);
    }
    squares = sum_of_team::<WIDEST>(squares, BITS, WIDEST, &mut scratch);
    let factor = bounded_inverse_root(squares * inverse_divisor + numbers[0], numbers[1]);
    if wants_moments && at == 0 {
        moments[2 * row] = mean;
        moments[2 * row + 1] = factor;
    }
    let mut stretch = quad(gamma, column + at, at < quads);
    for k in unroll(0..HELD_BY_WIDEST) {
        let i = at + k * WIDEST;
        let of_this = stretch;
        if k + 1 < HELD_BY_WIDEST {
            stretch = quad(gamma, column + i + WIDEST, i + WIDEST < quads);
        }
        let factors = select(gamma.is_empty(), Vec4::splat(1.0), of_this) * factor;
        if i < quads {
            y.set_vec4(to + i, held[k] * factors);
        }
    }
}

/// Every kernel of this file.
pub fn kernels() -> Vec<&'static Kernel> {
    norm_widest::KERNELS.to_vec()
}
