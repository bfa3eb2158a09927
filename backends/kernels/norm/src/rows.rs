//! Rows whose elements follow on each other, four at a time.
//!
//! An invocation holds `4 * HELD` elements of its row in registers and asks for all of them before it uses the first. What a team cannot hold, which only teams of a whole workgroup with the largest `HELD`
//! leave, is read again, most of it from a cache: twice in all for softmax and norms of squares, three times for norms that take off the mean.
//!
//! Everything is computed in `f32`. A row starts at a multiple of four elements and has a multiple of four of them.

use trefoil_dsl::prelude::*;

use trefoil_kernels_common::team::{SIZE, largest_of_team, spread, standing, sum_of_team};

/// The least `HELD` of instances for `f32` that take rows of any length.
#[device]
pub const LARGEST: usize = 16;
/// The same for halves; there are no others.
#[device]
pub const LARGEST_OF_HALVES: usize = 8;
/// Invocations of the workgroups that hold the longest rows: two take the registers of a multiprocessor, with [`LARGEST`] quads each.
#[device]
pub const WIDE: usize = 512;
/// Invocations of the workgroups that hold rows of up to 32,768 elements for a norm: one takes the registers of a multiprocessor, with [`HELD_BY_WIDEST`] quads each, and asks for its whole row at once.
#[device]
pub const WIDEST: usize = 1024;
/// Quads that an invocation of these holds.
#[device]
pub const HELD_BY_WIDEST: usize = 8;
/// Reads of what is not held before the first is used.
#[device]
const AT_ONCE: usize = 4;

/// Four elements, or zeros where they are not inside. There is no branch around the read: compilers wait for a read in a branch before they go on.
#[device]
pub fn quad<T: Float>(x: &[T], index: usize, inside: bool) -> Vec4<f32> {
    x.vec4(select(inside, index, x.len())).to_f32()
}

/// The same, where conditions are wanted again after the read. CUDA has registers for seven of them and waits for reads to free one, but not for reads under a condition that it sees; of the kernels here those of [`WIDE`] are
/// for CUDA alone.
#[device]
fn quad_again<T: Float, const ACROSS: usize>(x: &[T], index: usize, inside: bool) -> Vec4<f32> {
    if ACROSS > SIZE { select(inside, x.vec4(index).to_f32(), Vec4::splat(0.0)) } else { quad(x, index, inside) }
}

/// The sum of four numbers.
#[device]
pub fn total(x: Vec4<f32>) -> f32 {
    (x.x + x.y) + (x.z + x.w)
}

/// The largest of four numbers.
#[device]
fn largest(x: Vec4<f32>) -> f32 {
    max(max(x.x, x.y), max(x.z, x.w))
}

