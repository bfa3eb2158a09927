//! What lowering makes of kernels: constants settled, halves packed, operations replaced, and what the replacements compute.

#[path = "support/machine.rs"]
mod machine;

use machine::Machine;
use trefoil_codegen::artefact::{Access, ParamTransport};
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    BinaryOperator as B, Builtin, Expression, ExpressionKind, Handle, Literal, MathFunction as M, Module, Projection,
    Root, Scalar, StatementKind, Type, statements,
};
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Feature, Features, Profile, Target};
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::{Verified, verify};

type Value = Handle<Expression>;

fn verified(module: Module) -> Verified {
    verify(module).unwrap_or_else(|found| panic!("{found}"))
}

fn lowered(module: &Module, target: Target, features: Features) -> Lowered {
    let verified = verified(module.clone());
    let transport = if target == Target::Cpu { ParamTransport::Value } else { ParamTransport::Buffer };
    let lowered = lower(&verified, &Profile::portable(target).with(features), transport)
        .unwrap_or_else(|found| panic!("{found}"));
    // What is left obeys the rules as well; halves in bindings of atomics excepted, nothing is special.
    let mut again = lowered.module.clone();
    again.requires = Features(u32::MAX);
    verify(again).unwrap_or_else(|found| panic!("lowered for {}: {found}", target.name()));
    lowered
}

/// `y[i] = f(x[i], z[i])` for three bindings of these scalars.
fn pointwise(from: Scalar, to: Scalar, f: impl Fn(&mut FunctionBuilder<'_>, Value, Value) -> Value) -> Module {
    let mut module = ModuleBuilder::new("pointwise", [64, 1, 1]);
    let (from, to) = (module.scalar(from), module.scalar(to));
    let (x, z) = (module.shared("x", from), module.shared("z", from));
    let y = module.mutable("y", to);
    let mut body = module.entry();
    let load = |body: &mut FunctionBuilder<'_>, binding: u32| {
        let i = body.builtin(Builtin::GlobalIndex);
        body.load(element(Root::Binding(binding), i))
    };
    let (a, b) = (load(&mut body, x), load(&mut body, z));
    let value = f(&mut body, a, b);
    let i = body.builtin(Builtin::GlobalIndex);
    body.store(element(Root::Binding(y), i), value);
    body.finish_entry();
    module.build()
}

/// Runs a pointwise kernel.
fn run(lowered: &Lowered, x: &[u32], z: &[u32]) -> Vec<u32> {
    let count = x.len();
    let mut machine = Machine {
        module: &lowered.module,
        bindings: vec![x.to_vec(), z.to_vec(), vec![0; count]],
        lengths: vec![count as u32; 3],
        params: Vec::new(),
        global_index: 0,
    };
    for i in 0..count {
        machine.run(i as u32);
    }
    machine.bindings.swap_remove(2)
}

const INTEGERS: [u32; 14] =
    [0, 1, 2, 3, 7, 31, 32, 33, 100, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];

fn pairs() -> (Vec<u32>, Vec<u32>) {
    INTEGERS.iter().flat_map(|a| INTEGERS.iter().map(move |b| (*a, *b))).unzip()
}

const GPUS: [Target; 3] = [Target::Wgsl, Target::Spirv, Target::Cuda];

#[test]
fn integer_division_and_shifts_mean_what_the_essay_says() {
    let (x, z) = pairs();
    for target in GPUS {
        for (scalar, operator) in [
            (Scalar::U32, B::Divide),
            (Scalar::U32, B::Remainder),
            (Scalar::I32, B::Divide),
            (Scalar::I32, B::Remainder),
            (Scalar::U32, B::ShiftLeft),
            (Scalar::I32, B::ShiftRight),
        ] {
            let module = pointwise(scalar, scalar, |body, a, b| {
                let shift = matches!(operator, B::ShiftLeft | B::ShiftRight);
                let b = if shift && scalar == Scalar::I32 { body.bitcast(b, Scalar::U32) } else { b };
                body.binary(operator, a, b)
            });
            let results = run(&lowered(&module, target, Features::NONE), &x, &z);
            for ((a, b), result) in x.iter().zip(&z).zip(results) {
                let (i, j) = (a.cast_signed(), b.cast_signed());
                let expected = match (scalar, operator) {
                    (Scalar::U32, B::Divide) => a.checked_div(*b).unwrap_or(0),
                    (Scalar::U32, B::Remainder) => a.checked_rem(*b).unwrap_or(0),
                    (_, B::Divide) => (if j == 0 { 0 } else { i.wrapping_div(j) }).cast_unsigned(),
                    (_, B::Remainder) => (if j == 0 { 0 } else { i.wrapping_rem(j) }).cast_unsigned(),
                    (_, B::ShiftLeft) => a.wrapping_shl(*b),
                    _ => i.wrapping_shr(*b).cast_unsigned(),
                };
                // The remainder by 0 of an i32 is that by 1.
                assert_eq!(result, expected, "{scalar:?} {operator:?} of {a} and {b} on {}", target.name());
            }
        }
    }
}

