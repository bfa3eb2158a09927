//! The best `k` of long rows: each element is read once, and few are sorted.
//!
//! A workgroup walks along a row, or a piece of it, with the `k` best elements so far in workgroup memory, in order. An element that comes before the last of them is a *candidate* and joins a queue behind
//! them; when the queue is full, all of it is sorted with the best and emptied. Few elements of a row are candidates (about k ln(n / k) of n in no order), so that sorts are rare.
//!
//! Looking for candidates and putting them into the queue are apart: for some rounds an invocation only reads, and notes in the bits of a word what may be one. Then it reads these again, from a cache, and puts them into the queue; those for which there is no
//! room stay noted. So the loop that every element goes through has no barrier, no atomic and no branch.
//!
//! No two elements are equal, since of equal ones the index decides: the result depends on nothing that a workgroup's invocations do at their own times.
//!
//! A bound comes first: each invocation's best of eight elements, of which the `k`th is no better than the `k`th of all. So few of the first elements are candidates, and a few thousand elements later a sort gives a better one.
//!
//! **Cost.** The row's bytes once, 32 of them an invocation at once; and three sorts: 36 steps for the bound, and twice 45 of 512 elements, for 50 of 32,000.

use trefoil_dsl::prelude::*;

use super::order::{Ranked, rank_of, sort_runs};

/// Invocations of a workgroup.
#[device]
pub const SIZE: usize = 256;
/// Elements of an invocation in a round.
#[device]
pub const EACH: usize = 8;
/// Rounds between two looks at the queue; each element of an invocation in them has a bit of a word.
#[device]
const AT_ONCE: usize = 4;
/// Elements that a workgroup holds, of which at least half are the queue: for small `k`, and for large.
pub const HELD: [usize; 2] = [512, 1024];

/// Where the element of an invocation that is `part` of its round stands in the piece.
#[device]
fn column_of(round: usize, part: usize, quads: bool) -> usize {
    let lane = local_index();
    let first = round * (SIZE * EACH);
    if quads { first + (part / 4 * SIZE + lane) * 4 + part % 4 } else { first + part * SIZE + lane }
}

/// The words of a round, all of them asked for before the first is used; zeros past the end of `x`.
#[device]
fn words_of<T: Element, W: Fn(T) -> u32>(
    x: &[T],
    first: usize,
    step: usize,
    round: usize,
    quads: bool,
    word: W,
) -> [u32; EACH] {
    let mut words = [0u32; EACH];
    if quads {
        for half in unroll(0..EACH / 4) {
            let quad = x.vec4((first + column_of(round, 4 * half, true)) / 4);
            for lane in unroll(0..4) {
                words[4 * half + lane] = word(quad[lane]);
            }
        }
    } else {
        for part in unroll(0..EACH) {
            words[part] = word(x[first + column_of(round, part, false) * step]);
        }
    }
    words
}

