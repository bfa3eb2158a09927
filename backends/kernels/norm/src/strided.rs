//! Rows of any strides, whose elements are spread over any extents: what is normalised need not follow on each other, nor stand last.
//!
//! A team's invocations are neighbours where the elements of a row are; else neighbours belong to neighbouring rows, so that either reads what follows on each other. Rows are read twice, the second time
//! from a cache if they fit there, and nothing is held: a row may be of any length.

use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{SIZE, of_any_team, spread};

/// Reads before the first is used.
#[device]
const AT_ONCE: usize = 4;

/// The softmax of rows, or its logarithm, as the closures compute it.
///
/// * `shape`: rows, and elements of each.
/// * `along`: invocations that share a row; with `beside` they are neighbours.
/// * `levels`: how many of the extents rows are spread over, and how many of those a row's elements are; with `extents` and the strides in `x` and `y`, first of rows, then of elements, as for
///   [`spread`].
/// * `least`: minus infinity.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn softmax<T: Element, A: Number, R: Fn(T) -> A + Copy, S: Fn(A) -> T, E: Fn(A) -> A, L: Fn(A) -> A>(
    x: &[T],
    y: &mut [T],
    scratch: &mut [A],
    shape: [usize; 2],
    along: usize,
    beside: bool,
    levels: [usize; 2],
    row_extents: [usize; 4],
    extents: [usize; 4],
    x_rows: [usize; 5],
    x_strides: [usize; 5],
    y_rows: [usize; 5],
    y_strides: [usize; 5],
    logarithm: bool,
    least: A,
    read: R,
    store: S,
    power: E,
    log: L,
) {
    let across = SIZE / along;
    let apart = if beside { 1 } else { across };
    let at = if beside { local_index() % along } else { local_index() / across };
    let team = if beside { local_index() / along } else { local_index() % across };
    let row = group_index() * across + team;
    let count = if row < shape[0] { shape[1] } else { 0 };
    let first = spread(row, levels[0], row_extents, x_rows);
    let to = spread(row, levels[0], row_extents, y_rows);

    let mut most = least;
    // The sum of exponentials over that of `most`, or of 0 as long as there is nothing above minus infinity.
    let mut sum = A::lit(0.0);
    for i in (at..count).step_by(AT_ONCE * along) {
        let mut held = [x[first]; AT_ONCE];
        for k in unroll(0..AT_ONCE) {
            held[k] = x[first + spread(i + k * along, levels[1], extents, x_strides)];
        }
        let before = most;
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                most = max(most, read(held[k]));
            }
        }
        let base = if most == least { A::lit(0.0) } else { most };
        if before != least {
            sum *= power(before - base);
        }
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                sum += power(read(held[k]) - base);
            }
        }
    }
    let own = most;
    most = of_any_team(most, at, along, apart, scratch, max);
    if own != least {
        sum *= power(own - most);
    }
    sum = of_any_team(sum, at, along, apart, scratch, |a, b| a + b);
    let shift = if logarithm { log(sum) } else { A::lit(0.0) };
    for i in (at..count).step_by(AT_ONCE * along) {
        let mut held = [x[first]; AT_ONCE];
        for k in unroll(0..AT_ONCE) {
            held[k] = x[first + spread(i + k * along, levels[1], extents, x_strides)];
        }
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                let distance = read(held[k]) - most;
                let value = if logarithm { distance - shift } else { power(distance) / sum };
                y[to + spread(i + k * along, levels[1], extents, y_strides)] = store(value);
            }
        }
    }
}

/// An element of a row, with what is added to it.
#[device]
fn summed<T: Element, A: Number, R: Fn(T) -> A>(
    element: T,
    residual: &[T],
    bias: &[T],
    place: usize,
    vector: usize,
    read: R,
) -> A {
    let mut value = read(element);
    if !residual.is_empty() {
        value += read(residual[place]);
    }
    if !bias.is_empty() {
        value += read(bias[vector]);
    }
    value
}

/// A norm of rows, as [`super::rows::norm`] says, as the closures compute it; `residual` may be empty too.
///
/// * `shape`: rows, elements of each, and the divisor.
/// * `numbers`: epsilon and what `inverse_root` is bounded by, which for doubles is what the root itself must not be below.
/// * `along`, `beside`, `levels`, `row_extents`, `extents`: as for [`softmax`]; the strides are those of `x` and `residual`, of `y` and `sum`, and of `bias`, `gamma` and `beta`.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn norm<
    T: Element,
    W: Element,
    A: Number,
    R: Fn(T) -> A + Copy,
    V: Fn(W) -> A,
    S: Fn(A) -> T,
    C: Fn(usize) -> A,
    F: Fn(f32) -> A,
    Q: Fn(A, A) -> A,