#[test]
fn floats_become_integers_saturating() {
    let values = [
        0.0f32,
        -0.0,
        0.5,
        -0.5,
        1.99,
        -1.99,
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -2_147_483_904.0,
        4_294_967_040.0,
        4_294_967_296.0,
        1e20,
        -1e20,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    for target in [Target::Wgsl, Target::Spirv] {
        for scalar in [Scalar::I32, Scalar::U32] {
            let module = pointwise(Scalar::F32, scalar, |body, a, _| body.convert(a, scalar));
            let results = run(&lowered(&module, target, Features::NONE), &bits, &bits);
            for (value, result) in values.iter().zip(results) {
                let expected = if scalar == Scalar::I32 { (*value as i32).cast_unsigned() } else { *value as u32 };
                assert_eq!(result, expected, "{value} as {scalar:?} on {}", target.name());
            }
        }
    }
}

#[test]
fn the_lesser_and_the_greater_ignore_nan() {
    let values = [f32::NAN, -1.0, 0.0, 2.5, f32::INFINITY, f32::NEG_INFINITY];
    let (x, z): (Vec<u32>, Vec<u32>) =
        values.iter().flat_map(|a| values.iter().map(move |b| (a.to_bits(), b.to_bits()))).unzip();
    for function in [M::Min, M::Max] {
        let module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| body.math(function, vec![a, b]));
        let wgsl = lowered(&module, Target::Wgsl, Features::NONE);
        assert_eq!(wgsl.module.functions.len(), 1, "WGSL's own is not used");
        assert_eq!(lowered(&module, Target::Spirv, Features::NONE).module.functions.len(), 0);
        for ((a, b), result) in x.iter().zip(&z).zip(run(&wgsl, &x, &z)) {
            let (a, b, result) = (f32::from_bits(*a), f32::from_bits(*b), f32::from_bits(result));
            let expected = if function == M::Min { a.min(b) } else { a.max(b) };
            assert!(
                result == expected || (result.is_nan() && expected.is_nan()),
                "{function:?} of {a} and {b}: {result}"
            );
        }
    }
}

// Accuracy.

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
    for target in [Target::Wgsl, Target::Spirv] {
        let (error, at) = worst(M::Erf, target, between(-6.0, 6.0).chain(odd_ones()), erf);
        assert!(error <= 4.0, "erf is off by {error} ulp at {at:e}");
        let (error, at) = worst(M::Tanh, target, between(-100.0, 100.0).chain(odd_ones()), f64::tanh);
        assert!(error <= 3.0, "tanh is off by {error} ulp at {at:e}");
        let module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| body.math(M::Powf, vec![a, b]));
        let lowered = lowered(&module, target, Features::NONE);
        let values = [-2.0f32, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0];
        let (x, z): (Vec<u32>, Vec<u32>) =
            values.iter().flat_map(|a| values.iter().map(move |b| (a.to_bits(), b.to_bits()))).unzip();
        for ((a, b), result) in x.iter().zip(&z).zip(run(&lowered, &x, &z)) {
            let (a, b) = (f32::from_bits(*a), f32::from_bits(*b));
            let error = ulps(f32::from_bits(result), f64::from(a.powf(b)));
            assert!(error <= 1.0, "{a}.powf({b}) is {}", f32::from_bits(result));
        }
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

// Halves.

