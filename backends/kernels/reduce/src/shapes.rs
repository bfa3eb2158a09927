//! The shapes of a reduction, each one source for every operator and every element type.
//!
//! **What is reduced.** `lines` lines lie somewhere; a line is `n` times `inner` elements, of which those that differ in the first place alone are reduced to one. Rows are lines
//! with `inner` 1 whose elements follow on each other; columns are the rest.
//!
//! **Who does what.** `along` invocations of a workgroup, a power of two, share a result (of columns four results, where four lie side by side), and `SIZE / along` such teams are side by side: in rows a
//! team's invocations are neighbours, in columns neighbours belong to neighbouring columns, so that either reads what follows on each other. The
//! axis may be cut in `pieces` of `chunk` elements; then each leaves its partial result in `parts`, `[results, pieces]`, and [`join_parts`] goes on.
//!
//! **Why it is fast.** An invocation asks for four times 16 bytes before it uses the first, with no branch around a read and no barrier before the end; the tree at the end is once for
//! each result.
//!
//! **Order.** A value is pushed elements in the order of their positions, but joined with any. Which elements meet depends on the parameters alone, so that the same launch gives the same bits every time.

use trefoil_dsl::prelude::*;

/// Invocations of a workgroup.
#[device]
pub const SIZE: usize = 256;
/// Reads of an invocation before it uses the first.
#[device]
const AT_ONCE: usize = 4;
/// The most extents over which lines are spread.
pub const LEVELS: usize = 4;

/// How a team goes over its elements.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Along a row, whose elements follow on each other, four at a time but for up to three at its ends.
    Rows,
    /// Down one column, of any strides.
    Columns,
    /// Down four columns that lie side by side; all strides are multiples of four. A kernel of large values has no room for four of each invocation, and does not go this way.
    Quads,
}

/// The walk of that number, which is a constant of the pipeline: a driver waits for a read in a branch before it goes on, and what is not walked would take registers.
#[device]
pub fn walk_of(number: usize) -> Walk {
    if number == 0 {
        Walk::Rows
    } else if number == 1 {
        Walk::Columns
    } else {
        Walk::Quads
    }
}

/// Reduces elements to results, or to the partial results of pieces.
///
/// * `shape`: lines, `inner`, `n`, and the divisor that `end` is given.
/// * `strides`: of elements along `inner` and along `n`, and of results along `inner`.
/// * `levels`: how many of the extents there are over which lines are spread, at least one, the last first: `extents`, with the strides of elements, `x_strides`, and of results, `y_strides`.
/// * `split`: `along`, `chunk`, `pieces`.
/// * `place`: what an element's position along the axis is multiplied with before `push` gets it.
/// * `finish`: whether the results are complete, so that `end` makes elements of `y` of them; otherwise they go to `parts`.
/// * `FOURS`, `fours`: whether four elements of a row that follow on each other can be, and are, pushed at once, by `push_four`, with the first one's position and what lies between two of theirs.
/// * `read_four`: how four elements that follow on each other are read, by the number of such groups before them.
#[device]
#[expect(clippy::too_many_arguments, clippy::manual_div_ceil, reason = "it is a kernel's body")]
pub fn reduce<
    T: Element,
    A: Element,
    R: Element,
    const FOURS: bool,
    P: Fn(A, T, u32) -> A,
    J: Fn(A, A) -> A,
    E: Fn(A, usize) -> R,
    Q: Fn(&[T], usize) -> Vec4<T>,
    F: Fn(A, Vec4<T>, u32, u32) -> A,
