//! The shapes of a scan, each one source for every operator and every element type.
//!
//! **What is scanned.** `lines` lines lie somewhere; a line is `n` times `inner` elements, of which those that differ in the first place alone are one *sequence*: each result is what the
//! operator makes of the elements of its sequence up to it. Results lie one after the other, `[outer, n, inner]`.
//!
//! **Who does what.** `along` invocations of a workgroup, a power of two, are a team with a sequence (or with four that lie side by side), and `SIZE / along` teams are side by
//! side: in rows a team's invocations are neighbours, in columns neighbours belong to neighbouring columns, so that either reads what follows on each other. In a round an invocation takes 16 elements of
//! a row, four quads, each in another quarter of the round, and in columns eight that follow on each other, of each of four columns: they are four *slots* of four or of eight elements. Within a slot one
//! invocation goes from element to element; slot by slot the team finds what comes before each invocation; and what a round has come to is carried on to the next.
//!
//! **Pieces.** Where there are few sequences for a device, each is cut in `pieces` of `chunk` elements. A first launch writes the total of each piece, a second one scans these, and a third one
//! scans the pieces from there on. No workgroup waits for another, so that this is right on every device.
//!
//! **Why it is fast.** In one piece each element is read once and written once, 16 bytes at a time where memory allows it, four or eight reads before the first use; it stays in registers meanwhile. In
//! pieces it is read twice.
//!
//! **Order.** Which elements meet depends on the parameters alone, so that the same launch gives the same bits every time.

use trefoil_dsl::prelude::*;

/// Invocations of a workgroup.
#[device]
pub const SIZE: usize = 256;
/// Elements of an invocation in a round, of one sequence: in rows, and in columns.
pub const EACH: [usize; 2] = [16, DOWN];
/// Elements of a column that an invocation has in a round: with as few columns as a line of the cache wants, there are few workgroups, which keep memory busy if each asks for much at once.
#[device]
pub const DOWN: usize = 8;
/// The most extents over which lines are spread.
pub const LEVELS: usize = 4;

/// How a team goes over its sequence.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Along a row, whose elements follow on each other, four at a time: its length, its start and where its pieces begin are multiples of four.
    Rows,
    /// Along a row of elements that lie at any distance from each other.
    Elements,
    /// Down four columns that lie side by side; all strides are multiples of four.
    Quads,
    /// Down one column, of any strides.
    Columns,
}

/// The walk of that number, which is a constant of the pipeline: a driver waits for a read in a branch before it goes on, and what is not walked would take registers.
#[device]
pub fn walk_of(number: usize) -> Walk {
    if number == 0 {
        Walk::Rows
    } else if number == 1 {
        Walk::Elements
    } else if number == 2 {
        Walk::Quads
    } else {
        Walk::Columns
    }
}

/// The part of that number, which is such a constant too.
#[device]
pub fn part_of(number: usize) -> Part {
    if number == 0 {
        Part::Whole
    } else if number == 1 {
        Part::Totals
    } else {
        Part::Rest
    }
}

/// What a launch does.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Scans whole sequences.
    Whole,
    /// Writes the total of each piece.
    Totals,
    /// Scans each piece from what comes before it on.
    Rest,
}

/// Where the element at a position of a sequence of `n` lies in it.
#[device]
fn turned(position: usize, n: usize, reverse: bool) -> usize {
    if reverse { n - 1 - position } else { position }
}

/// For the four slots of an invocation, what the slots of the invocations before it in its team come to, and then what those of the whole team come to; by way of memory. Begins and ends with
/// a barrier.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a part of a kernel's body")]
fn team_by_memory<A: Element, J: Fn(A, A) -> A>(
    own: [A; 4],
    start: A,
    scratch: &mut [A],
    local: usize,
    at_team: usize,
    along: usize,
    spread: usize,
    join: J,
) -> [A; 8] {
    barrier();
    for slot in unroll(0..4) {
        scratch[slot * SIZE + local] = own[slot];
    }
    barrier();
    let mut distance = 1;
    while distance < along {
        let mut sum = own;
        for slot in unroll(0..4) {
            let here = slot * SIZE + local;
            sum[slot] = scratch[here];
            if at_team >= distance {
                sum[slot] = join(scratch[here - distance * spread], sum[slot]);
            }
        }
        barrier();
        for slot in unroll(0..4) {
            scratch[slot * SIZE + local] = sum[slot];
        }
        barrier();
        distance *= 2;
    }
    let last = local + (along - 1 - at_team) * spread;
    let mut result = [start; 8];
    for slot in unroll(0..4) {
        if at_team > 0 {
            result[slot] = scratch[slot * SIZE + local - spread];
        }
        result[4 + slot] = scratch[slot * SIZE + last];
    }
    barrier();
    result
}

