//! Reductions of `[lines, n, inner]` along `n`: rows, columns and columns four at a time, whole, and in pieces that are joined.

use std::collections::BTreeSet;
use std::sync::Arc;

use trefoil::artefact::{Feature, Features, Kernel};
use trefoil::dsl::element::Element;
use trefoil::kernels::longs::LongPlace;
use trefoil::kernels::reduce::shapes::{SIZE, Walk};
use trefoil::kernels::statistics::{DoubleExponentials, DoubleMoments, Exponentials, Moments};
use trefoil::kernels::values::Place;
use trefoil::{Buffer, Device, Launch, Result, bf16, f16};

use crate::case::{EPSILON, is_close, kernel};
use crate::numbers::numbers;
use crate::stand::Stand;

/// How much finer than floats doubles are rounded.
const FINER: f64 = f64::EPSILON / f32::EPSILON as f64;
/// Elements before and after a slice that belong to nobody.
const GUARD: usize = 68;

/// An element type that is reduced or comes out.
trait Value: Element {
    /// What nobody may touch, and what spoils a result.
    const POISON: Self;
    fn of(x: f32) -> Self;
    fn number(self) -> f64;

    fn poisoned(self) -> bool {
        self.number().is_nan() || self.number() == Self::POISON.number()
    }
}

macro_rules! values {
    ($($ty:ty: $poison:expr, $of:expr, $number:expr;)*) => {
        $(impl Value for $ty {
            const POISON: Self = $poison;

            fn of(x: f32) -> Self {
                let of: fn(f32) -> Self = $of;
                of(x)
            }

            fn number(self) -> f64 {
                let number: fn(Self) -> f64 = $number;
                number(self)
            }
        })*
    };
}

values! {
    f32: f32::NAN, |x| x, f64::from;
    f16: f16::NAN, f16::from_f32, f16::to_f64;
    bf16: bf16::NAN, bf16::from_f32, bf16::to_f64;
    // Few enough that products of some of them do not wrap, and that many are 0 or equal.
    u32: 0xdead_beef, |x| x.abs() as u32, f64::from;
    i32: 0x5ead_beef, |x| x as i32, f64::from;
    f64: f64::NAN, |x| f64::from(x) / 3.0, |x| x;
    // Equal in their lower words as often as in their upper ones.
    u64: 0xdead_beef_dead_beef, |x| (x.abs() as u64) << 33, |x| x as f64;
    i64: 0x5ead_beef_dead_beef, |x| (x as i64) << 33, |x| x as f64;
}

/// The elements as numbers, and the results.
type Ran = (Vec<f64>, Vec<f64>);

/// How a kernel is launched.
struct Work {
    walk: Walk,
    extents: [usize; 3],
    along: usize,
    pieces: usize,
    divisor: usize,
}