/// `y[i] = f16(x[i] * 2)` one by one, in pairs or in fours, for as many invocations as there are accesses and some more.
fn halves(lanes: u8) -> Module {
    let mut module = ModuleBuilder::new("halves", [64, 1, 1]);
    let half = module.scalar(Scalar::F16);
    let (x, y) = (module.shared("x", half), module.mutable("y", half));
    let mut body = module.entry();
    let place = |body: &mut FunctionBuilder<'_>, binding: u32| {
        let i = body.builtin(Builtin::GlobalIndex);
        if lanes == 1 { element(Root::Binding(binding), i) } else { vector(Root::Binding(binding), i, lanes) }
    };
    let from = place(&mut body, x);
    let value = body.load(from);
    let wide = body.convert(value, Scalar::F32);
    let two = body.f32(2.0);
    let two = if lanes == 1 { two } else { body.splat(two, lanes) };
    let doubled = body.binary(B::Multiply, wide, two);
    let value = body.convert(doubled, Scalar::F16);
    let to = place(&mut body, y);
    body.store(to, value);
    body.finish_entry();
    module.build()
}

#[test]
fn packed_halves_do_not_touch_their_neighbours() {
    for lanes in [1u8, 2, 4] {
        let module = halves(lanes);
        let lowered = lowered(&module, Target::Wgsl, Features::NONE);
        assert_eq!([lowered.module.bindings[0].packed, lowered.module.bindings[1].packed], [2, 2]);
        assert_eq!(lowered.info.access[1] == Access::Atomic, lanes == 1);
        for length in [0u32, 1, 2, 3, 4, 5, 7, 8, 13] {
            // Halves 0.25, 0.5, ..; beyond the end lies what must stay.
            let total = length as usize + 8;
            let half_at = |at: usize| half::f16::from_f32(at as f32 * 0.25 + 0.25).to_bits();
            let pack = |halves: &dyn Fn(usize) -> u16| -> Vec<u32> {
                (0..total.div_ceil(2))
                    .map(|word| u32::from(halves(2 * word)) | u32::from(halves(2 * word + 1)) << 16)
                    .collect()
            };
            let before = |_: usize| 0xabcd_u16;
            let mut machine = Machine {
                module: &lowered.module,
                bindings: vec![pack(&half_at), pack(&before)],
                lengths: vec![length; 2],
                params: Vec::new(),
                global_index: 0,
            };
            for i in (0..length.div_ceil(lanes.into()) + 3).rev() {
                machine.run(i);
            }
            // An access is dropped as a whole if a part of it is past the end.
            let written = (length / u32::from(lanes) * u32::from(lanes)) as usize;
            for at in 0..total {
                let word = machine.bindings[1][at / 2];
                let found = if at % 2 == 0 { word as u16 } else { (word >> 16) as u16 };
                let expected = if at < written {
                    half::f16::from_f32(half::f16::from_bits(half_at(at)).to_f32() * 2.0).to_bits()
                } else {
                    0xabcd
                };
                assert_eq!(found, expected, "half {at} of {length}, {lanes} at a time");
            }
        }
    }
}

#[test]
fn halves_stay_halves_where_the_target_has_them() {
    let native = Features::of(&[Feature::F16Storage]);
    for (target, features) in [(Target::Wgsl, native), (Target::Cuda, native), (Target::Cpu, native)] {
        let lowered = lowered(&halves(1), target, features);
        // What narrows is rounded before where the target might round otherwise.
        let functions: Vec<&str> = lowered.module.functions.iter().map(|(_, made)| made.name.as_str()).collect();
        assert_eq!(functions, if target == Target::Wgsl { vec!["nearest_half"] } else { vec![] }, "{}", target.name());
        assert_eq!(lowered.module.bindings[1].packed, 1);
    }
    // SPIR-V with 16-bit storage holds them in buffers alone.
    let lowered = lowered(&halves(1), Target::Spirv, native);
    let module = &lowered.module;
    assert_eq!(module.types[module.bindings[1].element], Type::Scalar(Scalar::F16));
    for (_, expression) in module.entry.expressions.iter() {
        let half = module.types[expression.ty].scalar() == Some(Scalar::F16);
        assert!(!half || matches!(expression.kind, ExpressionKind::Load(_) | ExpressionKind::Convert(_)));
    }
}

// Constants.

