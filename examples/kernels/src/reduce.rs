//! A reduction that is generic over its operator: the sum, the largest element, and the least element with its place are a line each, given to the same two
//! helpers.
//!
//! **Idea.** A fixed number of workgroups walk over the input, each invocation combining what it meets with a value of its own; a tree in workgroup
//! memory makes one value of them. A second launch, of one workgroup, does the same with the values of the workgroups.
//!
//! **Invariants.** The operator is associative and commutative, and its neutral value changes nothing. Which elements an invocation meets depends on the
//! input's length alone, so that the same input gives the same bits every time, also of a sum that rounds.
//!
//! **Cost.** 4 bytes and one operation an element; the second launch reads 4 KiB. Memory limits it: an invocation asks for 64 bytes before it uses the first.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Device, Dispatch, Result};

use crate::expect_length;

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// Groups of four elements that an invocation reads at once.
#[device]
const QUADS: usize = 4;
/// The most workgroups: eight for each multiprocessor of a large GPU.
const MOST_GROUPS: usize = 1056;

/// Combines the elements of `x` that this workgroup is to look at, each made a value by `lift`; invocation 0 has the result.
#[device]
fn reduce<A: Element, L: Fn(f32, usize) -> A, C: Fn(A, A) -> A + Copy>(
    x: &[f32],
    neutral: A,
    scratch: &mut [A],
    lift: L,
    combine: C,
) -> A {
    let mut mine = neutral;
    let quads = x.len() / 4;
    let stride = group_count() * SIZE;
    for first in (global_index()..quads).step_by(QUADS * stride) {
        let mut held = [Vec4::splat(0.0); QUADS];
        for k in unroll(0..QUADS) {
            held[k] = x.vec4(first + k * stride);
        }
        for k in unroll(0..QUADS) {
            let quad = first + k * stride;
            if quad < quads {
                for lane in unroll(0..4) {
                    mine = combine(mine, lift(held[k][lane], 4 * quad + lane));
                }
            }
        }
    }
    // At most three elements are no whole group.
    let last = 4 * quads + global_index();
    if last < x.len() {
        mine = combine(mine, lift(x[last], last));
    }
    combine_all(mine, scratch, combine)
}

/// Combines the values of the workgroup's invocations; invocation 0 has the result.
#[device]
fn combine_all<A: Element, C: Fn(A, A) -> A>(mine: A, scratch: &mut [A], combine: C) -> A {
    let lane = local_index();
    scratch[lane] = mine;
    barrier();
    let mut half = SIZE / 2;
    while half > 0 {
        if lane < half {
            scratch[lane] = combine(scratch[lane], scratch[lane + half]);
        }
        barrier();
        half /= 2;
    }
    scratch[0]
}

/// For each workgroup, the sum of its elements.
#[kernel(workgroup(256))]
pub fn reduce_sum(x: &[f32], sums: &mut [f32]) {
    let mut scratch = workgroup_array::<f32>(SIZE);
    let sum = reduce(x, 0.0, &mut scratch, |x, _| x, |a, b| a + b);
    if local_index() == 0 {
        sums[group_index()] = sum;
    }
}

/// For each workgroup, the largest of its elements.
#[kernel(workgroup(256))]
pub fn reduce_max(x: &[f32], largest: &mut [f32]) {
    let mut scratch = workgroup_array::<f32>(SIZE);
    let found = reduce(x, f32::NEG_INFINITY, &mut scratch, |x, _| x, max);
    if local_index() == 0 {
        largest[group_index()] = found;
    }
}

/// An element and its place.
#[device(methods)]
#[derive(Debug, PartialEq)]
pub struct Placed {
    /// The element; a NaN counts as infinity.
    pub value: f32,
    /// Its place; `u32::MAX` where there is no element.
    pub index: u32,
}

#[device]
impl Placed {
    /// What there is where there is no element.
    pub const NONE: Self = Self { value: f32::INFINITY, index: u32::MAX };

    /// The element of `x` at a place.
    pub fn new(x: f32, index: usize) -> Self {
        Self { value: select(is_nan(x), f32::INFINITY, x), index: index as u32 }
    }

    /// The smaller, of equals the one before.
    pub fn least(self, other: Self) -> Self {
        if other.value < self.value || (other.value == self.value && other.index < self.index) { other } else { self }
    }
}

/// For each workgroup, the least of its elements.
#[kernel(workgroup(256))]
pub fn reduce_argmin(x: &[f32], least: &mut [Placed]) {
    let mut scratch = workgroup_array::<Placed>(SIZE);
    let found = reduce(x, Placed::NONE, &mut scratch, |x, i| Placed::new(x, i), |a, b| a.least(b));
    if local_index() == 0 {
        least[group_index()] = found;
    }
}

/// The least of what the workgroups found.
#[kernel(workgroup(256))]
pub fn reduce_argmin_parts(parts: &[Placed], least: &mut [Placed]) {
    let mut scratch = workgroup_array::<Placed>(SIZE);
    let mut mine = Placed::NONE;
    for i in (local_index()..parts.len()).step_by(SIZE) {
        mine = mine.least(parts[i]);
    }
    let found = combine_all(mine, &mut scratch, |a, b| a.least(b));
    if local_index() == 0 {
        least[0] = found;
    }
}

/// Workgroups for so many elements: each invocation has something to do, and there is one for no elements.
fn groups(length: usize) -> usize {
    length.div_ceil(SIZE * QUADS * 4).clamp(1, MOST_GROUPS)
}

/// `total[0]` = the sum of `x`; of nothing 0.
///
/// # Errors
/// `total` has not one element, or a buffer does not fit the device.
pub fn sum<'a>(
    device: &Device,
    x: impl ReadBuffer<'a, f32>,
    total: impl WriteBuffer<'a, f32>,
) -> Result<Vec<Dispatch>> {
    let (x, total) = (x.slice(), total.slice_mut());
    expect_length("sum", "total", total.len(), 1)?;
    let groups = groups(x.len());
    let mut parts = device.uninit(groups)?;
    Ok(vec![reduce_sum(x, &mut parts)?.groups(groups), reduce_sum(&parts, total)?.groups(1)])
}

/// `largest[0]` = the largest element of `x` that is no NaN; of nothing minus infinity.
///
/// # Errors
/// `largest` has not one element, or a buffer does not fit the device.
pub fn maximum<'a>(
    device: &Device,
    x: impl ReadBuffer<'a, f32>,
    largest: impl WriteBuffer<'a, f32>,
) -> Result<Vec<Dispatch>> {
    let (x, largest) = (x.slice(), largest.slice_mut());
    expect_length("maximum", "largest", largest.len(), 1)?;
    let groups = groups(x.len());
    let mut parts = device.uninit(groups)?;
    Ok(vec![reduce_max(x, &mut parts)?.groups(groups), reduce_max(&parts, largest)?.groups(1)])
}

/// `least[0]` = the least element of `x` with its place, of equals the first; of nothing [`Placed::NONE`].
///
/// # Errors
/// `least` has not one element, or a buffer does not fit the device.
pub fn argmin<'a>(
    device: &Device,
    x: impl ReadBuffer<'a, f32>,
    least: impl WriteBuffer<'a, Placed>,
) -> Result<Vec<Dispatch>> {
    let (x, least) = (x.slice(), least.slice_mut());
    expect_length("argmin", "least", least.len(), 1)?;
    let groups = groups(x.len());
    let mut parts = device.uninit(groups)?;
    Ok(vec![reduce_argmin(x, &mut parts)?.groups(groups), reduce_argmin_parts(&parts, least)?.groups(1)])
}