/// The softmax of rows, or its logarithm, by workgroups of `ACROSS` invocations. Rows may be longer than what their teams hold if `HELD` is at least `MOST`.
///
/// * `shape`: rows, and elements of each.
/// * `bits`: `1 << bits` invocations share a row.
/// * `levels`, `extents`, `strides`: where rows start in `x`, as for [`spread`]; in `y` they follow on each other.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn softmax<T: Float, const ACROSS: usize, const HELD: usize, const MOST: usize>(
    x: &[T],
    y: &mut [T],
    scratch: &mut [f32],
    shape: [usize; 2],
    bits: usize,
    levels: usize,
    extents: [usize; 4],
    strides: [usize; 5],
    logarithm: bool,
) {
    let along = 1 << bits;
    let at = standing() & (along - 1);
    let row = group_index() * (ACROSS >> bits) + (standing() >> bits);
    let quads = if row < shape[0] { shape[1] / 4 } else { 0 };
    let first = spread(row, levels, extents, strides) / 4;
    let to = row * (shape[1] / 4);

    let mut held = [Vec4::splat(0.0); HELD];
    for k in unroll(0..HELD) {
        held[k] = quad_again::<T, ACROSS>(x, first + at + k * along, at + k * along < quads);
    }
    let mut most = f32::NEG_INFINITY;
    for k in unroll(0..HELD) {
        held[k] = select(at + k * along < quads, held[k], Vec4::splat(f32::NEG_INFINITY));
        most = max(most, largest(held[k]));
    }
    // The sum of the exponentials of what is not held, over that of `most`.
    let mut sum = 0.0;
    if HELD >= MOST {
        for i in (at + HELD * along..quads).step_by(AT_ONCE * along) {
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                read[k] = quad_again::<T, ACROSS>(x, first + i + k * along, i + k * along < quads);
            }
            let before = most;
            for k in unroll(0..AT_ONCE) {
                read[k] = select(i + k * along < quads, read[k], Vec4::splat(f32::NEG_INFINITY));
                most = max(most, largest(read[k]));
            }
            // As long as all are minus infinity, so are their distances from 0.
            let base = select(most == f32::NEG_INFINITY, 0.0, most);
            sum *= exp(select(before == f32::NEG_INFINITY, 0.0, before - base));
            for k in unroll(0..AT_ONCE) {
                sum += total(exp(read[k] - Vec4::splat(base)));
            }
        }
    }
    let own = most;
    most = largest_of_team::<ACROSS>(most, bits, 0, scratch);
    if HELD >= MOST {
        sum *= exp(select(own == f32::NEG_INFINITY, 0.0, own - most));
    }
    for k in unroll(0..HELD) {
        let distance = held[k] - Vec4::splat(most);
        let power = exp(distance);
        sum += total(power);
        held[k] = select(logarithm, distance, power);
    }
    sum = sum_of_team::<ACROSS>(sum, bits, ACROSS, scratch);
    let scale = select(logarithm, 1.0, 1.0 / sum);
    let shift = select(logarithm, ln(sum), 0.0);
    for k in unroll(0..HELD) {
        if at + k * along < quads {
            y.set_vec4(to + at + k * along, Vec4::<T>::from_f32(held[k] * scale - Vec4::splat(shift)));
        }
    }
    if HELD >= MOST {
        for i in (at + HELD * along..quads).step_by(AT_ONCE * along) {
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                read[k] = quad_again::<T, ACROSS>(x, first + i + k * along, i + k * along < quads);
            }
            for k in unroll(0..AT_ONCE) {
                let distance = read[k] - Vec4::splat(most);
                let value = select(logarithm, distance, exp(distance)) * scale - Vec4::splat(shift);
                if i + k * along < quads {
                    y.set_vec4(to + i + k * along, Vec4::<T>::from_f32(value));
                }
            }
        }
    }
}

/// Four elements of `x` and, if there is a residual, with those of `residual` and `bias` added.
#[device]
fn summed<T: Float, const RESIDUAL: bool>(
    x: &[T],
    residual: &[T],
    bias: &[T],
    index: usize,
    column: usize,
    inside: bool,
) -> Vec4<f32> {
    let mut value = quad(x, index, inside);
    if RESIDUAL {
        value = value + quad(residual, index, inside) + quad(bias, column, inside);
    }
    value
}

/// 1 / sqrt(x), or `bound` where that is larger; a NaN stays one, which a minimum, as drivers take this for one, would lose.
#[device]
pub fn bounded_inverse_root(x: f32, bound: f32) -> f32 {
    let exact = inverse_sqrt(x);
    select(is_nan(x), x, select(exact > bound, bound, exact))
}

/// A norm of rows, by workgroups of `ACROSS` invocations, which hold `BESIDE` quads of `gamma` and of `beta` besides those of the row: y = (v - mean) * factor * gamma + beta for v = x, or with `RESIDUAL` v = x + residual + bias, where
/// factor = 1 / sqrt(sum of (v - mean)^2 / divisor + epsilon), at most a bound; mean is 0 unless the row is centred. An empty `bias`, `gamma` or `beta` stands for none. Rows may be longer than what their
/// teams hold if `HELD` is at least `MOST`. `AHEAD`: `gamma` and `beta` lie as the row does, and are read a quad ahead, for which no registers but those of two quads are wanted.
///
/// * `shape`: rows, elements of each, and the divisor.
/// * `bits`: `1 << bits` invocations share a row.
/// * `levels`, `extents`: over what rows are spread, with `x_strides` in `x` and `residual` and `v_strides` in the other operands, as for [`spread`]; in `y` and `sum` rows follow on each other.
/// * `runs`: so many neighbours share an element of `gamma` and `beta`, and the stride from one to the next; of 1 and 1, and only then `bias` may be there, they lie as the row does.
/// * `numbers`: epsilon and the bound of the factor.
/// * `centred`, `wants_sum`, `wants_moments`: whether the mean is taken off; with `RESIDUAL`, whether v goes to `sum`; whether mean and factor go to `moments`.
#[device]
#[expect(clippy::too_many_arguments, reason = "it is a kernel's body")]
pub fn norm<
    T: Float,
    W: Float,
    const ACROSS: usize,
    const HELD: usize,
    const MOST: usize,
    const BESIDE: usize,
    const AHEAD: bool,
    const RESIDUAL: bool,