#[test]
fn unrolled_loops_are_written_out_and_known_branches_decided() {
    let mut module = ModuleBuilder::new("unrolled", [64, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let eight = module.array(float, 8);
    let y = module.mutable("y", float);
    let mut body = module.entry();
    let index = body.module().intern(Type::Scalar(Scalar::Index));
    let sums = body.variable("sums", eight, None);
    let (start, end, step) = (body.index(0), body.index(8), body.index(1));
    let counter = body.new_local("j", index, false);
    let inner = body.nested(|body| {
        let (a, b) = (body.local(counter), body.index(4));
        let low = body.binary(B::Less, a, b);
        body.if_else(
            low,
            |body| {
                let (j, one) = (body.local(counter), body.f32(1.0));
                body.store(element(Root::Local(sums), j), one);
            },
            |body| {
                let (j, two) = (body.local(counter), body.f32(2.0));
                body.store(element(Root::Local(sums), j), two);
            },
        );
    });
    body.statement(StatementKind::For { local: counter, start, end, step, body: inner, unroll: true });
    let seven = body.index(7);
    let last = body.load(element(Root::Local(sums), seven));
    let i = body.index(0);
    body.store(element(Root::Binding(y), i), last);
    body.finish_entry();
    let lowered = lowered(&module.build(), Target::Wgsl, Features::NONE);
    let mut indices = Vec::new();
    statements(&lowered.module.entry.body, &mut |statement| match &statement.kind {
        StatementKind::Store { place, .. } if place.root != Root::Binding(0) => {
            let Some(Projection::Index(index)) = place.path.first() else { panic!("an index") };
            assert!(!place.guarded);
            indices.push(lowered.module.entry.expressions[*index].kind.clone());
        }
        StatementKind::For { .. } | StatementKind::If { .. } => panic!("it is gone"),
        _ => {}
    });
    let expected: Vec<_> = (0..8).map(|j| ExpressionKind::Literal(Literal::Index(j))).collect();
    assert_eq!(indices, expected);
}

#[test]
fn variants_are_the_sets_of_features_that_matter() {
    let sets = |module: Module| {
        let mut names: Vec<String> = variants(&verified(module))
            .into_iter()
            .map(|(profile, transport)| {
                let letter = if transport == ParamTransport::Value { "v" } else { "b" };
                format!("{}/{}/{letter}", profile.target.name(), profile.name())
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        sets(pointwise(Scalar::F32, Scalar::F32, |_, a, _| a)),
        [
            "cpu/portable/v",
            "cuda/portable/b",
            "cuda/portable/v",
            "spirv/portable/b",
            "spirv/portable/v",
            "wgsl/portable/b"
        ]
    );
    assert_eq!(
        sets(halves(1)),
        [
            "cpu/f16/v",
            "cuda/f16/b",
            "cuda/f16/v",
            "spirv/f16/b",
            "spirv/f16/v",
            "spirv/portable/b",
            "spirv/portable/v",
            "wgsl/f16/b",
            "wgsl/portable/b"
        ]
    );
}

#[test]
fn instances_replace_generics() {
    use trefoil_codegen::ir::{Bound, Generic, GenericKind, GenericValue, Instance, instantiate};
    let mut module = pointwise(Scalar::Generic(0), Scalar::F32, |body, a, _| body.convert(a, Scalar::F32));
    module.generics = vec![Generic { name: "T".to_owned(), kind: GenericKind::Type(Bound::Float) }];
    for (scalar, name) in [(Scalar::F32, "pointwise_f32"), (Scalar::F16, "pointwise_f16")] {
        let instance = Instance { values: vec![GenericValue::Type(scalar)] };
        let made = instantiate(&module, &instance).unwrap();
        assert_eq!(made.name, name);
        verified(made);
    }
    let wrong = Instance { values: vec![GenericValue::Type(Scalar::I32)] };
    let error = instantiate(&module, &wrong).unwrap_err().to_string();
    assert!(error.contains("`T` stands for one of the types f32, f16; the type i32 was given"), "{error}");
    assert!(instantiate(&module, &Instance::default()).is_err());
}

#[test]
fn a_variable_of_halves_is_one_of_floats_where_there_are_none() {
    let mut module = ModuleBuilder::new("moved", [64, 1, 1]);
    let half = module.scalar(Scalar::F16);
    let y = module.mutable("y", half);
    let mut body = module.entry();
    let value = body.f32(1.0003);
    let value = body.convert(value, Scalar::F16);
    let kept = body.variable("kept", half, Some(value));
    let value = body.load(variable(kept));
    let i = body.builtin(Builtin::GlobalIndex);
    body.store(element(Root::Binding(y), i), value);
    body.finish_entry();
    let lowered = lowered(&module.build(), Target::Spirv, Features::NONE);
    let mut machine = Machine {
        module: &lowered.module,
        bindings: vec![vec![0; 2]],
        lengths: vec![3],
        params: Vec::new(),
        global_index: 0,
    };
    machine.run(2);
    assert_eq!(machine.bindings[0], [0, u32::from(half::f16::from_f32(1.0003).to_bits())]);
}