/// As [`team_by_memory`], by subgroups and with one barrier in the middle: calls take one half of the memory and the other in turn, as `turn` says, so that a call's barrier stands between
/// what the last one read and what the next one writes.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a part of a kernel's body")]
fn team_by_subgroups<A: Element, J: Fn(A, A) -> A, U: Fn(A, u32) -> A>(
    own: [A; 4],
    start: A,
    scratch: &mut [A],
    turn: usize,
    team: usize,
    at_team: usize,
    along: usize,
    spread: usize,
    join: J,
    up: U,
) -> [A; 8] {
    // So many of a team's invocations are in one subgroup, `spread` apart; where that is larger than a subgroup, one.
    let reach = max(min(along, subgroup_size() / spread), 1);
    let place = at_team & (reach - 1);
    let mut with = own;
    let mut distance = 1;
    while distance < reach {
        for slot in unroll(0..4) {
            let before = up(with[slot], (distance * spread) as u32);
            if place >= distance {
                with[slot] = join(before, with[slot]);
            }
        }
        distance *= 2;
    }
    let mut result = [start; 8];
    for slot in unroll(0..4) {
        let before = up(with[slot], spread as u32);
        if place > 0 {
            result[slot] = before;
        }
    }
    let (parts, part) = (along / reach, at_team / reach);
    let first = turn * (4 * SIZE) + team * parts;
    if place + 1 == reach {
        for slot in unroll(0..4) {
            scratch[first + slot * SIZE + part] = with[slot];
        }
    }
    barrier();
    let mut all = [start; 4];
    for other in 0..parts {
        for slot in unroll(0..4) {
            if other == part {
                result[slot] = join(all[slot], result[slot]);
            }
            all[slot] = join(all[slot], scratch[first + slot * SIZE + other]);
        }
    }
    for slot in unroll(0..4) {
        result[4 + slot] = all[slot];
    }
    result
}

/// As [`team_by_memory`] or [`team_by_subgroups`], whichever the device has.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a part of a kernel's body")]
fn of_team<A: Element, J: Fn(A, A) -> A, U: Fn(A, u32) -> A>(
    own: [A; 4],
    start: A,
    scratch: &mut [A],
    round: usize,
    local: usize,
    team: usize,
    at_team: usize,
    along: usize,
    spread: usize,
    join: J,
    up: U,
) -> [A; 8] {
    if const { target::has(Feature::Subgroups) } {
        team_by_subgroups(own, start, scratch, round % 2, team, at_team, along, spread, join, up)
    } else {
        team_by_memory(own, start, scratch, local, at_team, along, spread, join)
    }
}

/// Scans sequences, or pieces of them, or finds the totals of pieces.
///
/// * `x`: where it has fewer than four elements, `n` is so small too: nothing is broadcast then.
/// * `before`: for each sequence and piece, what comes before it; read by [`Part::Rest`] alone. `totals`: the same, what it comes to; written by [`Part::Totals`] alone.
/// * `early`: whether quads of columns are read a round early, so that they are on their way while those before them are put together: there may be one workgroup for each multiprocessor, and nothing else would be read
///   meanwhile. The compiler must not wait for them before they are wanted.
/// * `known_along`: `along`, if it is a constant of the pipeline, so that compilers write out the steps in which a team puts together what it has, and shift where this text divides; 0 otherwise.
/// * `exclusive`: whether a result leaves out its own element; the first is `start` then.
/// * `reverse`: whether sequences are gone over from their ends.
/// * `shape`: lines, `inner`, `n`.
/// * `strides`: along `inner` and along `n`, of elements, and then of results.
/// * `levels`: how many of the extents there are over which lines are spread, the last first: `extents`, with the strides of elements, `x_strides`, and of results, `y_strides`.
/// * `split`: `along`, `chunk`, `pieces`.
/// * `take` makes a value of an element, `give` an element of a value; `join` is the operator, and `start` its neutral value. `up` is a value of the subgroup's lane so many before.
/// * `read_four`, `write_four`: how four elements that follow on each other are read and written, by the number of such groups before them.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn scan<
    T: Element,
    A: Element,
    K: Fn(T) -> A,
    J: Fn(A, A) -> A,
    G: Fn(A) -> T,
    U: Fn(A, u32) -> A,
    R: Fn(&[T], usize) -> Vec4<T>,
    S: Fn(&mut [T], usize, Vec4<T>),
