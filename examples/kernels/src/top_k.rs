//! The k largest elements of each row, in order and with their places, by bitonic sorting.
//!
//! **Idea.** A workgroup walks along a row with the k best elements so far in workgroup memory, in order. An element that comes before the last of them is a *candidate*
//! and joins a queue behind them; when the queue is full, all of it is sorted with the best and emptied. Few elements of a row are candidates (about k ln(n / k) of n
//! in no order), so that sorts are rare and the row is read once, at the speed of memory.
//!
//! **Invariants.** The order is that of [`f32::total_cmp`], the largest first, and of equal elements the one with the lower place first: no two candidates are equal, so the result
//! depends on nothing that a workgroup's invocations do at their own times. A candidate for which the queue has no room waits in its invocation.
//!
//! **Cost.** 4 bytes an element, and 55 steps of 512 comparisons for each sort: two or three a row. Memory limits long rows, barriers short ones. A row has one
//! workgroup, so few rows leave a device idle.

use trefoil::dsl::launch::{ReadBuffer, WriteBuffer};
use trefoil::prelude::*;
use trefoil::{Dispatch, Result};

use crate::{expect_length, refused};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// The best and the queue together, a power of two.
#[device]
const HELD: usize = 1024;
/// Elements that an invocation reads at once.
#[device]
const AT_ONCE: usize = 4;
/// The largest k.
pub const MOST: usize = 128;

/// An element, by its place in the order and in the row.
#[device(methods)]
#[derive(Debug, PartialEq)]
struct Candidate {
    rank: u32,
    column: u32,
}

#[device]
impl Candidate {
    /// Behind every element.
    const NONE: Self = Self { rank: 0, column: u32::MAX };

    /// Ranks are ordered as elements are: of negative ones all bits turn, of others the sign.
    fn new(x: f32, column: usize) -> Self {
        let bits = x.to_bits();
        Self { rank: select(bits >> 31 == 1, !bits, bits | 0x8000_0000), column: column as u32 }
    }

    fn before(self, other: Self) -> bool {
        self.rank > other.rank || (self.rank == other.rank && self.column < other.column)
    }
}

/// Puts all in order; begins and ends with a barrier.
#[device]
fn sort(held: &mut [Candidate]) {
    let mut run = 2;
    while run <= HELD {
        // Runs of half the length are in order, every other one backwards: together they rise and fall, and exchanges over distances that halve put them in order.
        let mut distance = run / 2;
        while distance > 0 {
            barrier();
            for part in unroll(0..HELD / 2 / SIZE) {
                let pair = local_index() + part * SIZE;
                let low = 2 * pair - (pair & (distance - 1));
                let first = held[low];
                let second = held[low + distance];
                if second.before(first) == ((low & run) == 0) {
                    held[low] = second;
                    held[low + distance] = first;
                }
            }
            distance /= 2;
        }
        run *= 2;
    }
    barrier();
}

/// The best of the row of each workgroup.
#[kernel(workgroup(256))]
pub fn top_k_rows(x: &[f32], values: &mut [f32], places: &mut [u32], columns: usize, k: usize) {
    let mut held = workgroup_array::<Candidate>(HELD);
    let queued = workgroup_array::<Atomic<u32>>(1);
    let mut agreed = workgroup_array::<u32>(1);
    let lane = local_index();
    let first = group_index() * columns;
    if lane < k {
        held[lane] = Candidate::NONE;
    }
    if lane == 0 {
        queued[0].store(0);
    }
    barrier();
    let mut last = Candidate::NONE;
    let mut ahead = [0.0; AT_ONCE];
    for part in unroll(0..AT_ONCE) {
        ahead[part] = x[first + part * SIZE + lane];
    }
    for start in (0..columns).step_by(SIZE * AT_ONCE) {
        let mut mine = [Candidate::NONE; AT_ONCE];
        for part in unroll(0..AT_ONCE) {
            let column = start + part * SIZE + lane;
            let candidate = Candidate::new(ahead[part], column);
            // What the next round looks at is read now, and not waited for.
            ahead[part] = x[first + column + SIZE * AT_ONCE];
            if column < columns && candidate.before(last) {
                mine[part] = candidate;
            }
        }
        loop {
            for part in unroll(0..AT_ONCE) {
                if mine[part].before(last) {
                    let place = k + queued[0].add(1) as usize;
                    if place < HELD {
                        held[place] = mine[part];
                        mine[part] = Candidate::NONE;
                    }
                }
            }
            barrier();
            if lane == 0 {
                agreed[0] = queued[0].load();
            }
            let count = workgroup_uniform_load(&agreed[0]) as usize;
            if k + count <= HELD {
                break;
            }
            sort(&mut held);
            last = held[k - 1];
            if lane == 0 {
                queued[0].store(0);
            }
            barrier();
        }
    }
    for at in (k + agreed[0] as usize + lane..HELD).step_by(SIZE) {
        held[at] = Candidate::NONE;
    }
    sort(&mut held);
    if lane < k {
        let column = held[lane].column;
        values[group_index() * k + lane] = x[first + column as usize];
        places[group_index() * k + lane] = column;
    }
}

/// For each row of `x`, the `k` largest elements and their places in the row, in order; a row of `values` and `places` has `k` elements.
///
/// # Errors
/// `k` is 0, more than [`MOST`] or more than the columns; a buffer has another size; or a buffer does not fit the device.
pub fn top_k<'a>(
    x: impl ReadBuffer<'a, f32>,
    values: impl WriteBuffer<'a, f32>,
    places: impl WriteBuffer<'a, u32>,
    [rows, columns]: [usize; 2],
    k: usize,
) -> Result<Vec<Dispatch>> {
    let (x, values, places) = (x.slice(), values.slice_mut(), places.slice_mut());
    let most = MOST.min(columns);
    if k == 0 || k > most {
        return Err(refused("top_k", "k", format!("{k} given, 1 to {most} expected")));
    }
    let size = rows.checked_mul(columns).ok_or_else(|| refused("top_k", "size", "it has too many elements"))?;
    expect_length("top_k", "x", x.len(), size)?;
    expect_length("top_k", "values", values.len(), rows * k)?;
    expect_length("top_k", "places", places.len(), rows * k)?;
    Ok(vec![top_k_rows(x, values, places, columns, k)?.groups(rows)])
}
