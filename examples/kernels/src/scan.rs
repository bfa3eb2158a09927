//! Running sums: each element of the result is the sum of the elements of the input up to it, or before it.
//!
//! **Idea.** A workgroup takes a *tile* of 4096 elements. It lacks the sum of all tiles before its own. In two levels, a first launch writes the sum of every tile, the same problem in
//! small gives the sums before them, and a last launch reads the input again and adds them.
//!
//! **Invariants.** Integers wrap. The order of additions depends on the length alone, so that floats round alike every time.
//!
//! **Cost.** 12 bytes an element, read twice and written once. Memory limits it.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{BufferSlice, BufferSliceMut, Device, Dispatch, Result};

use crate::expect_length;
use crate::workgroup::{four_sums_before, sum_all};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// Groups of four elements of an invocation, each in another quarter of the tile, so that neighbours read what lies together.
#[device]
const QUADS: usize = 4;
/// Elements of a tile.
#[device]
pub const TILE: usize = 4 * SIZE * QUADS;

/// The elements from `4 * quad` on; zeros past the end.
#[device]
fn quad_of<T: Number>(x: &[T], quad: usize) -> Vec4<T> {
    let mut held = x.vec4(quad);
    if quad == x.len() / 4 {
        // The last elements are no whole group.
        held = Vec4::new(x[4 * quad], x[4 * quad + 1], x[4 * quad + 2], T::lit(0.0));
    }
    held
}

/// Writes four elements, as far as there are so many.
#[device]
fn set_quad<T: Number>(y: &mut [T], quad: usize, value: Vec4<T>) {
    if quad < y.len() / 4 {
        y.set_vec4(quad, value);
    } else {
        for lane in unroll(0..3) {
            y[4 * quad + lane] = value[lane];
        }
    }
}

#[device]
fn quad_sum<T: Number>(quad: Vec4<T>) -> T {
    ((quad.x + quad.y) + quad.z) + quad.w
}

/// The sum of each tile.
#[kernel(workgroup(256), instances(T = [u32, f32]))]
pub fn scan_sums<T: Number>(x: &[T], sums: &mut [T]) {
    let mut scratch = workgroup_array::<T>(SIZE);
    let first = group_index() * SIZE * QUADS + local_index();
    let mut held = [Vec4::splat(T::lit(0.0)); QUADS];
    for k in unroll(0..QUADS) {
        held[k] = quad_of(x, first + k * SIZE);
    }
    let mut own = T::lit(0.0);
    for k in unroll(0..QUADS) {
        own += quad_sum(held[k]);
    }
    let sum = sum_all::<SIZE, T>(own, 0, &mut scratch);
    if local_index() == 0 {
        sums[group_index()] = sum;
    }
}

/// The running sums of each tile, from the sum `before` it on.
#[kernel(workgroup(256), instances(T = [u32, f32], EXCLUSIVE = [false, true]))]
pub fn scan_tiles<T: Number, const EXCLUSIVE: bool>(x: &[T], before: &[T], y: &mut [T]) {
    let mut scratch = workgroup_array::<T>(4 * SIZE);
    let first = group_index() * SIZE * QUADS + local_index();
    let mut held = [Vec4::splat(T::lit(0.0)); QUADS];
    for k in unroll(0..QUADS) {
        held[k] = quad_of(x, first + k * SIZE);
    }
    // A lane for each quarter of the tile.
    let own = Vec4::new(quad_sum(held[0]), quad_sum(held[1]), quad_sum(held[2]), quad_sum(held[3]));
    let mut all = own;
    let within = four_sums_before::<SIZE, T>(own, &mut all, &mut scratch);
    let mut start = before[group_index()];
    for k in unroll(0..QUADS) {
        let a = start + within[k];
        let b = a + held[k].x;
        let c = b + held[k].y;
        let d = c + held[k].z;
        if EXCLUSIVE {
            set_quad(y, first + k * SIZE, Vec4::new(a, b, c, d));
        } else {
            set_quad(y, first + k * SIZE, Vec4::new(b, c, d, d + held[k].w));
        }
        start += all[k];
    }
}

fn two_levels<T: Number, const EXCLUSIVE: bool>(
    device: &Device,
    x: BufferSlice<'_, T>,
    y: BufferSliceMut<'_, T>,
    launches: &mut Vec<Dispatch>,
) -> Result<()> {
    let tiles = x.len().div_ceil(TILE);
    // One tile has nothing before it: past the end of nothing there is 0.
    let mut before = device.uninit(if tiles > 1 { tiles } else { 0 })?;
    if tiles > 1 {
        let mut sums = device.uninit(tiles)?;
        launches.push(scan_sums::<T>(x, &mut sums)?.groups(tiles));
        two_levels::<T, true>(device, (&sums).into(), (&mut before).into(), launches)?;
    }
    launches.push(scan_tiles::<T, EXCLUSIVE>(x, &before, y)?.groups(tiles));
    Ok(())
}

/// `y[i]` = the sum of `x[0..=i]`, for `u32` and `f32`.
///
/// # Errors
/// The slices have not one length, the elements have another type, or a buffer does not fit the device.
pub fn inclusive<'a, T: Number>(
    device: &Device,
    x: impl ReadBuffer<'a, T>,
    y: impl WriteBuffer<'a, T>,
) -> Result<Vec<Dispatch>> {
    let (x, y) = (x.slice(), y.slice_mut());
    expect_length("inclusive", "y", y.len(), x.len())?;
    let mut launches = Vec::new();
    two_levels::<T, false>(device, x, y, &mut launches)?;
    Ok(launches)
}

/// `y[i]` = the sum of `x[0..i]`, for `u32` and `f32`.
///
/// # Errors
/// As [`inclusive`].
pub fn exclusive<'a, T: Number>(
    device: &Device,
    x: impl ReadBuffer<'a, T>,
    y: impl WriteBuffer<'a, T>,
) -> Result<Vec<Dispatch>> {
    let (x, y) = (x.slice(), y.slice_mut());
    expect_length("exclusive", "y", y.len(), x.len())?;
    let mut launches = Vec::new();
    two_levels::<T, true>(device, x, y, &mut launches)?;
    Ok(launches)
}