/// The best of each piece of each row, in order.
///
/// * `shape`: `n`, `k`, the elements of a piece, and pieces of a row. A piece with fewer than `k` elements has places of `u32::MAX` behind them.
/// * Rows are spread over `levels` extents, the last first, with strides of elements and of results; `steps` are those along a row.
/// * `quads`: whether rows and pieces begin at multiples of four elements, which follow on each other. Those of a row that fill no quad wait in the queue from the beginning.
/// * `finish`: whether rows have one piece, and their results go to `values` and `places`, of which `gives_values` says whether the former are wanted; otherwise their ranks and places go to
///   `ranks` and `places`, `[rows, pieces, k]`.
#[device]
#[expect(clippy::too_many_arguments, clippy::manual_div_ceil, reason = "it is a kernel's body")]
pub fn top_rows<const HELD: usize, T: Element, W: Fn(T) -> u32>(
    x: &[T],
    values: &mut [T],
    places: &mut [u32],
    ranks: &mut [u32],
    held: &mut [Ranked],
    queued: &[Atomic<u32>],
    agreed: &mut [u32],
    shape: [usize; 4],
    steps: [usize; 2],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 4],
    y_strides: [usize; 4],
    order: [u32; 5],
    quads: bool,
    finish: bool,
    gives_values: bool,
    word: W,
) {
    let (n, k, chunk, pieces) = (shape[0], shape[1], shape[2], shape[3]);
    let lane = local_index();
    let piece = group_index() % pieces;
    let from = min(piece * chunk, n);
    let count = min(chunk, n - from);
    // Elements that are read with the others; a quad that is not wholly in the row may read as zeros.
    let whole = if quads { count - count % 4 } else { count };
    let beside = count - whole;
    let mut x_first = 0;
    let mut y_first = 0;
    let mut rest = group_index() / pieces;
    for level in 0..levels {
        let position = rest % extents[level];
        x_first += position * x_strides[level];
        y_first += position * y_strides[level];
        rest /= extents[level];
    }
    let first = x_first + from * steps[0];

    let mut ahead = words_of(x, first, steps[0], 0, quads, &word);
    // The best of what each invocation reads first: the `k`th of them bounds the `k`th of all.
    let mut own = Ranked::NONE;
    for part in unroll(0..EACH) {
        let column = column_of(0, part, quads);
        let candidate = Ranked { rank: rank_of(ahead[part], order), column: (from + column) as u32 };
        if column < whole && candidate.before(own) {
            own = candidate;
        }
    }
    held[lane] = own;
    for at in (SIZE + lane..HELD).step_by(SIZE) {
        held[at] = Ranked::NONE;
    }
    let mut last = Ranked::NONE;
    if k <= SIZE {
        sort_runs::<SIZE, HELD>(held, SIZE);
        let bound = held[k - 1];
        if bound.column != u32::MAX {
            // It may be among the best itself.
            last = Ranked { rank: bound.rank, column: bound.column + 1 };
        }
        barrier();
    }
    for at in (lane..k + beside).step_by(SIZE) {
        held[at] = Ranked::NONE;
        if at >= k {
            let column = whole + at - k;
            let rank = rank_of(word(x[first + column * steps[0]]), order);
            held[at] = Ranked { rank, column: (from + column) as u32 };
        }
    }
    if lane == 0 {
        queued[0].store(beside as u32);
    }
    barrier();
    let mut queue = 0;
    let rounds = (min(chunk, n) + SIZE * EACH - 1) / (SIZE * EACH);
    let mut round = 0;
    while round < rounds {
        let begin = round;
        let until = min(if round == 0 { 1 } else { round + AT_ONCE }, rounds);
        let mut waiting = 0u32;
        let mut bit = 1u32;
        while round < until {
            let words = ahead;
            // What the next round looks at is read now, and not waited for.
            ahead = words_of(x, first, steps[0], round + 1, quads, &word);
            for part in unroll(0..EACH) {
                let inside = column_of(round, part, quads) < whole;
                waiting |= select(inside && rank_of(words[part], order) <= last.rank, bit << part as u32, 0);
            }
            bit <<= EACH as u32;
            round += 1;
        }
        loop {
            let mut left = waiting;
            while left != 0 {
                let own = left.trailing_zeros() as usize;
                left &= left - 1;
                let column = column_of(begin + own / EACH, own % EACH, quads);
                let rank = rank_of(word(x[first + column * steps[0]]), order);
                let candidate = Ranked { rank, column: (from + column) as u32 };
                let mut settled = true;
                if candidate.before(last) {
                    let place = k + queued[0].add(1) as usize;
                    settled = place < HELD;
                    if settled {
                        held[place] = candidate;
                    } else {
                        left = 0;
                    }
                }
                waiting &= !select(settled, 1 << own as u32, 0);
            }
            barrier();
            if lane == 0 {
                agreed[0] = queued[0].load();
            }
            queue = workgroup_uniform_load(&agreed[0]) as usize;
            // Once, early, for a better bound.
            let is_early = begin == 1 && until < rounds && queue > k;
            if k + queue <= HELD && !is_early {
                break;
            }
            sort_runs::<SIZE, HELD>(held, HELD);
            last = held[k - 1];
            if lane == 0 {
                queued[0].store(0);
            }
            barrier();
        }
    }
    for at in (k + queue + lane..HELD).step_by(SIZE) {
        held[at] = Ranked::NONE;
    }
    sort_runs::<SIZE, HELD>(held, HELD);
    for at in (lane..k).step_by(SIZE) {
        let found = held[at];
        if finish {
            let to = y_first + at * steps[1];
            places[to] = found.column;
            if gives_values {
                values[to] = x[x_first + found.column as usize * steps[0]];
            }
        } else {
            places[group_index() * k + at] = found.column;
            ranks[group_index() * k + at] = found.rank;
        }
    }
}
