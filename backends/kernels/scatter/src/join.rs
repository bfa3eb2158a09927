//! All updates of each slot put together with what is there.
//!
//! **What is done.** The result is `lines` times `slots` rows of `columns` elements, and an element of it is the old one joined with those of the updates of its slot, in their order. In an order that
//! depends on the indices alone, so that the same indices give the same bits every time, and without an atomic.
//!
//! **Who does what.** `along` invocations, a power of two, have a row of the result; what each has of it is in registers until it is written. A slot of very many updates would keep a team busy while
//! the others are done: so a launch before joins each whole chunk of updates that go to one slot ([`super::places::CHUNK`] of them), and a slot's team takes what these come to.
//!
//! **Why it is fast.** The old elements and the updates are read once, and the result is written once, 16 bytes at a time where memory allows it; four updates are asked for before the first is
//! used, without a branch around a read. What is past the last update is asked for outside of its buffer, where there is nothing to wait for: past the places of a slot's updates there
//! may be words that nobody has written.

use trefoil_dsl::prelude::*;

use super::places::CHUNK;

/// Invocations of a workgroup.
#[device]
pub const SIZE: usize = 256;
/// Updates that are asked for before the first is used.
#[device]
const AT_ONCE: usize = 4;

/// Joins the updates of slots with what is there, or those of chunks.
///
/// * `places`: the updates in the order of their slots. `runs`: where the slots begin there, and for each chunk whether it is of one slot, as `scatter_runs` leaves them.
/// * `partials`: what chunks come to, `[lines, chunks, columns]`.
/// * `of_chunks`: whether chunks are joined, rather than slots.
/// * `in_place`: whether the old elements are in the result, where those of slots without updates stay; `x` is not read then.
/// * `quads`: whether four columns are taken at a time: all strides are multiples of four then but those of columns, which are 1.
/// * `shape`: lines, slots, columns, chunks. Without chunks slots take updates alone.
/// * `x_strides`, `update_strides`: from a line, a slot or update, and a column to the next.
/// * `bits`: `1 << bits` invocations share a row.
#[device]
#[expect(clippy::too_many_arguments, clippy::manual_div_ceil, reason = "it is a kernel's body")]
pub fn join_runs<
    T: Element,
    A: Element,
    P: Fn(T) -> A,
    J: Fn(A, A) -> A,
    G: Fn(A) -> T,
    R: Fn(&[T], usize) -> Vec4<T>,
    S: Fn(&[A], usize) -> Vec4<A>,
    W: Fn(&mut [T], usize, Vec4<T>),
    V: Fn(&mut [A], usize, Vec4<A>),
>(
    x: &[T],
    updates: &[T],
    places: &[u32],
    runs: &[u32],
    partials: &mut [A],
    y: &mut [T],
    of_chunks: bool,
    in_place: bool,
    quads: bool,
    shape: [usize; 4],
    x_strides: [usize; 3],
    update_strides: [usize; 3],
    bits: usize,
    zero: T,
    start: A,
    take: P,
    join: J,
    give: G,
    read: R,
    read_partial: S,
    write: W,
    write_partial: V,
) {
    let (slots, columns, chunks) = (shape[1], shape[2], shape[3]);
    let rows = if of_chunks { chunks } else { slots };
    let along = 1 << bits;
    let row = group_index() * (SIZE >> bits) + (local_index() >> bits);
    if row < shape[0] * rows {
        let (line, at) = (row / rows, row % rows);
        let mut from = at * CHUNK;
        let mut to = from;
        // Of items, so many updates come first, and then so many chunks.
        let mut ahead = CHUNK;
        let mut whole = 0;
        if of_chunks {
            to += runs[slots + 1 + at] as usize * CHUNK;
        } else {
            from = runs[at] as usize;
            to = runs[at + 1] as usize;
            ahead = to - from;
            let first = (from + CHUNK - 1) / CHUNK;
            if chunks > 0 && to / CHUNK > first {
                ahead = first * CHUNK - from;
                whole = to / CHUNK - first;
            }
        }
        let items = (to - from) - whole * (CHUNK - 1);
        let old = line * x_strides[0] + at * x_strides[1];
        let first_update = line * update_strides[0];
        let first_partial = (line * chunks + (from + ahead) / CHUNK) * columns;
        let wanted_columns = select(in_place && items == 0, 0, columns);
        if quads {
            for column in (local_index() & (along - 1)..wanted_columns / 4).step_by(along) {
                let mut held = [start; 4];
                if !of_chunks {
                    let own = row * columns / 4 + column;
                    let before = if in_place { read(y, own) } else { read(x, old / 4 + column) };
                    for lane in unroll(0..4) {
                        held[lane] = take(before[lane]);
                    }
                }
                for item in (0..items).step_by(AT_ONCE) {
                    let mut new = [Vec4::splat(zero); AT_ONCE];
                    let mut sums = [Vec4::splat(start); AT_ONCE];
                    for k in unroll(0..AT_ONCE) {
                        let is_whole = item + k >= ahead && item + k < ahead + whole;
                        let behind = if item + k < ahead { 0 } else { whole * (CHUNK - 1) };
                        let at = select(item + k < items, from + item + k + behind, places.len());
                        let place = places[at] as usize;
                        let wanted = (first_update + place * update_strides[1]) / 4 + column;
                        let partial = (first_partial + (item + k - ahead) * columns) / 4 + column;
                        new[k] = read(updates, select(is_whole || item + k >= items, updates.len(), wanted));
                        sums[k] = read_partial(partials, select(is_whole, partial, partials.len()));
                    }
                    for k in unroll(0..AT_ONCE) {
                        if item + k < items {
                            let is_whole = item + k >= ahead && item + k < ahead + whole;
                            for lane in unroll(0..4) {
                                held[lane] = join(held[lane], select(is_whole, sums[k][lane], take(new[k][lane])));
                            }
                        }
                    }
                }
                if of_chunks {
                    write_partial(partials, row * columns / 4 + column, Vec4::new(held[0], held[1], held[2], held[3]));
                } else {
                    let all = Vec4::new(give(held[0]), give(held[1]), give(held[2]), give(held[3]));
                    write(y, row * columns / 4 + column, all);
                }
            }
        } else {
            for column in (local_index() & (along - 1)..wanted_columns).step_by(along) {
                let mut held = start;
                if !of_chunks {
                    let before = if in_place { y[row * columns + column] } else { x[old + column * x_strides[2]] };
                    held = take(before);
                }
                for item in (0..items).step_by(AT_ONCE) {
                    let mut new = [zero; AT_ONCE];
                    let mut sums = [start; AT_ONCE];
                    for k in unroll(0..AT_ONCE) {
                        let is_whole = item + k >= ahead && item + k < ahead + whole;
                        let behind = if item + k < ahead { 0 } else { whole * (CHUNK - 1) };
                        let at = select(item + k < items, from + item + k + behind, places.len());
                        let place = places[at] as usize;
                        let wanted = first_update + place * update_strides[1] + column * update_strides[2];
                        let partial = first_partial + (item + k - ahead) * columns + column;
                        new[k] = updates[select(is_whole || item + k >= items, updates.len(), wanted)];
                        sums[k] = partials[select(is_whole, partial, partials.len())];
                    }
                    for k in unroll(0..AT_ONCE) {
                        if item + k < items {
                            let is_whole = item + k >= ahead && item + k < ahead + whole;
                            held = join(held, select(is_whole, sums[k], take(new[k])));
                        }
                    }
                }
                if of_chunks {
                    partials[row * columns + column] = held;
                } else {
                    y[row * columns + column] = give(held);
                }
            }
        }
    }
}
