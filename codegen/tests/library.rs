//! What the library's functions compute, as lowered for targets that have none of their own: errors measured against `f64`, bits against plain Rust.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

#[path = "support/evaluated.rs"]
mod evaluated;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/pointwise.rs"]
mod pointwise;

use evaluated::evaluated;
use machine::Machine;
use pointwise::{lowered, pointwise, run};
use trefoil_codegen::ir::builder::{ModuleBuilder, element};
use trefoil_codegen::ir::{Builtin, MathFunction as M, Precision, Root, Scalar, Type};
use trefoil_codegen::meaning;
use trefoil_codegen::target::{Features, Target};

/// Distance in units of the last place of the nearer float, given the exact value.
fn ulps(result: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if result.is_nan() || nearest.is_nan() {
        return if result.is_nan() && nearest.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if result == nearest {
        return 0.0;
    }
    if result.is_infinite() || nearest.is_infinite() {
        return f64::INFINITY;
    }
    let size = nearest.abs().max(f32::MIN_POSITIVE);
    let unit = f64::from(f32::from_bits(size.to_bits() + 1)) - f64::from(size);
    (f64::from(result) - exact).abs() / unit
}

/// The error function in f64: its series near 0, the continued fraction of its complement further out.
fn erf(x: f64) -> f64 {
    let t = x.abs();
    let value = if t < 3.0 {
        let (mut term, mut sum, mut n) = (t, t, 0.0);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -t * t / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let mut fraction = 0.0;
        for n in (1..=60).rev() {
            fraction = f64::from(n) / 2.0 / (t + fraction);
        }
        1.0 - (-t * t).exp() / (t + fraction) / std::f64::consts::PI.sqrt()
    };
    value.copysign(x)
}

/// The largest error of a function as lowered for a target, over some values.
fn worst(function: M, target: Target, values: impl Iterator<Item = f32>, exact: impl Fn(f64) -> f64) -> (f64, f32) {
    let module = pointwise(Scalar::F32, Scalar::F32, |body, a, _| body.math(function, vec![a]));
    let lowered = lowered(&module, target, Features::NONE);
    let bits: Vec<u32> = values.map(f32::to_bits).collect();
    let mut worst = (0.0, 0.0);
    for (x, result) in bits.iter().zip(run(&lowered, &bits, &bits)) {
        let x = f32::from_bits(*x);
        let error = ulps(f32::from_bits(result), exact(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

fn between(low: f32, high: f32) -> impl Iterator<Item = f32> {
    (0..20_001).map(move |step| low + (high - low) * (step as f32 / 20_000.0))
}

/// Floats of all sizes, positive.
fn all_sizes() -> impl Iterator<Item = f32> {
    (0..20_000u32).map(|step| f32::from_bits(1 + step * (0x7f7f_ffff / 20_000)))
}

fn odd_ones() -> impl Iterator<Item = f32> {
    [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1e-40, -1e-40].into_iter()
}

#[test]
fn functions_for_the_cpu_are_accurate() {
    let check = |function: M, values: Box<dyn Iterator<Item = f32>>, exact: fn(f64) -> f64, most: f64| {
        let (error, at) = worst(function, Target::Cpu, values, exact);
        println!("{:8} {error:.2} ulp at {at:e}", function.name());
        assert!(error <= most, "{} is off by {error} ulp at {at:e}", function.name());
    };
    check(M::Exp, Box::new(between(-87.0, 88.7).chain(between(-1.0, 1.0)).chain(odd_ones())), f64::exp, 2.0);
    check(M::Exp2, Box::new(between(-126.0, 127.9).chain(odd_ones())), f64::exp2, 2.0);
    check(M::Ln, Box::new(all_sizes().chain(between(0.5, 2.0)).chain(odd_ones())), f64::ln, 2.0);
    check(M::Log2, Box::new(all_sizes().chain(between(0.5, 2.0)).chain(odd_ones())), f64::log2, 4.0);
    check(M::Tanh, Box::new(between(-12.0, 12.0).chain(between(-0.7, 0.7)).chain(odd_ones())), f64::tanh, 3.0);
    check(M::Erf, Box::new(between(-6.0, 6.0).chain(between(-1.0, 1.0)).chain(odd_ones())), erf, 4.0);
    check(M::Sin, Box::new(between(-0.78, 0.78)), f64::sin, 2.0);
    check(M::Tan, Box::new(between(-0.78, 0.78)), f64::tan, 4.0);
}

/// Near a multiple of pi a sine is small, and its error is measured in units of 1.
#[test]
fn sines_of_large_angles_are_accurate() {
    for (function, exact) in [(M::Sin, f64::sin as fn(f64) -> f64), (M::Cos, f64::cos)] {
        let module = pointwise(Scalar::F32, Scalar::F32, |body, a, _| body.math(function, vec![a]));
        let lowered = lowered(&module, Target::Cpu, Features::NONE);
        let bits: Vec<u32> = between(-12_000.0, 12_000.0).map(f32::to_bits).collect();
        for (x, result) in bits.iter().zip(run(&lowered, &bits, &bits)) {
            let x = f32::from_bits(*x);
            let error = (f64::from(f32::from_bits(result)) - exact(f64::from(x))).abs();
            assert!(error < 2.0 * f64::from(f32::EPSILON), "{} of {x} is off by {error:e}", function.name());
        }
    }
}

#[test]
fn functions_that_gpus_lack_are_accurate() {
    for target in [Target::Wgsl, Target::Spirv, Target::Cuda] {
        let (error, at) = worst(M::Erf, target, between(-6.0, 6.0).chain(odd_ones()), erf);
        assert!(error <= 4.0, "erf is off by {error} ulp at {at:e}");
    }
    for target in [Target::Wgsl, Target::Spirv] {
        let (error, at) = worst(M::Tanh, target, between(-100.0, 100.0).chain(odd_ones()), f64::tanh);
        assert!(error <= 3.0, "tanh is off by {error} ulp at {at:e}");
        for (function, exact) in [(M::Ln, f64::ln as fn(f64) -> f64), (M::Log2, f64::log2)] {
            let (error, at) = worst(function, target, all_sizes().chain(between(0.5, 2.0)).chain(odd_ones()), exact);
            assert!(error <= 4.0, "{} is off by {error} ulp at {at:e}", function.name());
        }
        // In units of the results' last places, near multiples of a quarter turn too.
        for (function, exact) in [(M::Sin, f64::sin as fn(f64) -> f64), (M::Cos, f64::cos), (M::Tan, f64::tan)] {
            let quarters = (-6_000..6_000).map(|quarter| (f64::from(quarter) * std::f64::consts::FRAC_PI_2) as f32);
            let (error, at) = worst(function, target, between(-10_000.0, 10_000.0).chain(quarters), exact);
            assert!(error <= 5.0, "{} is off by {error} ulp at {at:e}", function.name());
        }
        let module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| body.math(M::Powf, vec![a, b]));
        let lowered = lowered(&module, target, Features::NONE);
        let inf = f32::INFINITY;
        let values = [-inf, -2.0f32, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, inf];
        let (x, z): (Vec<u32>, Vec<u32>) =
            values.iter().flat_map(|a| values.iter().map(move |b| (a.to_bits(), b.to_bits()))).unzip();
        for ((a, b), result) in x.iter().zip(&z).zip(run(&lowered, &x, &z)) {
            let (a, b) = (f32::from_bits(*a), f32::from_bits(*b));
            let (result, wanted) = (f32::from_bits(result), a.powf(b));
            let is_right = match wanted {
                0.0 | f32::INFINITY | f32::NEG_INFINITY => result.to_bits() == wanted.to_bits(),
                _ => ulps(result, f64::from(wanted)) <= 1.0,
            };
            assert!(is_right, "{a}.powf({b}) is {result} on {}", target.name());
        }
    }
}

/// The exact value of a function of one number, where it is made of others, with the numbers to try it at and the error that is stated for it.
type Row = (M, fn(f64) -> f64, f64, f32, f32);

const ELEMENTARY: [Row; 13] = [
    (M::Asin, f64::asin, 3.0, -1.0, 1.0),
    (M::Acos, f64::acos, 3.0, -1.0, 1.0),
    (M::Sinh, f64::sinh, 5.0, -89.0, 89.0),
    (M::Cosh, f64::cosh, 5.0, -89.0, 89.0),
    (M::Asinh, f64::asinh, 4.0, -20_000.0, 20_000.0),
    (M::Acosh, f64::acosh, 4.0, 1.0, 20_000.0),
    (M::Atanh, f64::atanh, 4.0, -1.0, 1.0),
    (M::ExpM1, f64::exp_m1, 3.0, -20.0, 88.7),
    (M::Ln1p, f64::ln_1p, 4.0, -1.0, 100.0),
    (M::Log10, f64::log10, 4.0, 1e-3, 100.0),
    (M::Cbrt, f64::cbrt, 2.0, -1000.0, 1000.0),
    (M::Round, f64::round, 0.0, -10.0, 10.0),
    (M::Fract, f64::fract, 0.0, -10.0, 10.0),
];

#[test]
fn elementary_functions_are_accurate() {
    for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
        for (function, exact, most, low, high) in ELEMENTARY {
            let values = (between(low, high).step_by(9))
                .chain(between(-1.0, 1.0).step_by(9))
                .chain(between(-0.01, 0.01).step_by(9))
                .chain(odd_ones().filter(|x| x.abs() != 1e-40))
                .chain(all_sizes().filter(|x| *x >= f32::MIN_POSITIVE).step_by(9))
                .chain([1e-38, -1e-30, 0.5, -0.5, 1.5, -2.5, 0.499_999_97, 8_388_609.0, 80.0, 80.1, 1.000_001]);
            let (error, at) = worst(function, target, values, exact);
            println!("{:8} {error:.2} ulp at {at:e} on {}", function.name(), target.name());
            assert!(error <= most, "{} is off by {error} ulp at {at:e} on {}", function.name(), target.name());
        }
    }
}

/// What is odd keeps the sign of a zero.
#[test]
fn zeros_keep_their_signs() {
    let odd =
        [M::Sin, M::Tan, M::Asin, M::Sinh, M::Tanh, M::Asinh, M::Atanh, M::ExpM1, M::Ln1p, M::Cbrt, M::Erf, M::Round];
    for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
        for function in odd {
            let module = pointwise(Scalar::F32, Scalar::F32, |body, a, _| body.math(function, vec![a]));
            let zeros = [0.0f32.to_bits(), (-0.0f32).to_bits()];
            let found = run(&lowered(&module, target, Features::NONE), &zeros, &zeros);
            assert_eq!(found, zeros, "{} on {}", function.name(), target.name());
        }
    }
}

#[test]
fn the_evaluator_is_exact() {
    for (function, exact, _, low, high) in ELEMENTARY {
        let x: Vec<u32> = between(low, high).step_by(320).chain(odd_ones()).map(f32::to_bits).take(64).collect();
        let module = pointwise(Scalar::F32, Scalar::F32, |body, a, _| body.math(function, vec![a]));
        let count = x.len() as u32;
        let bindings = vec![(x.clone(), count), (x.clone(), count), (vec![0; x.len()], count)];
        for (x, result) in x.iter().zip(&evaluated(&module, bindings)[2]) {
            let x = f32::from_bits(*x);
            let error = ulps(f32::from_bits(*result), exact(f64::from(x)));
            assert!(error <= 1.0, "{} of {x:e} is off by {error} ulp", function.name());
        }
    }
}

/// Numbers of every kind, for functions of two.
const KINDS: [f32; 14] =
    [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 7.25, 1e-30, 3e38, -2e20, 1e20, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

#[test]
fn functions_of_two_numbers_have_their_values() {
    let (x, z): (Vec<u32>, Vec<u32>) =
        KINDS.iter().flat_map(|a| KINDS.iter().map(move |b| (a.to_bits(), b.to_bits()))).unzip();
    type OfTwo = (M, fn(f32, f32) -> f64, f64);
    let rows: [OfTwo; 4] = [
        (M::Hypot, |a, b| f64::from(a).hypot(b.into()), 3.0),
        (M::Copysign, |a, b| a.copysign(b).into(), 0.0),
        (M::RemEuclid, |a, b| a.rem_euclid(b).into(), 0.0),
        (M::Step, |edge, x| if edge <= x { 1.0 } else { 0.0 }, 0.0),
    ];
    for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
        for (function, exact, most) in rows {
            let module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| body.math(function, vec![a, b]));
            let results = run(&lowered(&module, target, Features::NONE), &x, &z);
            for ((a, b), result) in x.iter().zip(&z).zip(results) {
                let (a, b, result) = (f32::from_bits(*a), f32::from_bits(*b), f32::from_bits(result));
                // No `f32` holds the integer part of a larger quotient, and only the processor's own remainder is exact without it. Others are smaller than the right side.
                let is_too_large = a.is_finite() && b != 0.0 && (a / b).abs() >= 4_194_304.0;
                if function == M::RemEuclid && target != Target::Cpu && is_too_large {
                    let range = 0.0..=b.abs();
                    assert!(range.contains(&result), "rem_euclid({a}, {b}) is {result:e} on {}", target.name());
                    continue;
                }
                let error = ulps(result, exact(a, b));
                assert!(error <= most, "{}({a}, {b}) is {result:e} on {}", function.name(), target.name());
            }
        }
    }
}

/// A kernel of one invocation: a function of values given as bits, each a scalar or vector in a binding of its own.
fn value_of(function: M, target: Target, first: (u8, Scalar), given: &[&[u32]]) -> Vec<u32> {
    let mut module = ModuleBuilder::new("one", [1, 1, 1]);
    let typed = |lanes: u8, scalar| if lanes == 1 { Type::Scalar(scalar) } else { Type::vector(lanes, scalar) };
    let ty = typed(first.0, first.1);
    let mut places = Vec::new();
    for index in 0..given.len() {
        let ty = if index == 0 { ty.clone() } else { function.operands()[index - 1].of(&ty) };
        let ty = module.module().intern(ty);
        places.push(module.shared(&format!("x{index}"), ty));
    }
    let gives = function.gives().of(&ty);
    let count = usize::from(gives.lanes().unwrap());
    let gives = module.module().intern(gives);
    let y = module.mutable("y", gives);
    let mut body = module.entry();
    let mut values = Vec::new();
    for place in places {
        let i = body.index(0);
        values.push(body.load(element(Root::Binding(place), i)));
    }
    let value = body.math(function, values);
    let i = body.index(0);
    body.store(element(Root::Binding(y), i), value);
    body.finish_entry();
    let module = module.build();
    let lowered = lowered(&module, target, Features::NONE);
    let mut bindings: Vec<Vec<u32>> = given.iter().map(|words| words.to_vec()).collect();
    bindings.push(vec![0; count]);
    let lengths = vec![1; bindings.len()];
    let mut machine = Machine { module: &lowered.module, bindings, lengths, params: Vec::new(), global_index: 0 };
    machine.run(0);
    let result = machine.bindings.pop().unwrap();
    // The evaluator has functions of its own.
    let bindings = given.iter().map(|words| (words.to_vec(), 1)).chain([(vec![0; count], 1)]).collect();
    let mut evaluated = evaluated(&module, bindings);
    assert_eq!(evaluated.pop().unwrap(), result, "{} of {given:x?} in the evaluator", function.name());
    result
}

const WORDS: [u32; 10] =
    [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 0x8899_aabb, 0xfffe, 0x807f_ff01];

#[test]
fn fields_rotations_and_wide_products_are_those_of_plain_rust() {
    // Targets that have none of their own.
    for x in WORDS {
        for y in WORDS {
            for (scalar, signed) in [(Scalar::U32, false), (Scalar::I32, true)] {
                let high = value_of(M::MulHigh, Target::Wgsl, (1, scalar), &[&[x], &[y]]);
                let wide = i64::from(x.cast_signed()) * i64::from(y.cast_signed());
                let expected = if signed { (wide >> 32) as u32 } else { ((u64::from(x) * u64::from(y)) >> 32) as u32 };
                assert_eq!(high, [expected], "mul_high of {x:#x} and {y:#x}, {scalar:?}");
                let rest = value_of(M::RemEuclid, Target::Spirv, (1, scalar), &[&[x], &[y]]);
                let expected = match (y, signed) {
                    (0, _) => 0,
                    (_, true) => x.cast_signed().wrapping_rem_euclid(y.cast_signed()).cast_unsigned(),
                    (_, false) => x % y,
                };
                assert_eq!(rest, [expected], "rem_euclid of {x:#x} and {y:#x}, {scalar:?}");
            }
            let sum = value_of(M::Dot4U8, Target::Spirv, (1, Scalar::U32), &[&[x], &[y], &[7]]);
            assert_eq!(sum, [meaning::dot4_u8(x, y, 7)], "dot4_u8 of {x:#x} and {y:#x}");
            let sum = value_of(M::Dot4I8, Target::Spirv, (1, Scalar::U32), &[&[x], &[y], &[0x7fff_fff0]]);
            let expected = meaning::dot4_i8(x, y, 0x7fff_fff0).cast_unsigned();
            assert_eq!(sum, [expected], "dot4_i8 of {x:#x} and {y:#x}");
        }
    }
    for x in [0x1234_5678, 0x8899_aabb] {
        let amounts = [0, 7, 31, 32, u32::MAX];
        for first in amounts {
            for lanes in [1u8, 3] {
                let many = vec![x; usize::from(lanes)];
                for scalar in [Scalar::U32, Scalar::I32] {
                    let turned = value_of(M::RotateLeft, Target::Wgsl, (lanes, scalar), &[&many, &[first]]);
                    assert_eq!(turned, vec![x.rotate_left(first % 32); many.len()], "{x:#x} by {first}");
                    let turned = value_of(M::RotateRight, Target::Spirv, (lanes, scalar), &[&many, &[first]]);
                    assert_eq!(turned, vec![x.rotate_right(first % 32); many.len()], "{x:#x} by {first}");
                }
                for count in amounts {
                    let field =
                        value_of(M::ExtractBits, Target::Wgsl, (lanes, Scalar::U32), &[&many, &[first], &[count]]);
                    assert_eq!(field[0], meaning::extract_bits(x, first, count), "{x:#x} from {first}, {count}");
                    let field =
                        value_of(M::ExtractBits, Target::Spirv, (lanes, Scalar::I32), &[&many, &[first], &[count]]);
                    let expected = meaning::extract_bits(x.cast_signed(), first, count).cast_unsigned();
                    assert_eq!(field[0], expected, "{x:#x} from {first}, {count}");
                    let new = vec![0x5aa5_c33c; many.len()];
                    let given: [&[u32]; 4] = [&many, &new, &[first], &[count]];
                    for scalar in [Scalar::U32, Scalar::I32] {
                        let all = value_of(M::InsertBits, Target::Cpu, (lanes, scalar), &given);
                        assert_eq!(all[0], meaning::insert_bits(x, new[0], first, count), "{x:#x}, {first}, {count}");
                    }
                }
            }
        }
    }
}

#[test]
fn several_numbers_are_packed_in_a_word_and_unpacked() {
    let quads = [[0.0, 1.0, -1.0, 0.5], [2.0, -3.0, f32::NAN, 1.5 / 127.0], [0.5 / 255.0, 0.25, -0.5, 0.999]];
    for target in [Target::Wgsl, Target::Spirv, Target::Cpu] {
        for quad in quads {
            let bits = quad.map(f32::to_bits);
            let pair = [quad[2], quad[3]];
            let pack =
                |function: M, bits: &[u32]| value_of(function, target, (bits.len() as u8, Scalar::F32), &[bits])[0];
            assert_eq!(pack(M::Pack4x8Snorm, &bits), meaning::pack4x8snorm(quad), "{quad:?}");
            assert_eq!(pack(M::Pack4x8Unorm, &bits), meaning::pack4x8unorm(quad), "{quad:?}");
            assert_eq!(pack(M::Pack2x16Snorm, &bits[2..]), meaning::pack2x16snorm(pair), "{pair:?}");
            assert_eq!(pack(M::Pack2x16Unorm, &bits[2..]), meaning::pack2x16unorm(pair), "{pair:?}");
            if !pair[0].is_nan() {
                assert_eq!(pack(M::Pack2x16Float, &bits[2..]), meaning::pack2x16float(pair), "{pair:?}");
            }
        }
        for word in WORDS {
            let unpack = |function: M| value_of(function, target, (1, Scalar::U32), &[&[word]]);
            assert_eq!(unpack(M::Unpack4xU8), meaning::unpack4xu8(word), "{word:#x}");
            assert_eq!(unpack(M::Unpack4xI8), meaning::unpack4xi8(word).map(i32::cast_unsigned), "{word:#x}");
            assert_eq!(unpack(M::Unpack4x8Snorm), meaning::unpack4x8snorm(word).map(f32::to_bits), "{word:#x}");
            assert_eq!(unpack(M::Unpack4x8Unorm), meaning::unpack4x8unorm(word).map(f32::to_bits), "{word:#x}");
            assert_eq!(unpack(M::Unpack2x16Snorm), meaning::unpack2x16snorm(word).map(f32::to_bits), "{word:#x}");
            assert_eq!(unpack(M::Unpack2x16Unorm), meaning::unpack2x16unorm(word).map(f32::to_bits), "{word:#x}");
            assert_eq!(unpack(M::Unpack2x16Float), meaning::unpack2x16float(word).map(f32::to_bits), "{word:#x}");
            let four = [word, word.wrapping_add(0x100), word ^ 0x80, 0x7f];
            let packed = value_of(M::Pack4xI8, target, (4, Scalar::I32), &[&four]);
            assert_eq!(packed, [meaning::pack4xu8(four)], "{four:x?}");
        }
    }
}

#[test]
fn vectors_have_lengths_and_products() {
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
    let (a, b) = (bits(&[1.0, -2.0, 2.0]), bits(&[3.0, 1.0, -4.0]));
    for target in [Target::Wgsl, Target::Spirv, Target::Cuda, Target::Cpu] {
        let two = |function: M| value_of(function, target, (3, Scalar::F32), &[&a, &b]);
        assert_eq!(value_of(M::Length, target, (3, Scalar::F32), &[&a]), bits(&[3.0]));
        assert_eq!(two(M::Distance), bits(&[7.0]));
        assert_eq!(two(M::Cross), bits(&[6.0, 10.0, 7.0]));
        assert_eq!(two(M::Reflect), bits(&[43.0, 12.0, -54.0]));
        let unit = 1.0f32 / 3.0;
        assert_eq!(value_of(M::Normalize, target, (3, Scalar::F32), &[&a]), bits(&[unit, -2.0 * unit, 2.0 * unit]));
    }
}

#[test]
fn vectors_are_computed_lane_by_lane() {
    let mut module = ModuleBuilder::new("lanes", [64, 1, 1]);
    let four = module.vector(4, Scalar::F32);
    let (x, y) = (module.shared("x", four), module.mutable("y", four));
    let mut body = module.entry();
    let i = body.builtin(Builtin::GlobalIndex);
    let value = body.load(element(Root::Binding(x), i));
    let value = body.math(M::Erf, vec![value]);
    let i = body.builtin(Builtin::GlobalIndex);
    body.store(element(Root::Binding(y), i), value);
    body.finish_entry();
    let lowered = lowered(&module.build(), Target::Spirv, Features::NONE);
    let input = [-2.0f32, -0.5, 0.25, 1.5].map(f32::to_bits).to_vec();
    let mut machine = Machine {
        module: &lowered.module,
        bindings: vec![input.clone(), vec![0; 4]],
        lengths: vec![1; 2],
        params: Vec::new(),
        global_index: 0,
    };
    machine.run(0);
    for (x, result) in input.iter().zip(&machine.bindings[1]) {
        assert!(ulps(f32::from_bits(*result), erf(f64::from(f32::from_bits(*x)))) <= 4.0);
    }
}

/// What `fast` puts in the place of functions of the library, within what `Precision::Fast` states.
#[test]
fn fast_forms_keep_their_bounds() {
    let fast = |function: M, target: Target, x: &[u32], z: &[u32]| {
        let mut module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| {
            let arguments = if function == M::Powf { vec![a, b] } else { vec![a] };
            body.math(function, arguments)
        });
        module.entry.precision = Precision::Fast;
        run(&lowered(&module, target, Features::NONE), x, z)
    };
    let values: Vec<f32> = (-4000..=4000).map(|i| i as f32 * 0.01).chain([1e4, -1e4]).collect();
    let x: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    for (value, result) in values.iter().zip(fast(M::Tanh, Target::Wgsl, &x, &x)) {
        let error = f64::from(f32::from_bits(result)) - f64::from(*value).tanh();
        assert!(error.abs() < 2f64.powi(-20), "tanh({value}) is off by {error}");
    }
    let values: Vec<f32> = (1..4000).map(|i| i as f32 * 0.025).collect();
    let x: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    for (value, result) in values.iter().zip(fast(M::Log10, Target::Cpu, &x, &x)) {
        let (found, exact) = (f32::from_bits(result), f64::from(*value).log10());
        assert!((f64::from(found) - exact).abs() < 4e-7 * exact.abs().max(0.3), "log10({value}) is {found}");
    }
    let z: Vec<u32> = values.iter().map(|value| (value * 0.05 - 2.0).to_bits()).collect();
    for ((value, power), result) in values.iter().zip(&z).zip(fast(M::Powf, Target::Cpu, &x, &z)) {
        let (found, power) = (f64::from(f32::from_bits(result)), f64::from(f32::from_bits(*power)));
        let exact = f64::from(*value).powf(power);
        assert!((found / exact - 1.0).abs() < 4e-6, "{value}^{power} is {found}, not {exact}");
    }
}
