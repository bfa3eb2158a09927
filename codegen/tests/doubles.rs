//! Elementary functions of `f64`, as lowered for targets that have none, and those of the evaluator: sines, cosines and the error function against exact values, the others against those of Rust, which are
//! within a unit in the last place.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/evaluated.rs"]
mod evaluated;
#[path = "support/exact.rs"]
mod exact;
#[path = "support/fixed.rs"]
mod fixed;
#[allow(dead_code, reason = "it evaluates words; what is of 64 bits the evaluator does here")]
#[path = "support/machine.rs"]
mod machine;
#[allow(dead_code, reason = "for the same reason")]
#[path = "support/pointwise.rs"]
mod pointwise;

use std::sync::LazyLock;

use evaluated::evaluated;
use pointwise::{lowered, pointwise};
use trefoil_codegen::ir::{MathFunction as M, Module, Scalar};
use trefoil_codegen::target::{Feature, Features, Target};

/// Distance in units of the last place of the exact value's nearest double.
fn ulps(result: f64, exact: f64) -> f64 {
    if result == 0.0 && exact == 0.0 && result.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    if result == exact || result.is_nan() && exact.is_nan() {
        return 0.0;
    }
    if !result.is_finite() || !exact.is_finite() {
        return f64::INFINITY;
    }
    let size = exact.abs().max(f64::MIN_POSITIVE);
    let power = f64::from_bits(size.to_bits() & 0x7ff0_0000_0000_0000);
    (result - exact).abs() / (power * f64::EPSILON)
}

/// Arguments; functions of one take the first.
type Pair = (f64, f64);

