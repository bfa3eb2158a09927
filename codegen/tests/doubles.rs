//! Elementary functions of `f64`, as lowered for targets that have none, against those of Rust, which are within a unit in the last place; and those of the evaluator.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/evaluated.rs"]
mod evaluated;
#[allow(dead_code, reason = "it evaluates words; what is of 64 bits the evaluator does here")]
#[path = "support/machine.rs"]
mod machine;
#[allow(dead_code, reason = "for the same reason")]
#[path = "support/pointwise.rs"]
mod pointwise;

use evaluated::evaluated;
use pointwise::{lowered, pointwise};
use trefoil_codegen::ir::{MathFunction as M, Module, Scalar};
use trefoil_codegen::target::{Feature, Features, Target};

/// Distance in units of the last place of the exact value's nearest double.
fn ulps(result: f64, exact: f64) -> f64 {
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

/// `f` of each of these, by the evaluator.
fn of(module: &Module, x: &[f64]) -> Vec<f64> {
    // The kernel's workgroup has 64 invocations.
    x.chunks(64)
        .flat_map(|part| {
            let words: Vec<u32> = part.iter().flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32]).collect();
            let count = part.len() as u32;
            let results = vec![0u32; words.len()];
            let bindings = vec![(words.clone(), count), (words, count), (results, count)];
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

/// A function, its exact value, how far it may be from that, and between which numbers it is looked at besides all sizes.
type Row = (M, fn(f64) -> f64, f64, f64, f64);

const ROWS: [Row; 13] = [
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
];

#[test]
fn every_elementary_function_is_looked_at() {
    let all = M::ALL.iter().filter(|function| function.is_elementary_of_doubles()).count();
    assert_eq!(all, ROWS.len());
    assert!(ROWS.iter().all(|(function, ..)| function.is_elementary_of_doubles()));
}

#[test]
fn functions_made_of_bits_are_accurate() {
    let features = Features::of(&[Feature::Float64, Feature::Int64]);
    for (function, exact, most, low, high) in ROWS {
        let mut module = pointwise(Scalar::F64, Scalar::F64, |body, a, _| body.math(function, vec![a]));
        module.requires = features;
        let values: Vec<f64> = between(low, high)
            .chain(between(-1.0, 1.0))
            .chain(between(-1e-3, 1e-3))
            .chain(between(0.7, 1.5))
            .chain(all_sizes())
            .chain(all_sizes().map(|x| -x))
            .chain(odd_ones())
            .collect();
        for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
            let mut plain = lowered(&module, target, features).module;
            assert!(plain.functions.iter().len() > 0, "{} is its own on {}", function.name(), target.name());
            // What is left is evaluated on the host, whose own functions it does not call.
            plain.targets = vec![Target::Cpu];
            let given = of(&plain, &values);
            let (mut worst, mut at) = (0.0, 0.0);
            for (x, result) in values.iter().zip(given) {
                let error = ulps(result, exact(*x));
                if error > worst {
                    (worst, at) = (error, *x);
                }
            }
            println!("{:6} {worst:.2} ulp at {at:e} for {}", function.name(), target.name());
            assert!(worst <= most, "{} is off by {worst} ulp at {at:e} for {}", function.name(), target.name());
        }
        for (x, result) in values.iter().zip(of(&module, &values)) {
            assert!(ulps(result, exact(*x)) <= 2.0, "{} of {x:e} in the evaluator is {result:e}", function.name());
        }
    }
}
