//! What lowering makes of kernels: constants settled, halves packed, operations replaced, and what the replacements compute.

#[path = "support/machine.rs"]
mod machine;
#[path = "support/pointwise.rs"]
mod pointwise;

use machine::Machine;
use pointwise::{lowered, pointwise, run, verified};
use trefoil_codegen::artefact::{Access, ParamTransport};
use trefoil_codegen::front::parse_source;
use trefoil_codegen::ir::builder::{FunctionBuilder, ModuleBuilder, element, variable, vector};
use trefoil_codegen::ir::{
    BinaryOperator as B, Builtin, ExpressionKind, Instance, Literal, MathFunction as M, Module, Projection, Root,
    Scalar, StatementKind, Type, instantiate, statements,
};
use trefoil_codegen::target::{Feature, Features, Target};
use trefoil_codegen::variants::variants;

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

/// Drivers divide for the remainder of floats, so that of a number by itself something may be left.
#[test]
fn a_float_by_itself_leaves_nothing() {
    let module = pointwise(Scalar::F32, Scalar::F32, |body, a, _| {
        let a = body.bind("a", a);
        let [left, right] = [body.local(a), body.local(a)];
        body.binary(B::Remainder, left, right)
    });
    for target in GPUS {
        let lowered = lowered(&module, target, Features::NONE);
        if target == Target::Spirv {
            let entry = &lowered.module.entry;
            entry.live(&entry.body, &mut |expression| {
                let kind = &entry.expressions[expression].kind;
                assert!(!matches!(kind, ExpressionKind::Binary { operator: B::Remainder, .. }), "{kind:?}");
            });
        }
        let x = [3.0f32, 1e-3, -7.0, 0.5, -0.25, 3e38].map(f32::to_bits);
        let wanted = x.map(|x| (f32::from_bits(x) % f32::from_bits(x)).to_bits());
        assert_eq!(run(&lowered, &x, &x), wanted, "{}", target.name());
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

#[test]
fn clamp_keeps_a_nan_and_takes_any_bounds() {
    let values = [f32::NAN, -1.0, 0.5, 2.5, 7.0, f32::INFINITY, f32::NEG_INFINITY];
    let (x, z): (Vec<u32>, Vec<u32>) =
        values.iter().flat_map(|a| values.iter().map(move |b| (a.to_bits(), b.to_bits()))).unzip();
    for target in Target::ALL {
        // The second is the lower bound, and then the upper one.
        for is_low in [true, false] {
            let module = pointwise(Scalar::F32, Scalar::F32, |body, a, b| {
                let two = body.f32(2.0);
                body.math(M::Clamp, if is_low { vec![a, b, two] } else { vec![a, two, b] })
            });
            let results = run(&lowered(&module, target, Features::NONE), &x, &z);
            for ((a, b), result) in x.iter().zip(&z).zip(results) {
                let (a, b, result) = (f32::from_bits(*a), f32::from_bits(*b), f32::from_bits(result));
                let (low, high) = if is_low { (b, 2.0) } else { (2.0, b) };
                let expected = if a.is_nan() { a } else { a.max(low).min(high) };
                assert!(
                    result == expected || (result.is_nan() && expected.is_nan()),
                    "{a} between {low} and {high} on {}: {result}",
                    target.name()
                );
            }
        }
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

/// Vectors that fill words are read a word at a time, each word once, from where one computation says.
#[test]
fn an_element_of_packed_vectors_is_read_once() {
    let source = "#[kernel(workgroup(64))]
        fn k(x: &[Vec4<f16>], z: &[Vec4<u8>], at: &[u32], y: &mut [f32]) {
            let i = global_index();
            if i < y.len() {
                let four = x[at[i] as usize];
                let bytes = z[i];
                let sum = four.x.to_f32() + 10.0 * four.y.to_f32() + 100.0 * four.z.to_f32() + 1000.0 * four.w.to_f32();
                y[i] = sum + (bytes.x as u32 + bytes.y as u32 + bytes.z as u32 + bytes.w as u32) as f32;
            }
        }";
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    let module = instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let half = |value: u32| u32::from(half::f16::from_f32(value as f32).to_bits());
    let x: Vec<u32> = (0..3).flat_map(|i| [half(i + 1) | half(i + 2) << 16, half(i + 3) | half(i + 4) << 16]).collect();
    let z: Vec<u32> = (0..3).map(|i| i | 20 << 8 | 30 << 16 | 250 << 24).collect();
    for target in [Target::Wgsl, Target::Spirv] {
        let lowered = lowered(&module, target, Features::NONE);
        let mut loads = [0; 4];
        for function in lowered.module.functions.iter().map(|(_, function)| function).chain([&lowered.module.entry]) {
            function.live(&function.body, &mut |expression| {
                if let ExpressionKind::Load(place) = &function.expressions[expression].kind
                    && let Root::Binding(binding) = place.root
                {
                    loads[binding as usize] += 1;
                }
            });
        }
        assert_eq!(loads, [1, 1, 1, 0], "{}", target.name());
        // Past the ends of `x` and `z` lie words that are not zero.
        let mut machine = Machine {
            module: &lowered.module,
            bindings: vec![[x.clone(), vec![u32::MAX; 4]].concat(), z.clone(), vec![2, 0, 3, u32::MAX], vec![0; 4]],
            lengths: vec![3, 2, 4, 4],
            params: Vec::new(),
            global_index: 0,
        };
        for i in 0..4 {
            machine.run(i);
        }
        let found: Vec<f32> = machine.bindings[3].iter().map(|bits| f32::from_bits(*bits)).collect();
        assert_eq!(found, [6543.0 + 300.0, 4321.0 + 301.0, 0.0, 0.0], "{}", target.name());
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
    // A conversion that is written has a mode of its own there.
    assert_eq!(module.functions.len(), 0);
    assert_eq!(module.types[module.bindings[1].element], Type::Scalar(Scalar::F16));
    for (_, expression) in module.entry.expressions.iter() {
        let half = module.types[expression.ty].scalar() == Some(Scalar::F16);
        assert!(!half || matches!(expression.kind, ExpressionKind::Load(_) | ExpressionKind::Convert(_)));
    }
}

#[test]
fn brains_are_rounded_where_they_are_converted_and_nowhere_else() {
    let copied = |doubled: bool| {
        let mut module = ModuleBuilder::new("brains", [64, 1, 1]);
        let brain = module.scalar(Scalar::BF16);
        let (x, y) = (module.shared("x", brain), module.mutable("y", brain));
        let mut body = module.entry();
        let i = body.builtin(Builtin::GlobalIndex);
        let mut value = body.load(vector(Root::Binding(x), i, 4));
        if doubled {
            let wide = body.convert(value, Scalar::F32);
            let two = body.f32(2.0);
            let two = body.splat(two, 4);
            let wide = body.binary(B::Multiply, wide, two);
            value = body.convert(wide, Scalar::BF16);
        }
        let i = body.builtin(Builtin::GlobalIndex);
        body.store(vector(Root::Binding(y), i, 4), value);
        body.finish_entry();
        module.build()
    };
    for target in GPUS {
        for doubled in [false, true] {
            let lowered = lowered(&copied(doubled), target, Features::NONE);
            let module = &lowered.module;
            // CUDA has an instruction for it.
            let is_native =
                |kind: &ExpressionKind| matches!(kind, ExpressionKind::Math { function: M::NearestBrain, .. });
            let rounds = module.functions.iter().any(|(_, function)| function.name.starts_with("nearest"))
                || module.entry.expressions.iter().any(|(_, expression)| is_native(&expression.kind));
            assert_eq!(rounds, doubled, "{}", target.name());
        }
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
fn a_loop_may_end_where_a_round_of_an_outer_one_says() {
    // In the second round of `a`, the first one's `m` is nothing to go by.
    let source = "#[kernel(workgroup(64))]
        fn k(y: &mut [u32], z: &mut [u32]) {
            for a in unroll(0..2) {
                for i in unroll(0..4) {
                    let m = i + 1;
                    for j in unroll(0..m) {
                        y[j] += 100 * a + 10 * i as u32;
                        z[j] += y[j];
                        y[j] ^= z[i];
                    }
                }
            }
        }";
    let outputs = parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    let module = instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"));
    for target in Target::ALL {
        let mut stores = 0;
        statements(&lowered(&module, target, Features::NONE).module.entry.body, &mut |statement| {
            stores += usize::from(matches!(statement.kind, StatementKind::Store { .. }));
        });
        assert_eq!(stores, 2 * (1 + 2 + 3 + 4) * 3, "{}", target.name());
    }
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
        let instance = Instance { values: vec![GenericValue::Type(scalar)], ..Instance::default() };
        let made = instantiate(&module, &instance).unwrap();
        assert_eq!(made.name, name);
        verified(made);
    }
    let wrong = Instance { values: vec![GenericValue::Type(Scalar::I32)], ..Instance::default() };
    let error = instantiate(&module, &wrong).unwrap_err().to_string();
    assert!(error.contains("`T` stands for one of the types f32, f16, bf16, f64; the type i32 was given"), "{error}");
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