>(
    x: &[T],
    residual: &[T],
    bias: &[T],
    gamma: &[W],
    beta: &[W],
    y: &mut [T],
    sum: &mut [T],
    moments: &mut [f32],
    scratch: &mut [f32],
    shape: [usize; 3],
    bits: usize,
    levels: usize,
    extents: [usize; 4],
    x_strides: [usize; 5],
    v_strides: [usize; 5],
    runs: [usize; 2],
    numbers: [f32; 2],
    centred: bool,
    wants_sum: bool,
    wants_moments: bool,
) {
    let along = 1 << bits;
    let at = standing() & (along - 1);
    let row = group_index() * (ACROSS >> bits) + (standing() >> bits);
    let quads = if row < shape[0] { shape[1] / 4 } else { 0 };
    let first = spread(row, levels, extents, x_strides) / 4;
    let vector = spread(row, levels, extents, v_strides);
    let column = vector / 4;
    let to = row * (shape[1] / 4);

    let mut held = [Vec4::splat(0.0); HELD];
    for k in unroll(0..HELD) {
        held[k] = quad(x, first + at + k * along, at + k * along < quads);
    }
    if RESIDUAL {
        // As many at a time as leave registers for the row.
        for part in unroll(0..HELD.div_ceil(BESIDE)) {
            let mut other = [Vec4::splat(0.0); BESIDE];
            for j in unroll(0..BESIDE) {
                let k = part * BESIDE + j;
                if k < HELD {
                    other[j] = quad(residual, first + at + k * along, at + k * along < quads);
                }
            }
            for j in unroll(0..BESIDE) {
                let k = part * BESIDE + j;
                if k < HELD {
                    held[k] = held[k] + other[j] + quad(bias, column + at + k * along, at + k * along < quads);
                    if wants_sum && at + k * along < quads {
                        sum.set_vec4(to + at + k * along, Vec4::<T>::from_f32(held[k]));
                    }
                }
            }
        }
    }
    // What is divided by is known before what is divided has come.
    let count = if HELD >= MOST { min(shape[1], 4 * HELD * along) } else { shape[1] };
    let (inverse_count, inverse_divisor) = (1.0 / count as f32, 1.0 / shape[2] as f32);
    // The mean of what is held: all, or a good part, so that nothing cancels below.
    let mut mean = 0.0;
    if centred {
        let mut sums = 0.0;
        for k in unroll(0..HELD) {
            sums += total(held[k]);
        }
        mean = sum_of_team::<ACROSS>(sums, bits, 0, scratch) * inverse_count;
    }
    let mut squares = 0.0;
    for k in unroll(0..HELD) {
        held[k] -= Vec4::splat(mean);
        squares += select(at + k * along < quads, held[k].dot(held[k]), 0.0);
    }
    let mut drift = 0.0;
    if HELD >= MOST {
        for i in (at + HELD * along..quads).step_by(AT_ONCE * along) {
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                let inside = i + k * along < quads;
                read[k] =
                    summed::<T, RESIDUAL>(x, residual, bias, first + i + k * along, column + i + k * along, inside);
            }
            for k in unroll(0..AT_ONCE) {
                if RESIDUAL && wants_sum && i + k * along < quads {
                    sum.set_vec4(to + i + k * along, Vec4::<T>::from_f32(read[k]));
                }
                let inside = i + k * along < quads;
                let value = select(inside, read[k] - Vec4::splat(mean), Vec4::splat(0.0));
                drift += total(value);
                squares += value.dot(value);
            }
        }
    }
    squares = sum_of_team::<ACROSS>(squares, bits, ACROSS, scratch);
    if HELD >= MOST {
        if centred && shape[1] > 4 * HELD * along {
            // By how much the mean of all differs from that of what is held.
            drift = sum_of_team::<ACROSS>(drift, bits, 2 * ACROSS, scratch) / shape[1] as f32;
            // A NaN stays one, which a maximum would lose.
            let rest = squares - drift * drift * shape[1] as f32;
            squares = select(is_nan(rest), rest, max(rest, 0.0));
        } else {
            drift = 0.0;
        }
    }
    let factor = bounded_inverse_root(squares * inverse_divisor + numbers[0], numbers[1]);
    if wants_moments && row < shape[0] && at == 0 {
        moments[2 * row] = mean + drift;
        moments[2 * row + 1] = factor;
    }
    if AHEAD {
        let mut stretch = quad(gamma, column + at, at < quads);
        let mut shift = quad(beta, column + at, at < quads);
        for k in unroll(0..HELD) {
            let (of_this, to_this) = (stretch, shift);
            if k + 1 < HELD {
                let inside = at + (k + 1) * along < quads;
                stretch = quad(gamma, column + at + (k + 1) * along, inside);
                shift = quad(beta, column + at + (k + 1) * along, inside);
            }
            let factors = select(gamma.is_empty(), Vec4::splat(1.0), of_this) * factor;
            let value = (held[k] - Vec4::splat(drift)) * factors + to_this;
            if at + k * along < quads {
                y.set_vec4(to + at + k * along, Vec4::<T>::from_f32(value));
            }
        }
    } else if runs[0] == 1 {
        // As many at a time as leave registers for the row.
        for part in unroll(0..HELD.div_ceil(BESIDE)) {
            let mut stretches = [Vec4::splat(0.0); BESIDE];
            let mut shifts = [Vec4::splat(0.0); BESIDE];
            for j in unroll(0..BESIDE) {
                let k = part * BESIDE + j;
                if k < HELD {
                    let inside = at + k * along < quads;
                    stretches[j] = quad(gamma, column + at + k * along, inside);
                    shifts[j] = quad(beta, column + at + k * along, inside);
                }
            }
            for j in unroll(0..BESIDE) {
                let k = part * BESIDE + j;
                if k < HELD && at + k * along < quads {
                    let stretch = select(gamma.is_empty(), Vec4::splat(1.0), stretches[j]);
                    let value = (held[k] - Vec4::splat(drift)) * factor * stretch + shifts[j];
                    y.set_vec4(to + at + k * along, Vec4::<T>::from_f32(value));
                }
            }
        }
    } else {
        for k in unroll(0..HELD) {
            let place = vector + (at + k * along) * 4 / runs[0] * runs[1];
            let stretch = select(gamma.is_empty(), 1.0, gamma[place].to_f32());
            let shift = beta[place].to_f32();
            if at + k * along < quads {
                let value = (held[k] - Vec4::splat(drift)) * (factor * stretch) + Vec4::splat(shift);
                y.set_vec4(to + at + k * along, Vec4::<T>::from_f32(value));
            }
        }
    }
    if HELD >= MOST {
        for i in (at + HELD * along..quads).step_by(AT_ONCE * along) {
            let mut read = [Vec4::splat(0.0); AT_ONCE];
            for k in unroll(0..AT_ONCE) {
                let inside = i + k * along < quads;
                read[k] =
                    summed::<T, RESIDUAL>(x, residual, bias, first + i + k * along, column + i + k * along, inside);
            }
            for k in unroll(0..AT_ONCE) {
                let inside = i + k * along < quads;
                let place = vector + (i + k * along) * 4 / runs[0] * runs[1];
                let mut stretch = Vec4::splat(1.0);
                if !gamma.is_empty() {
                    stretch = if runs[0] == 1 {
                        quad(gamma, column + i + k * along, inside)
                    } else {
                        Vec4::splat(gamma[place].to_f32())
                    };
                }
                let shift = if runs[0] == 1 {
                    quad(beta, column + i + k * along, inside)
                } else {
                    Vec4::splat(beta[place].to_f32())
                };
                if inside {
                    let value = (read[k] - Vec4::splat(mean + drift)) * factor * stretch + shift;
                    y.set_vec4(to + i + k * along, Vec4::<T>::from_f32(value));
                }
            }
        }
    }
}
