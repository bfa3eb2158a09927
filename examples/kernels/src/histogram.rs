//! A histogram: how many elements lie in each of up to 1024 equal bins.
//!
//! **Idea.** A workgroup counts its elements in workgroup memory, whose atomics are many times faster than those of a buffer, and adds its counts to the buffer once,
//! at the end. It has four copies of the bins, one for every fourth invocation: where neighbouring elements fall into the same bin, as in
//! most pictures and signals, atomics on one address would wait for each other.
//!
//! **Invariants.** An element is in bin `floor((x - low) * scale)`, both operations rounded to the nearest; outside of the bins, and NaN, it is not counted.
//! Counts are integers, so their order does not matter. The four copies of 1024 bins are the 16 KiB that every device has.
//!
//! **Cost.** 4 bytes an element. Atomics on workgroup memory limit it where many elements are equal, memory otherwise.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

use crate::refused;

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// The most bins.
#[device]
pub const MOST_BINS: usize = 1024;
/// Copies of the bins in a workgroup.
#[device]
const COPIES: usize = 4;
/// Groups of four elements that an invocation reads at once.
#[device]
const QUADS: usize = 4;
/// The most workgroups: eight for each multiprocessor of a large GPU.
const MOST_GROUPS: usize = 1056;

/// Counts an element, in the invocation's copy of the bins.
#[device]
fn count(x: f32, own: &[Atomic<u32>], bins: usize, low: f32, scale: f32) {
    let place = floor((x - low) * scale);
    if place >= 0.0 && place < bins as f32 {
        own[place as usize * COPIES + local_index() % COPIES].add(1);
    }
}

/// Every count is 0.
#[kernel(workgroup(256))]
pub fn histogram_clear(counts: &mut [u32]) {
    let bin = global_index();
    if bin < counts.len() {
        counts[bin] = 0;
    }
}

/// Adds the counts of each workgroup's elements.
#[kernel(workgroup(256))]
pub fn histogram_count(x: &[f32], counts: &[Atomic<u32>], low: f32, scale: f32) {
    let own = workgroup_array::<Atomic<u32>>(MOST_BINS * COPIES);
    let bins = min(counts.len(), MOST_BINS);
    for at in (local_index()..bins * COPIES).step_by(SIZE) {
        own[at].store(0);
    }
    barrier();
    let quads = x.len() / 4;
    let stride = group_count() * SIZE;
    for first in (global_index()..quads).step_by(QUADS * stride) {
        let mut held = [Vec4::splat(0.0); QUADS];
        for k in unroll(0..QUADS) {
            held[k] = x.vec4(first + k * stride);
        }
        for k in unroll(0..QUADS) {
            if first + k * stride < quads {
                for lane in unroll(0..4) {
                    count(held[k][lane], &own, bins, low, scale);
                }
            }
        }
    }
    // At most three elements are no whole group.
    let last = 4 * quads + global_index();
    if last < x.len() {
        count(x[last], &own, bins, low, scale);
    }
    barrier();
    for bin in (local_index()..bins).step_by(SIZE) {
        let mut total = 0u32;
        for copy in unroll(0..COPIES) {
            total += own[bin * COPIES + copy].load();
        }
        if total > 0 {
            counts[bin].add(total);
        }
    }
}

/// `counts` = how many elements of `x` lie in each of `counts.len()` equal bins from `low` up to, and without, `high`.
///
/// # Errors
/// There are no bins or more than [`MOST_BINS`], `low` is not below `high`, or a buffer does not fit the device.
pub fn histogram<'a>(
    x: impl ReadBuffer<'a, f32>,
    counts: impl WriteBuffer<'a, u32>,
    low: f32,
    high: f32,
) -> Result<Vec<Dispatch>> {
    let (x, mut counts) = (x.slice(), counts.slice_mut());
    let bins = counts.len();
    if bins == 0 || bins > MOST_BINS {
        return Err(refused("histogram", "counts", format!("{bins} bins given, 1 to {MOST_BINS} expected")));
    }
    let scale = bins as f32 / (high - low);
    if !(scale > 0.0 && scale.is_finite() && low.is_finite()) {
        return Err(refused("histogram", "high", format!("no bins lie from {low} to {high}")));
    }
    let groups = x.len().div_ceil(SIZE * QUADS * 4).clamp(1, MOST_GROUPS);
    let clear = histogram_clear(counts.reborrow())?.over(bins);
    Ok(vec![clear, histogram_count(x, counts, low, scale)?.groups(groups)])
}