>(
    x: &[T],
    residual: &[T],
    bias: &[T],
    gamma: &[W],
    beta: &[W],
    y: &mut [T],
    sum: &mut [T],
    moments: &mut [A],
    scratch: &mut [A],
    shape: [usize; 3],
    along: usize,
    beside: bool,
    levels: [usize; 2],
    row_extents: [usize; 4],
    extents: [usize; 4],
    x_rows: [usize; 5],
    x_strides: [usize; 5],
    y_rows: [usize; 5],
    y_strides: [usize; 5],
    v_rows: [usize; 5],
    v_strides: [usize; 5],
    numbers: [f32; 2],
    centred: bool,
    wants_sum: bool,
    wants_moments: bool,
    read: R,
    weigh: V,
    store: S,
    count_of: C,
    number: F,
    inverse_root: Q,
) {
    let across = SIZE / along;
    let apart = if beside { 1 } else { across };
    let at = if beside { local_index() % along } else { local_index() / across };
    let team = if beside { local_index() / along } else { local_index() % across };
    let row = group_index() * across + team;
    let count = if row < shape[0] { shape[1] } else { 0 };
    let first = spread(row, levels[0], row_extents, x_rows);
    let to = spread(row, levels[0], row_extents, y_rows);
    let vector = spread(row, levels[0], row_extents, v_rows);

    // What this invocation has met: how many, their mean, and the sum of the squares of their distances from it. The mean of none enters no distance, as in `Moments`.
    let mut met = A::lit(0.0);
    let mut mean = A::lit(0.0);
    let mut squares = A::lit(0.0);
    for i in (at..count).step_by(AT_ONCE * along) {
        let mut held = [x[first]; AT_ONCE];
        for k in unroll(0..AT_ONCE) {
            held[k] = x[first + spread(i + k * along, levels[1], extents, x_strides)];
        }
        let mut values = [A::lit(0.0); AT_ONCE];
        let mut total = A::lit(0.0);
        let mut more = A::lit(0.0);
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                let place = first + spread(i + k * along, levels[1], extents, x_strides);
                let column = vector + spread(i + k * along, levels[1], extents, v_strides);
                values[k] = summed(held[k], residual, bias, place, column, read);
                total += values[k];
                more += A::lit(1.0);
            }
        }
        let middle = if centred { total / more } else { A::lit(0.0) };
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                squares += (values[k] - middle) * (values[k] - middle);
            }
        }
        if centred {
            if met == A::lit(0.0) {
                mean = middle;
            }
            let distance = middle - mean;
            let share = more / (met + more);
            mean += distance * share;
            squares += distance * distance * (met * share);
            met += more;
        }
    }
    if centred {
        let own = mean;
        mean = of_any_team(met * own, at, along, apart, scratch, |a, b| a + b) / count_of(shape[1]);
        let distance = if met == A::lit(0.0) { A::lit(0.0) } else { own - mean };
        squares += distance * distance * met;
    }
    squares = of_any_team(squares, at, along, apart, scratch, |a, b| a + b);
    let factor = inverse_root(squares / count_of(shape[2]) + number(numbers[0]), number(numbers[1]));
    if wants_moments && row < shape[0] && at == 0 {
        moments[2 * row] = mean;
        moments[2 * row + 1] = factor;
    }
    for i in (at..count).step_by(AT_ONCE * along) {
        let mut held = [x[first]; AT_ONCE];
        for k in unroll(0..AT_ONCE) {
            held[k] = x[first + spread(i + k * along, levels[1], extents, x_strides)];
        }
        for k in unroll(0..AT_ONCE) {
            if i + k * along < count {
                let place = first + spread(i + k * along, levels[1], extents, x_strides);
                let column = vector + spread(i + k * along, levels[1], extents, v_strides);
                let result = to + spread(i + k * along, levels[1], extents, y_strides);
                let value = summed(held[k], residual, bias, place, column, read);
                if wants_sum {
                    sum[result] = store(value);
                }
                let mut normed = (value - mean) * factor;
                if !gamma.is_empty() {
                    normed *= weigh(gamma[column]);
                }
                if !beta.is_empty() {
                    normed += weigh(beta[column]);
                }
                y[result] = store(normed);
            }
        }
    }
}