>(
    x: &[T],
    y: &mut [R],
    parts: &mut [A],
    scratch: &mut [A],
    walk: Walk,
    fours: bool,
    shape: [usize; 4],
    strides: [usize; 3],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 4],
    y_strides: [usize; 4],
    split: [usize; 3],
    place: usize,
    finish: bool,
    zero: T,
    start: A,
    push: P,
    join: J,
    end: E,
    read_four: Q,
    push_four: F,
) {
    let (lines, inner, n) = (shape[0], shape[1], shape[2]);
    let (along, chunk, pieces) = (split[0], split[1], split[2]);
    let across = SIZE / along;
    let rows = walk == Walk::Rows;
    let width = if walk == Walk::Quads { 4 } else { 1 };
    // Where this invocation is in its team, and its team in the workgroup: the neighbour is in the same team, or in the next.
    let near = if rows { along } else { across };
    let (inner_place, outer_place) = (local_index() & (near - 1), local_index() >> near.trailing_zeros());
    let at_team = if rows { inner_place } else { outer_place };
    let team = if rows { outer_place } else { inner_place };
    // Neighbouring workgroups have neighbouring results of one piece.
    let mut group = group_index();
    let mut piece = 0;
    if pieces > 1 {
        let groups = group_count() / pieces;
        piece = group / groups;
        group %= groups;
    }
    let mut line = group * across + team;
    let mut column = 0;
    if inner > 1 {
        let units = inner / width;
        column = line % units * width;
        line /= units;
    }
    let inside = line < lines;
    // What is left of fewer elements than were expected may end before a piece starts.
    let from = min(piece * chunk, n);
    let count = if inside { min(chunk, n - from) } else { 0 };

    let mut first = column * strides[0] + from * strides[1];
    let mut result = column * strides[2];
    let mut rest = line;
    for level in 1..levels {
        let position = rest % extents[level - 1];
        first += position * x_strides[level - 1];
        result += position * y_strides[level - 1];
        rest /= extents[level - 1];
    }
    first += rest * x_strides[levels - 1];
    result += rest * y_strides[levels - 1];

    let mut held = [start; 4];
    if walk == Walk::Columns {
        for i in (at_team..count).step_by(AT_ONCE * along) {
            let mut read = [zero; AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                read[k] = x[first + (i + k * along) * strides[1]];
            }
            for k in unroll(0..AT_ONCE) {
                if i + k * along < count {
                    held[k] = push(held[k], read[k], ((from + i + k * along) * place) as u32);
                }
            }
        }
    } else {
        // Quads of the memory from `quad` on, so many, `step` apart; of a row those that it has whole.
        let quad = if rows { (first + 3) / 4 } else { first / 4 };
        let whole = if rows { max((first + count) / 4, quad) - quad } else { count };
        let step = if rows { 1 } else { strides[1] / 4 };
        // The positions along the axis of a quad's elements.
        let ahead = if rows { min(4 * quad - first, count) } else { 0 };
        let apart = if rows { 4 } else { 1 };
        let beside = if rows { place } else { 0 };
        for i in (at_team..whole).step_by(AT_ONCE * along) {
            let mut read = [Vec4::splat(zero); AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                read[k] = read_four(x, quad + (i + k * along) * step);
            }
            for k in unroll(0..AT_ONCE) {
                if i + k * along < whole {
                    let position = (from + ahead + (i + k * along) * apart) * place;
                    if FOURS && fours && rows {
                        held[0] = push_four(held[0], read[k], position as u32, beside as u32);
                    } else {
                        for lane in unroll(0..4) {
                            held[lane] = push(held[lane], read[k][lane], (position + lane * beside) as u32);
                        }
                    }
                }
            }
        }
        if rows {
            let behind = ahead + 4 * whole;
            for i in (at_team..ahead + (count - behind)).step_by(along) {
                let position = if i < ahead { i } else { i + 4 * whole };
                // Pushed onto nothing, since some of them come before those that are held.
                held[0] = join(held[0], push(start, x[first + position], ((from + position) * place) as u32));
            }
        }
    }
    if walk != Walk::Quads {
        held[0] = join(join(held[0], held[1]), join(held[2], held[3]));
    }

    for lane in unroll(0..4) {
        if lane < width {
            scratch[lane * SIZE + local_index()] = held[lane];
        }
    }
    barrier();
    let spread = if rows { 1 } else { across };
    let mut half = along / 2;
    while half > 0 {
        if at_team < half {
            for lane in 0..width {
                let own = lane * SIZE + local_index();
                scratch[own] = join(scratch[own], scratch[own + half * spread]);
            }
        }
        barrier();
        half /= 2;
    }
    if inside && at_team == 0 {
        for lane in 0..width {
            let value = scratch[lane * SIZE + local_index()];
            let to = result + lane * strides[2];
            if finish {
                y[to] = end(value, shape[3]);
            } else {
                parts[to * pieces + piece] = value;
            }
        }
    }
}

/// Joins partial results `[lines, n, inner]`, which lie one after the other, along `n`.
///
/// * `shape`: lines, `inner`, `n`, and the divisor that `end` is given.
/// * `along`: invocations that share a result.
/// * `place`: what a partial result's position along `n`, times this, is for `shift`, which moves the partial result there.
/// * `finish`: whether the results are complete, as for [`reduce`]; otherwise they go to `next`.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn join_parts<A: Element, R: Element, S: Fn(A, u32) -> A, J: Fn(A, A) -> A, E: Fn(A, usize) -> R>(
    parts: &[A],
    y: &mut [R],
    next: &mut [A],
    scratch: &mut [A],
    shape: [usize; 4],
    along: usize,
    place: usize,
    finish: bool,
    start: A,
    shift: S,
    join: J,
    end: E,
) {
    let (lines, inner, n) = (shape[0], shape[1], shape[2]);
    let across = SIZE / along;
    let rows = inner == 1;
    let at_team = if rows { local_index() % along } else { local_index() / across };
    let team = if rows { local_index() / along } else { local_index() % across };
    let result = group_index() * across + team;
    let first = result / inner * n * inner + result % inner;
    let count = if result < lines * inner { n } else { 0 };
    let mut held = start;
    for i in (at_team..count).step_by(AT_ONCE * along) {
        let mut read = [start; AT_ONCE];
        for k in unroll(0..AT_ONCE) {
            read[k] = parts[first + (i + k * along) * inner];
        }
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                held = join(held, shift(read[k], ((i + k * along) * place) as u32));
            }
        }
    }
    if along > 1 {
        let spread = if rows { 1 } else { across };
        scratch[local_index()] = held;
        barrier();
        let mut half = along / 2;
        while half > 0 {
            if at_team < half {
                scratch[local_index()] = join(scratch[local_index()], scratch[local_index() + half * spread]);
            }
            barrier();
            half /= 2;
        }
        held = scratch[local_index()];
    }
    if result < lines * inner && at_team == 0 {
        if finish {
            y[result] = end(held, shape[3]);
        } else {
            next[result] = held;
        }
    }
}
