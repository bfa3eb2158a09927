//! Norms of long rows of `f32` on CUDA, each by a large workgroup that reads it once.
//!
//! An invocation holds some quads in registers, and the others in workgroup memory where no other invocation looks. The latter come by copies that go on by themselves and want no registers on their way, so that a multiprocessor
//! has room for the rows of two workgroups: one is on its way while the other is added up. What two workgroups leave of the memory that it has for both is its cache, through which what scales and shifts is read again for every row: it
//! is halved by 4 KiB more in each, and the norm takes 6 % longer.

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{spread, sum_of_team};

use crate::rows::{bounded_inverse_root, quad, total};

/// Invocations of a workgroup.
#[device]
const ACROSS: usize = 512;
/// The same as a power of two.
#[device]
const BITS: usize = 9;
const _: () = assert!(1 << BITS == ACROSS, "a team is the workgroup");
/// Quads that an invocation holds in registers.
#[device]
const HELD: usize = 4;
/// Quads that it has in workgroup memory.
#[device]
const KEPT: usize = 12;
/// Elements of the longest rows.
pub const LONGEST: usize = 4 * (HELD + KEPT) * ACROSS;
/// Subgroups, whose sums meet in workgroup memory.
#[device]
const SUBGROUPS: usize = ACROSS / 32;
/// Where in workgroup memory quads begin: behind two sums of each subgroup.
#[device]
const QUADS: usize = 2 * SUBGROUPS;

/// A norm of rows of up to [`LONGEST`] elements, as [`crate::rows::norm`] says, without residual; `gamma` and `beta`, if they are there, lie as the row does, and are read a quad ahead, for which no registers but those of two quads are
/// wanted.
///
/// * `shape`: rows, elements of each, and the divisor.
/// * `levels`, `extents`: over what rows are spread, with `x_strides` in `x` and `v_strides` in `gamma` and `beta`; in `y` rows follow on each other.
/// * `numbers`: epsilon and the bound of the factor.
/// * `centred`, `wants_moments`: whether the mean is taken off; whether mean and factor go to `moments`.
#[kernel(workgroup(ACROSS), subgroup(32), requires(LargeWorkgroups), targets(cuda), resident(2))]
pub fn norm_kept(
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
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
    let mut shared = workgroup_array::<f32>(QUADS + 4 * KEPT * ACROSS);
    let at = local_index();
    let row = group_index();
    let quads = shape[1] / 4;
    let first = spread(row, levels, extents, x_strides) / 4;
    let column = spread(row, levels, extents, v_strides) / 4;
    let to = row * quads;

    let mut held = [Vec4::splat(0.0); HELD];
    for k in unroll(0..HELD) {
        held[k] = quad(x, first + at + k * ACROSS, at + k * ACROSS < quads);
    }
    for k in unroll(0..KEPT) {
        let i = at + (HELD + k) * ACROSS;
        let from = select(i < quads, first + i, x.len() / 4);
        copy_async(&mut shared, QUADS + 4 * k * ACROSS + 4 * at, x, 4 * from, 4);
    }
    async_commit();
    // What is divided by is known before what is divided has come.
    let (inverse_count, inverse_divisor) = (1.0 / shape[1] as f32, 1.0 / shape[2] as f32);
    let mut sums = 0.0;
    for k in unroll(0..HELD) {
        sums += total(held[k]);
    }
    async_wait(0);
    for k in unroll(0..KEPT) {
        let value = shared.vec4(QUADS / 4 + k * ACROSS + at);
        sums += select(at + (HELD + k) * ACROSS < quads, total(value), 0.0);
    }
    let mut mean = 0.0;
    if centred {
        mean = sum_of_team::<ACROSS>(sums, BITS, 0, &mut shared) * inverse_count;
    }
    let mut squares = 0.0;
    for k in unroll(0..HELD) {
        held[k] -= Vec4::splat(mean);
        squares += select(at + k * ACROSS < quads, held[k].dot(held[k]), 0.0);
    }
    for k in unroll(0..KEPT) {
        let value = shared.vec4(QUADS / 4 + k * ACROSS + at) - Vec4::splat(mean);
        squares += select(at + (HELD + k) * ACROSS < quads, value.dot(value), 0.0);
    }
    squares = sum_of_team::<ACROSS>(squares, BITS, SUBGROUPS, &mut shared);
    let factor = bounded_inverse_root(squares * inverse_divisor + numbers[0], numbers[1]);
    if wants_moments && at == 0 {
        moments[2 * row] = mean;
        moments[2 * row + 1] = factor;
    }
    let mut stretch = quad(gamma, column + at, at < quads);
    let mut shift = quad(beta, column + at, at < quads);
    for k in unroll(0..HELD + KEPT) {
        let i = at + k * ACROSS;
        let (of_this, to_this) = (stretch, shift);
        if k + 1 < HELD + KEPT {
            stretch = quad(gamma, column + i + ACROSS, i + ACROSS < quads);
            shift = quad(beta, column + i + ACROSS, i + ACROSS < quads);
        }
        let factors = select(gamma.is_empty(), Vec4::splat(1.0), of_this) * factor;
        let value =
            if k < HELD { held[k] } else { shared.vec4(QUADS / 4 + (k - HELD) * ACROSS + at) - Vec4::splat(mean) };
        if i < quads {
            y.set_vec4(to + i, value * factors + to_this);
        }
    }
}

/// Every kernel of this file.
pub fn kernels() -> Vec<&'static Kernel> {
    norm_kept::KERNELS.to_vec()
}