/// `f` of each of these, by the evaluator.
fn of(module: &Module, pairs: &[Pair]) -> Vec<f64> {
    let words = |numbers: &mut dyn Iterator<Item = f64>| -> Vec<u32> {
        numbers.flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32]).collect()
    };
    // The kernel's workgroup has 64 invocations.
    pairs
        .chunks(64)
        .flat_map(|part| {
            let first = words(&mut part.iter().map(|pair| pair.0));
            let second = words(&mut part.iter().map(|pair| pair.1));
            let count = part.len() as u32;
            let results = vec![0u32; first.len()];
            let bindings = vec![(first, count), (second, count), (results, count)];
            let given = evaluated(module, bindings).swap_remove(2);
            given
                .chunks(2)
                .map(|word| f64::from_bits(u64::from(word[0]) | u64::from(word[1]) << 32))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn between(low: f64, high: f64) -> impl Iterator<Item = f64> {
    (0..4001).map(move |step| low + (high - low) * (f64::from(step) / 4000.0))
}

/// Doubles of all sizes, positive.
fn all_sizes() -> impl Iterator<Item = f64> {
    (0..4000u64).map(|step| f64::from_bits(1 + step * (0x7fef_ffff_ffff_fffe / 4000)))
}

fn odd_ones() -> impl Iterator<Item = f64> {
    let small = f64::MIN_POSITIVE / 8.0;
    [0.0, 1.0, f64::INFINITY, f64::NAN, f64::MAX, small, 1.0 + f64::EPSILON, 1.0 - f64::EPSILON, 1e-300]
        .into_iter()
        .flat_map(|x| [x, -x])
}

fn asinh(x: f64) -> f64 {
    // Rust's doubles it first.
    if x.abs() > 1e150 { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
}

/// By the sine of half of it, which does not cancel near 1.
fn acosh(x: f64) -> f64 {
    2.0 * asinh((0.5 * x - 0.5).sqrt())
}

static QUARTER: LazyLock<fixed::Fixed> = LazyLock::new(exact::quarter);

fn sine(x: f64) -> f64 {
    exact::sine_and_cosine(x, &QUARTER)[0]
}

fn cosine(x: f64) -> f64 {
    exact::sine_and_cosine(x, &QUARTER)[1]
}

/// A function of one argument, its exact value, how far it may be from that, and between which numbers it is looked at besides all sizes.
type Row = (M, fn(f64) -> f64, f64, f64, f64);

const ROWS: [Row; 20] = [
    (M::Exp, f64::exp, 2.0, -746.0, 710.0),
    (M::Exp2, f64::exp2, 2.0, -1076.0, 1024.5),
    (M::ExpM1, f64::exp_m1, 4.0, -40.0, 710.0),
    (M::Ln, f64::ln, 2.0, 0.5, 2.0),
    (M::Log2, f64::log2, 2.0, 0.5, 2.0),
    (M::Log10, f64::log10, 4.0, 0.5, 2.0),
    (M::Ln1p, f64::ln_1p, 2.0, -1.0, 3.0),
    (M::Sinh, f64::sinh, 4.0, -711.0, 711.0),
    (M::Cosh, f64::cosh, 4.0, -711.0, 711.0),
    (M::Tanh, f64::tanh, 4.0, -20.0, 20.0),
    (M::Asinh, asinh, 4.0, -5.0, 5.0),
    (M::Acosh, acosh, 4.0, 1.0, 5.0),
    (M::Atanh, |x| x.abs().atanh().copysign(x), 4.0, -1.0, 1.0),
    (M::Sin, sine, 1.0, -7.0, 7.0),
    (M::Cos, cosine, 1.0, -7.0, 7.0),
    (M::Tan, f64::tan, 2.0, -7.0, 7.0),
    (M::Asin, f64::asin, 2.0, -1.0, 1.0),
    (M::Acos, f64::acos, 2.0, -1.0, 1.0),
    (M::Atan, f64::atan, 2.0, -5.0, 5.0),
    (M::Erf, exact::erf, 1.0, -6.5, 6.5),
];

/// The same of two arguments.
type RowOfTwo = (M, fn(f64, f64) -> f64, f64, fn() -> Vec<Pair>);

const ROWS_OF_TWO: [RowOfTwo; 2] = [(M::Powf, f64::powf, 1.0, powers), (M::Atan2, f64::atan2, 2.0, points)];

/// Each of these with each of those.
fn each(first: &[f64], second: &[f64]) -> Vec<Pair> {
    first.iter().flat_map(|x| second.iter().map(|y| (*x, *y))).collect()
}

/// What functions of two look at besides their own: numbers at which the result is special, whole ones among them.
fn odd_pairs() -> Vec<Pair> {
    let more = [2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e16, -1e16, 9_007_199_254_740_991.0, 4_503_599_627_370_497.5];
    let all: Vec<f64> = odd_ones().chain(more).collect();
    each(&all, &all)
}

/// Bases of all sizes and near 1, with exponents for which the result is a double; and some for which it is not.
fn powers() -> Vec<Pair> {
    let near = (0..60).flat_map(|step| [1.0 + 2f64.powi(-step), 1.0 - 2f64.powi(-step - 1)]);
    let bases = all_sizes().step_by(37).chain(between(0.5, 2.0).step_by(41)).chain(near).filter(|x| *x != 1.0);
    let ends = between(-1090.0, 1040.0).step_by(23);
    let ends: Vec<f64> = ends.chain(between(-2.0, 2.0).step_by(400)).collect();
    let mut pairs: Vec<Pair> = bases.flat_map(|x| ends.iter().map(move |end| (x, end / x.log2()))).collect();
    pairs.extend(each(&[-2.0, -0.7, -1e-30], &[3.0, 4.0, -5.0, 2.5, 1e15 + 1.0]));
    pairs
}

/// Points in all directions, near and far.
fn points() -> Vec<Pair> {
    let sizes: Vec<f64> = all_sizes().step_by(43).collect();
    let turned = |(y, x): Pair| [(y, x), (-y, x), (y, -x), (-y, -x)];
    let rim = between(0.0, 1.0).flat_map(|y| [(y, 1.0), (1.0, y), (y, 0.7), (1e-310 * y, 1e-310)]);
    each(&sizes, &sizes).into_iter().chain(rim).flat_map(turned).collect()
}

#[test]
fn every_elementary_function_is_looked_at() {
    let all = M::ALL.iter().filter(|function| function.is_elementary_of_doubles()).count();
    assert_eq!(all, ROWS.len() + ROWS_OF_TWO.len());
    let mut here = ROWS.iter().map(|row| row.0).chain(ROWS_OF_TWO.iter().map(|row| row.0));
    assert!(here.all(M::is_elementary_of_doubles));
}

/// `y[i] = function(x[i])`, or of two.
fn kernel(function: M) -> Module {
    let mut module = pointwise(Scalar::F64, Scalar::F64, |body, a, b| {
        body.math(function, if function.arguments() == 1 { vec![a] } else { vec![a, b] })
    });
    module.requires = Features::of(&[Feature::Float64, Feature::Int64]);
    module
}

/// Holds a function to its bound for targets that have none.
fn hold_lowered(function: M, most: f64, pairs: &[Pair], exact: &[f64]) {
    let module = kernel(function);
    for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
        let mut plain = lowered(&module, target, module.requires).module;
        assert!(plain.functions.iter().len() > 0, "{} is its own on {}", function.name(), target.name());
        // What is left is evaluated on the host, whose own functions it does not call.
        plain.targets = vec![Target::Cpu];
        let (mut worst, mut at) = (0.0, (0.0, 0.0));
        for ((pair, exact), result) in pairs.iter().zip(exact).zip(of(&plain, pairs)) {
            let error = ulps(result, *exact);
            if error > worst {
                (worst, at) = (error, *pair);
            }
        }
        println!("{:6} {worst:.2} ulp at {at:?} for {}", function.name(), target.name());
        assert!(worst <= most, "{} is off by {worst} ulp at {at:?} for {}", function.name(), target.name());
    }
}

/// And in the evaluator.
fn hold_evaluated(function: M, pairs: &[Pair], exact: &[f64]) {
    for ((pair, exact), result) in pairs.iter().zip(exact).zip(of(&kernel(function), pairs)) {
        let name = function.name();
        assert!(ulps(result, *exact) <= 2.0, "{name} of {pair:?} in the evaluator is {result:e}, not {exact:e}");
    }
}

#[test]
fn functions_made_of_bits_are_accurate() {
    for (function, exact, most, low, high) in ROWS {
        // Exact sines of large angles take long.
        let every = if matches!(function, M::Sin | M::Cos) { 8 } else { 1 };
        let values = between(low, high)
            .chain(between(-1.0, 1.0))
            .chain(between(-1e-3, 1e-3))
            .chain(between(0.7, 1.5))
            .chain(all_sizes().step_by(every))
            .chain(all_sizes().step_by(every).map(|x| -x))
            .chain(odd_ones());
        let pairs: Vec<Pair> = values.map(|x| (x, 0.0)).collect();
        let exact: Vec<f64> = pairs.iter().map(|(x, _)| exact(*x)).collect();
        hold_lowered(function, most, &pairs, &exact);
        hold_evaluated(function, &pairs, &exact);
    }
}

#[test]
fn functions_of_two_made_of_bits_are_accurate() {
    for (function, exact, most, pairs) in ROWS_OF_TWO {
        let pairs: Vec<Pair> = pairs().into_iter().chain(odd_pairs()).collect();
        let exact: Vec<f64> = pairs.iter().map(|(x, y)| exact(*x, *y)).collect();
        hold_lowered(function, most, &pairs, &exact);
        hold_evaluated(function, &pairs, &exact);
    }
}

/// Near multiples of a quarter turn, the nearest double of all among them, little is left of an angle.
#[test]
fn angles_near_quarter_turns_keep_all_of_their_digits() {
    // 6381956970095103 * 2^797 is nearer to a multiple of a quarter turn than any other double.
    let worst = 6_381_956_970_095_103.0 * 2f64.powi(797);
    let turns = (1..1000u32).map(|n| f64::from(n) * std::f64::consts::FRAC_PI_2);
    let large = (0..990).step_by(7).map(|power| 2f64.powi(power) * std::f64::consts::PI);
    let pairs: Vec<Pair> = turns.chain(large).chain([worst]).flat_map(|x| [(x, 0.0), (-x, 0.0)]).collect();
    for (function, exact) in [(M::Sin, sine as fn(f64) -> f64), (M::Cos, cosine)] {
        let exact: Vec<f64> = pairs.iter().map(|(x, _)| exact(*x)).collect();
        // The system's library, which the evaluator calls, is off by several units at the nearest.
        hold_lowered(function, 1.0, &pairs, &exact);
    }
    // What is left of the nearest is known.
    assert!((cosine(worst).abs() / 4.687_165_924_254_628e-19 - 1.0).abs() < 1e-15);
}