>(
    x: &[T],
    y: &mut [T],
    before: &[A],
    totals: &mut [A],
    scratch: &mut [A],
    walk: Walk,
    part: Part,
    early: bool,
    known_along: usize,
    exclusive: bool,
    reverse: bool,
    shape: [usize; 3],
    strides: [usize; 4],
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 4],
    y_strides: [usize; 4],
    split: [usize; 3],
    zero: T,
    start: A,
    take: K,
    join: J,
    give: G,
    up: U,
    read_four: R,
    write_four: S,
) {
    let (lines, inner, n) = (shape[0], shape[1], shape[2]);
    let (chunk, pieces) = (split[1], split[2]);
    let along = if known_along > 0 { known_along } else { split[0] };
    let across = SIZE / along;
    let rows = walk == Walk::Rows || walk == Walk::Elements;
    let width = if walk == Walk::Quads { 4 } else { 1 };
    let mut local = local_index();
    if const { target::has(Feature::Subgroups) } {
        local = subgroup_index() * subgroup_size() + subgroup_lane();
    }
    // Both are powers of two: the neighbour is in the same team, or in the next.
    let near = if rows { along } else { across };
    let (inner_place, outer_place) = (local & (near - 1), local / near);
    let at_team = if rows { inner_place } else { outer_place };
    let team = if rows { outer_place } else { inner_place };
    // Neighbouring workgroups have neighbouring sequences of one piece. What is divided by one is not divided: a division takes some thirty instructions.
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

    let mut x_first = column * strides[0];
    let mut y_first = column * strides[2];
    let mut rest = line;
    for level in 1..levels {
        let position = rest % extents[level - 1];
        x_first += position * x_strides[level - 1];
        y_first += position * y_strides[level - 1];
        rest /= extents[level - 1];
    }
    // Behind the last is nothing to count; of no levels there is one line.
    if levels > 0 {
        x_first += rest * x_strides[levels - 1];
        y_first += rest * y_strides[levels - 1];
    }
    let sequence = line * inner + column;

    let mut carry = [start; 4];
    if part == Part::Rest {
        for lane in unroll(0..4) {
            if lane < width {
                carry[lane] = before[(sequence + lane) * pieces + piece];
            }
        }
    }
    let ahead = at_team * if rows { 4 } else { DOWN };
    let span = along * if rows { 16 } else { DOWN };
    let rounds = min(chunk, n).div_ceil(span);
    // Reads of rows, and those that are early, do not ask whether they are in range: where there are quads, the last one is as good as one beyond, and nothing is to be done to it on its way. Of columns that are not
    // read early Vulkan makes more if it is asked.
    let quads = x.len() / 4;
    if quads > 0 && rows {
        // From one slot's elements to those of the next.
        let apart = 4 * along;
        for round in 0..rounds {
            let p = round * span + ahead;
            let mut read = [Vec4::splat(zero); 4];
            if walk == Walk::Rows {
                for k in unroll(0..4) {
                    let quad = (from + p + k * apart) / 4;
                    let quad = min(quad, n / 4 - 1);
                    read[k] = read_four(x, min(x_first / 4 + turned(quad, n / 4, reverse), quads - 1));
                }
                if reverse {
                    for k in unroll(0..4) {
                        read[k] = Vec4::new(read[k].w, read[k].z, read[k].y, read[k].x);
                    }
                }
            } else {
                for k in unroll(0..4) {
                    for lane in unroll(0..4) {
                        let position = min(from + p + k * apart + lane, n - 1);
                        read[k][lane] = x[x_first + turned(position, n, reverse) * strides[1]];
                    }
                }
            }
            let mut held = [start; 16];
            for slot in unroll(0..4) {
                for t in unroll(0..4) {
                    if p + slot * apart + t < count {
                        held[4 * slot + t] = take(read[slot][t]);
                    }
                }
            }
            let mut own = [start; 4];
            for slot in unroll(0..4) {
                for t in unroll(1..4) {
                    held[4 * slot + t] = join(held[4 * slot + t - 1], held[4 * slot + t]);
                }
                own[slot] = held[4 * slot + 3];
            }
            let both = of_team(own, start, scratch, round, local, team, at_team, along, 1, &join, &up);
            for slot in unroll(0..4) {
                let first = join(carry[0], both[slot]);
                carry[0] = join(carry[0], both[4 + slot]);
                for back in unroll(0..4) {
                    let t = 3 - back;
                    if !exclusive {
                        held[4 * slot + t] = join(first, held[4 * slot + t]);
                    } else if t > 0 {
                        held[4 * slot + t] = join(first, held[4 * slot + t - 1]);
                    } else {
                        held[4 * slot + t] = first;
                    }
                }
            }
            if part != Part::Totals {
                if walk == Walk::Rows {
                    for k in unroll(0..4) {
                        if p + k * apart < count {
                            let quad = (from + p + k * apart) / 4;
                            let (a, b) = (give(held[4 * k]), give(held[4 * k + 1]));
                            let (c, d) = (give(held[4 * k + 2]), give(held[4 * k + 3]));
                            if reverse {
                                write_four(y, y_first / 4 + turned(quad, n / 4, true), Vec4::new(d, c, b, a));
                            } else {
                                write_four(y, y_first / 4 + quad, Vec4::new(a, b, c, d));
                            }
                        }
                    }
                } else {
                    for k in unroll(0..4) {
                        for lane in unroll(0..4) {
                            let position = p + k * apart + lane;
                            if position < count {
                                let at = turned(from + position, n, reverse);
                                y[y_first + at * strides[3]] = give(held[4 * k + lane]);
                            }
                        }
                    }
                }
            }
        }
    } else if quads > 0 {
        let mut next = [Vec4::splat(zero); DOWN];
        if walk == Walk::Quads && early {
            for k in unroll(0..DOWN) {
                let position = min(from + ahead + k, n - 1);
                next[k] = read_four(x, min((x_first + turned(position, n, reverse) * strides[1]) / 4, quads - 1));
            }
        }
        for round in 0..rounds {
            let p = round * span + ahead;
            let mut read = [Vec4::splat(zero); DOWN];
            if walk == Walk::Quads {
                if early {
                    read = next;
                }
                let p = if early { p + span } else { p };
                for k in unroll(0..DOWN) {
                    let position = min(from + p + k, n - 1);
                    let quad = (x_first + turned(position, n, reverse) * strides[1]) / 4;
                    if early {
                        next[k] = read_four(x, min(quad, quads - 1));
                    } else {
                        read[k] = read_four(x, quad);
                    }
                }
            } else {
                for k in unroll(0..DOWN) {
                    let position = min(from + p + k, n - 1);
                    read[k][0] = x[x_first + turned(position, n, reverse) * strides[1]];
                }
            }
            // A slot is a column.
            let mut held = [start; 4 * DOWN];
            for slot in unroll(0..4) {
                for t in unroll(0..DOWN) {
                    if p + t < count {
                        held[DOWN * slot + t] = take(read[t][slot]);
                    }
                }
            }
            let mut own = [start; 4];
            for slot in unroll(0..4) {
                for t in unroll(1..DOWN) {
                    held[DOWN * slot + t] = join(held[DOWN * slot + t - 1], held[DOWN * slot + t]);
                }
                own[slot] = held[DOWN * slot + DOWN - 1];
            }
            let both = of_team(own, start, scratch, round, local, team, at_team, along, across, &join, &up);
            for slot in unroll(0..4) {
                let first = join(carry[slot], both[slot]);
                carry[slot] = join(carry[slot], both[4 + slot]);
                for back in unroll(0..DOWN) {
                    let t = DOWN - 1 - back;
                    if !exclusive {
                        held[DOWN * slot + t] = join(first, held[DOWN * slot + t]);
                    } else if t > 0 {
                        held[DOWN * slot + t] = join(first, held[DOWN * slot + t - 1]);
                    } else {
                        held[DOWN * slot + t] = first;
                    }
                }
            }
            if part != Part::Totals {
                for t in unroll(0..DOWN) {
                    if p + t < count {
                        let at = y_first + turned(from + p + t, n, reverse) * strides[3];
                        let first = give(held[t]);
                        if walk == Walk::Quads {
                            let (b, c) = (give(held[DOWN + t]), give(held[2 * DOWN + t]));
                            write_four(y, at / 4, Vec4::new(first, b, c, give(held[3 * DOWN + t])));
                        } else {
                            y[at] = first;
                        }
                    }
                }
            }
        }
    } else if inside && at_team == 0 && piece == 0 && part != Part::Totals {
        // Three elements at most, which are the first piece's.
        let mut sum = start;
        for i in 0..n {
            let at = turned(i, n, reverse);
            let next = join(sum, take(x[x_first + at * strides[1]]));
            y[y_first + at * strides[3]] = give(if exclusive { sum } else { next });
            sum = next;
        }
    }
    if part == Part::Totals && inside && at_team == 0 {
        for lane in unroll(0..4) {
            if lane < width {
                totals[(sequence + lane) * pieces + piece] = carry[lane];
            }
        }
    }
}