/// Runs a kernel, and where the axis is cut the one that joins the pieces. Gives the elements as numbers and the results.
fn run<T: Value, A: Element, R: Value>(
    device: &Device,
    [reduce, join]: [&'static Kernel; 2],
    work: &Work,
) -> Result<Ran> {
    let [lines, n, inner] = work.extents;
    let elements: Vec<T> = numbers(lines * n * inner, 6, 3.0).into_iter().map(T::of).collect();
    let guarded = |values: &[T]| [&[T::POISON; GUARD], values, &[T::POISON; GUARD]].concat();
    let x = device.buffer(&guarded(&elements))?;
    let results = lines * inner;
    let mut y = device.buffer(&vec![R::POISON; results + 2 * GUARD])?;
    let mut parts: Buffer<A> = device.zeros(results * work.pieces)?;
    let width = if work.walk == Walk::Quads { 4 } else { 1 };
    let across = SIZE / work.along;
    let finish = work.pieces == 1;
    let launch = Launch::of(Arc::new(reduce.specialise(&[("WALK", work.walk as i64)]).unwrap()))
        .read(x.slice(GUARD..GUARD + elements.len())?)?
        .write(y.slice_mut(GUARD..GUARD + results)?)?
        .write(&mut parts)?
        .value([lines, inner, n, work.divisor])?
        .value([1, inner, 1])?
        .value(1usize)?
        .value([lines, 1, 1, 1])?
        .value([n * inner, 1, 1, 1])?
        .value([inner, 1, 1, 1])?
        .value([work.along, n.div_ceil(work.pieces), work.pieces])?
        .value(1usize)?
        .value(finish)?;
    device.run(launch.groups((results / width).div_ceil(across) * work.pieces))?;
    if !finish {
        let mut next: Buffer<A> = device.zeros(1)?;
        let launch = Launch::of(join)
            .read(&parts)?
            .write(y.slice_mut(GUARD..GUARD + results)?)?
            .write(&mut next)?
            .value([results, 1, work.pieces, work.divisor])?
            .value(work.along)?
            .value(0usize)?
            .value(true)?;
        device.run(launch.groups(results.div_ceil(across)))?;
    }
    let words = y.read()?;
    let mut guards = words[..GUARD].iter().chain(&words[GUARD + results..]);
    assert!(guards.all(|value| value.poisoned()), "a guard was overwritten");
    let given = words[GUARD..GUARD + results].iter().map(|value| value.number()).collect();
    Ok((elements.into_iter().map(T::number).collect(), given))
}

/// Its value for some elements, and how far from it a result may be.
type Reference = fn(&[f64], f64) -> (f64, f64);

/// A kernel, the one that joins what it leaves, and what they give.
struct Row {
    names: [&'static str; 2],
    run: fn(&Device, [&'static Kernel; 2], &Work) -> Result<Ran>,
    /// Whether nothing has a result.
    of_none: bool,
    reference: Reference,
}

fn largest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::INFINITY, f64::min)
}

fn first(x: &[f64], value: f64) -> f64 {
    x.iter().position(|x| *x == value).unwrap() as f64
}

fn last(x: &[f64], value: f64) -> f64 {
    x.iter().rposition(|x| *x == value).unwrap() as f64
}

fn size(x: &[f64]) -> f64 {
    sum(&x.iter().map(|x| x.abs()).collect::<Vec<_>>())
}

/// What so many roundings make of a sum of numbers, one after the other at worst.
fn rounded(x: &[f64]) -> f64 {
    (x.len() + 2) as f64 * EPSILON * size(x)
}

/// A sum that is better than a kernel's sum of doubles: pairs of halves, of halves.
fn sum(x: &[f64]) -> f64 {
    match x {
        [] => 0.0,
        [only] => *only,
        more => {
            let (low, high) = more.split_at(more.len() / 2);
            sum(low) + sum(high)
        }
    }
}

const SUM: Reference = |x, n| (sum(x) / n, rounded(x) / n);
const L1: Reference = |x, n| (size(x) / n, rounded(x) / n);
const L2: Reference = |x, _| {
    let squares: Vec<f64> = x.iter().map(|x| x * x).collect();
    let sum = size(&squares);
    // The root halves the relative error.
    (sum.sqrt(), rounded(&squares) / sum.sqrt().max(1e-3) + 4.0 * EPSILON * sum.sqrt())
};
const PRODUCT: Reference = |x, _| {
    let product: f64 = x.iter().product();
    // What a device may take for 0 on the way is none of these.
    (product, (x.len() + 1) as f64 * EPSILON * product.abs() + 1e-30)
};
/// Of long integers, modulo 2^64.
const WRAPPED_PRODUCT: Reference =
    |x, _| (x.iter().fold(1, |product: u64, x| product.wrapping_mul(*x as u64)) as f64, 0.0);
const MAX: Reference = |x, _| (largest(x), 0.0);
const MIN: Reference = |x, _| (smallest(x), 0.0);
const COUNT: Reference = |x, _| (x.iter().filter(|x| **x != 0.0).count() as f64, 0.0);
const ARGMAX: Reference = |x, _| (first(x, largest(x)), 0.0);
const ARGMIN: Reference = |x, _| (first(x, smallest(x)), 0.0);
const LAST_ARGMAX: Reference = |x, _| (last(x, largest(x)), 0.0);
const LAST_ARGMIN: Reference = |x, _| (last(x, smallest(x)), 0.0);
const LOGSUMEXP: Reference = |x, _| {
    let value = sum(&x.iter().map(|x| x.exp()).collect::<Vec<_>>()).ln();
    // Each exponential is within some units, as is the logarithm, and sums round.
    (value, (x.len() + 32) as f64 * EPSILON * value.abs().max(1.0))
};
const VARIANCE: Reference = |x, n| {
    let mean = sum(x) / x.len() as f64;
    let squares = sum(&x.iter().map(|x| (x - mean) * (x - mean)).collect::<Vec<_>>());
    // Numbers are below 3.
    (squares / n, 9.0 * (x.len() + 8) as f64 * EPSILON * 4.0)
};

macro_rules! rows {
    ($($reduce:literal $join:literal <$($ty:ty),*> $of_none:literal $reference:ident;)*) => {
        vec![$(Row { names: [$reduce, $join], run: run::<$($ty),*>, of_none: $of_none, reference: $reference }),*]
    };
}

fn rows() -> Vec<Row> {
    rows! {
        "reduce_sum_f32" "join_sum_f32" <f32, f32, f32> true SUM;
        "reduce_sum_f16" "join_sum_f16" <f16, f32, f16> true SUM;
        "reduce_sum_bf16" "join_sum_bf16" <bf16, f32, bf16> true SUM;
        "reduce_l1_f32" "join_sum_f32" <f32, f32, f32> true L1;
        "reduce_l1_f16" "join_sum_f16" <f16, f32, f16> true L1;
        "reduce_l1_bf16" "join_sum_bf16" <bf16, f32, bf16> true L1;
        "reduce_l2_f32" "join_l2_f32" <f32, f32, f32> true L2;
        "reduce_l2_f16" "join_l2_f16" <f16, f32, f16> true L2;
        "reduce_l2_bf16" "join_l2_bf16" <bf16, f32, bf16> true L2;
        "reduce_product_f32" "join_product_f32" <f32, f32, f32> true PRODUCT;
        "reduce_product_f16" "join_product_f16" <f16, f32, f16> true PRODUCT;
        "reduce_product_bf16" "join_product_bf16" <bf16, f32, bf16> true PRODUCT;
        "reduce_max_f32" "join_max_f32" <f32, f32, f32> false MAX;
        "reduce_max_f16" "join_max_f16" <f16, f32, f16> false MAX;
        "reduce_max_bf16" "join_max_bf16" <bf16, f32, bf16> false MAX;
        "reduce_min_f32" "join_min_f32" <f32, f32, f32> false MIN;
        "reduce_min_f16" "join_min_f16" <f16, f32, f16> false MIN;
        "reduce_min_bf16" "join_min_bf16" <bf16, f32, bf16> false MIN;
        "reduce_logsumexp_f32" "join_logsumexp_f32" <f32, Exponentials, f32> true LOGSUMEXP;
        "reduce_logsumexp_f16" "join_logsumexp_f16" <f16, Exponentials, f16> true LOGSUMEXP;
        "reduce_logsumexp_bf16" "join_logsumexp_bf16" <bf16, Exponentials, bf16> true LOGSUMEXP;
        "reduce_variance_f32" "join_variance_f32" <f32, Moments, f32> false VARIANCE;
        "reduce_variance_f16" "join_variance_f16" <f16, Moments, f16> false VARIANCE;
        "reduce_variance_bf16" "join_variance_bf16" <bf16, Moments, bf16> false VARIANCE;
        "reduce_count_f32" "join_sum_words" <f32, u32, u32> true COUNT;
        "reduce_count_f16" "join_sum_words" <f16, u32, u32> true COUNT;
        "reduce_count_bf16" "join_sum_words" <bf16, u32, u32> true COUNT;
        "reduce_count_words" "join_sum_words" <u32, u32, u32> true COUNT;
        "reduce_argmax_f32" "join_places" <f32, Place, u32> false ARGMAX;
        "reduce_argmax_f16" "join_places" <f16, Place, u32> false ARGMAX;
        "reduce_argmax_bf16" "join_places" <bf16, Place, u32> false ARGMAX;
        "reduce_argmax_u32" "join_places" <u32, Place, u32> false ARGMAX;
        "reduce_argmax_i32" "join_places" <i32, Place, u32> false ARGMAX;
        "reduce_argmin_f32" "join_places" <f32, Place, u32> false ARGMIN;
        "reduce_argmin_f16" "join_places" <f16, Place, u32> false ARGMIN;
        "reduce_argmin_bf16" "join_places" <bf16, Place, u32> false ARGMIN;
        "reduce_argmin_u32" "join_places" <u32, Place, u32> false ARGMIN;
        "reduce_argmin_i32" "join_places" <i32, Place, u32> false ARGMIN;
        "reduce_last_argmax_f32" "join_last_places" <f32, Place, u32> false LAST_ARGMAX;
        "reduce_last_argmax_f16" "join_last_places" <f16, Place, u32> false LAST_ARGMAX;
        "reduce_last_argmax_bf16" "join_last_places" <bf16, Place, u32> false LAST_ARGMAX;
        "reduce_last_argmax_u32" "join_last_places" <u32, Place, u32> false LAST_ARGMAX;
        "reduce_last_argmax_i32" "join_last_places" <i32, Place, u32> false LAST_ARGMAX;
        "reduce_last_argmin_f32" "join_last_places" <f32, Place, u32> false LAST_ARGMIN;
        "reduce_last_argmin_f16" "join_last_places" <f16, Place, u32> false LAST_ARGMIN;
        "reduce_last_argmin_bf16" "join_last_places" <bf16, Place, u32> false LAST_ARGMIN;
        "reduce_last_argmin_u32" "join_last_places" <u32, Place, u32> false LAST_ARGMIN;
        "reduce_last_argmin_i32" "join_last_places" <i32, Place, u32> false LAST_ARGMIN;
        "reduce_sum_words" "join_sum_words" <u32, u32, u32> true SUM;
        "reduce_product_words" "join_product_words" <u32, u32, u32> true PRODUCT;
        "reduce_max_u32" "join_max_u32" <u32, u32, u32> false MAX;
        "reduce_max_i32" "join_max_i32" <i32, i32, i32> false MAX;
        "reduce_min_u32" "join_min_u32" <u32, u32, u32> false MIN;
        "reduce_min_i32" "join_min_i32" <i32, i32, i32> false MIN;
        "reduce_sum_f64" "join_sum_f64" <f64, f64, f64> true SUM;
        "reduce_l1_f64" "join_sum_f64" <f64, f64, f64> true L1;
        "reduce_l2_f64" "join_l2_f64" <f64, f64, f64> true L2;
        "reduce_product_f64" "join_product_f64" <f64, f64, f64> true PRODUCT;
        "reduce_max_f64" "join_max_f64" <f64, f64, f64> false MAX;
        "reduce_min_f64" "join_min_f64" <f64, f64, f64> false MIN;
        "reduce_logsumexp_f64" "join_logsumexp_f64" <f64, DoubleExponentials, f64> true LOGSUMEXP;
        "reduce_variance_f64" "join_variance_f64" <f64, DoubleMoments, f64> false VARIANCE;
        "reduce_count_f64" "join_sum_words" <f64, u32, u32> true COUNT;
        "reduce_count_longs" "join_sum_words" <u64, u32, u32> true COUNT;
        "reduce_sum_longs" "join_sum_longs" <u64, u64, u64> true SUM;
        "reduce_product_longs" "join_product_longs" <u64, u64, u64> true WRAPPED_PRODUCT;
        "reduce_max_u64" "join_max_u64" <u64, u64, u64> false MAX;
        "reduce_max_i64" "join_max_i64" <i64, i64, i64> false MAX;
        "reduce_min_u64" "join_min_u64" <u64, u64, u64> false MIN;
        "reduce_min_i64" "join_min_i64" <i64, i64, i64> false MIN;
        "reduce_argmax_f64" "join_long_places" <f64, LongPlace, u32> false ARGMAX;
        "reduce_argmax_u64" "join_long_places" <u64, LongPlace, u32> false ARGMAX;
        "reduce_argmax_i64" "join_long_places" <i64, LongPlace, u32> false ARGMAX;
        "reduce_argmin_f64" "join_long_places" <f64, LongPlace, u32> false ARGMIN;
        "reduce_argmin_u64" "join_long_places" <u64, LongPlace, u32> false ARGMIN;
        "reduce_argmin_i64" "join_long_places" <i64, LongPlace, u32> false ARGMIN;
        "reduce_last_argmax_f64" "join_last_long_places" <f64, LongPlace, u32> false LAST_ARGMAX;
        "reduce_last_argmax_u64" "join_last_long_places" <u64, LongPlace, u32> false LAST_ARGMAX;
        "reduce_last_argmax_i64" "join_last_long_places" <i64, LongPlace, u32> false LAST_ARGMAX;
        "reduce_last_argmin_f64" "join_last_long_places" <f64, LongPlace, u32> false LAST_ARGMIN;
        "reduce_last_argmin_u64" "join_last_long_places" <u64, LongPlace, u32> false LAST_ARGMIN;
        "reduce_last_argmin_i64" "join_last_long_places" <i64, LongPlace, u32> false LAST_ARGMIN;
    }
}

/// The kernels that are tested here.
pub fn tested() -> BTreeSet<&'static str> {
    rows().into_iter().flat_map(|row| row.names).collect()
}

/// Walks with extents, invocations that share a result, and pieces.
const WORKS: [(Walk, [usize; 3], usize, usize); 16] = [
    (Walk::Rows, [0, 3, 1], 1, 1),
    (Walk::Rows, [2, 0, 1], 4, 1),
    (Walk::Rows, [1, 1, 1], 1, 1),
    (Walk::Rows, [5, 2, 1], 2, 1),
    (Walk::Rows, [13, 17, 1], 1, 3),
    (Walk::Rows, [9, 257, 1], 32, 1),
    (Walk::Rows, [3, 130, 1], 64, 4),
    (Walk::Rows, [1, 4099, 1], 256, 1),
    (Walk::Rows, [2, 4100, 1], 128, 7),
    (Walk::Quads, [2, 5, 8], 1, 1),
    (Walk::Quads, [1, 131, 64], 8, 3),
    (Walk::Quads, [3, 40, 4], 256, 1),
    (Walk::Columns, [3, 5, 7], 1, 1),
    (Walk::Columns, [2, 257, 3], 64, 5),
    (Walk::Columns, [1, 3, 131], 8, 2),
    // More workgroups than one axis of a grid holds.
    (Walk::Rows, [65_537, 1, 1], 256, 1),
];

/// What a kernel of 64 bits needs, by its name.
fn needs(name: &str) -> Features {
    match name {
        name if name.ends_with("f64") || name.contains("long_places") => {
            Features::of(&[Feature::Float64, Feature::Int64])
        }
        name if name.ends_with("longs") || name.ends_with("u64") || name.ends_with("i64") => {
            Features::of(&[Feature::Int64])
        }
        _ => Features::NONE,
    }
}

/// Runs every kernel in all ways that the device can.
pub fn check(stand: &Stand) {
    let there = stand.device.properties().features;
    let rows: Vec<Row> = rows().into_iter().filter(|row| there.contains(needs(row.names[0]))).collect();
    let every: BTreeSet<_> = rows.iter().flat_map(|row| row.names).collect();
    stand.device.load(&every.into_iter().map(kernel).collect::<Vec<_>>()).unwrap();
    for row in rows {
        for (index, (walk, extents, along, pieces)) in WORKS.into_iter().enumerate() {
            let [lines, n, inner] = extents;
            let many = index + 1 == WORKS.len() && row.names[0] != "reduce_sum_f32";
            // Products of so many overflow.
            let too_large = row.names[0].starts_with("reduce_product") && n > 200;
            // How elements of 64 bits are gone over is one source for all of them, which sums go through.
            let wide = needs(row.names[0]) != Features::NONE;
            let elsewhere = wide && walk != Walk::Rows && !row.names[0].starts_with("reduce_sum");
            if many || too_large || elsewhere || n == 0 && !row.of_none {
                continue;
            }
            // Each workgroup also joins what its invocations have.
            if !stand.affords(16 * (lines * n * inner + 256 * lines * inner * pieces)) {
                continue;
            }
            let divides = ["reduce_sum_f", "reduce_l1", "reduce_var"].iter().any(|name| row.names[0].starts_with(name));
            let divisor = if divides { n.max(1) } else { 1 };
            let place = format!("{}, {walk:?} of {extents:?} by {along} in {pieces}, on {}", row.names[0], stand.name);
            let work = Work { walk, extents, along, pieces, divisor };
            let (x, given) = (row.run)(&stand.device, row.names.map(kernel), &work)
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            let joined = (pieces > 1).then(|| kernel(row.names[1]));
            stand.ran([kernel(row.names[0])].into_iter().chain(joined), &place);
            // Half a unit of a half, and what rounds to one; of a bfloat16, which is as small as a float.
            let (halves, smallest) = match row.names[0] {
                name if name.ends_with("bf16") => (1.0 / 256.0, 0.0),
                name if name.ends_with("f16") => (1.0 / 2048.0, 1.0 / 8192.0),
                _ => (0.0, 0.0),
            };
            for (result, given) in given.into_iter().enumerate() {
                let first = result / inner * n * inner + result % inner;
                let along: Vec<f64> = (0..n).map(|j| x[first + j * inner]).collect();
                let (value, tolerance) = (row.reference)(&along, divisor as f64);
                // Doubles are rounded so much more finely, and are not flushed.
                let tolerance = if row.names[0].ends_with("f64") { tolerance * FINER } else { tolerance };
                // The largest half is 65504: what is surely beyond it is infinite, and what is beyond it by less than the tolerance may be either.
                let overflows = |size: f64| smallest > 0.0 && size >= 65_520.0;
                let infinite = overflows(value.abs()) && given == f64::INFINITY.copysign(value);
                let finite = !overflows(value.abs() - tolerance)
                    && is_close(given, value, tolerance + halves * (value.abs() + smallest));
                assert!(
                    infinite || finite,
                    "{place}: result {result} is {given}, {value} within {tolerance:e} expected"
                );
            }
            assert!(lines > 0 || x.is_empty());
        }
    }
}
