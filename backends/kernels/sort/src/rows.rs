//! Rows that a workgroup holds: sorted in one launch, by bitonic sorting in workgroup memory.
//!
//! A workgroup has as many rows as fit, each filled up to a power of two with what comes behind every element. Elements are compared by their place in the order and then by
//! their index, so that no two are equal: the sort is stable, and its first `k` are the best `k`.
//!
//! **Cost.** Each element is read once, and what is written once more. `log w (log w + 1) / 2` steps for rows of `w`, 66 for the longest, are what it takes: workgroup memory limits it.

use trefoil_dsl::prelude::*;

use super::order::{Ranked, rank_of, sort_runs};

/// Invocations of a workgroup.
#[device]
const SIZE: usize = 256;
/// Elements that a workgroup holds: with their ranks and indices the 16 KiB that every device has.
#[device]
pub const HELD: usize = 2048;
/// Elements of an invocation.
#[device]
const EACH: usize = HELD / SIZE;

/// The first `k` elements of each row in order, or where they are, or both.
///
/// * `rows` rows of `n` elements, at most `width`, a power of two. They are spread over `levels` extents, the last first, with strides of elements and of results; `steps` are those along a row.
/// * `beside`: whether neighbouring rows, not neighbours in a row, lie side by side.
/// * `word`: an element as a word that [`rank_of`] takes.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn sort_rows<T: Element, W: Fn(T) -> u32>(
    x: &[T],
    values: &mut [T],
    places: &mut [u32],
    held: &mut [Ranked],
    shape: [usize; 4],
    steps: [usize; 2],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 4],
    y_strides: [usize; 4],
    order: [u32; 5],
    beside: bool,
    gives_values: bool,
    gives_places: bool,
    word: W,
) {
    let (rows, n, k, width) = (shape[0], shape[1], shape[2], shape[3]);
    let teams = HELD / width;
    let mut x_first = [0; EACH];
    let mut y_first = [0; EACH];
    let mut words = [0u32; EACH];
    for part in unroll(0..EACH) {
        let at = part * SIZE + local_index();
        let team = if beside { at % teams } else { at / width };
        let column = if beside { at / teams } else { at % width };
        let mut rest = min(group_index() * teams + team, rows - 1);
        for level in 0..levels {
            let position = rest % extents[level];
            x_first[part] += position * x_strides[level];
            y_first[part] += position * y_strides[level];
            rest /= extents[level];
        }
        words[part] = word(x[x_first[part] + min(column, n - 1) * steps[0]]);
    }
    for part in unroll(0..EACH) {
        let at = part * SIZE + local_index();
        let team = if beside { at % teams } else { at / width };
        let column = if beside { at / teams } else { at % width };
        let mut own = Ranked::NONE;
        if group_index() * teams + team < rows && column < n {
            own = Ranked { rank: rank_of(words[part], order), column: column as u32 };
        }
        held[team * width + column] = own;
    }
    sort_runs::<SIZE, HELD>(held, width);
    for part in unroll(0..EACH) {
        let at = part * SIZE + local_index();
        let team = if beside { at % teams } else { at / width };
        let column = if beside { at / teams } else { at % width };
        if group_index() * teams + team < rows && column < min(k, n) {
            let found = held[team * width + column].column;
            let to = y_first[part] + column * steps[1];
            if gives_values {
                values[to] = x[x_first[part] + found as usize * steps[0]];
            }
            if gives_places {
                places[to] = found;
            }
        }
    }
}
