//! Integers, bits and mathematical functions.

use super::*;

#[test]
fn integers_and_bits() {
    let mut module = ModuleBuilder::new("integers", [8, 1, 1]);
    let (word, int) = (module.scalar(Scalar::U32), module.scalar(Scalar::I32));
    let (x, y) = (module.shared("x", int), module.mutable("y", word));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.bind("value", value);
    let mut results = Vec::new();
    for function in [Math::CountOnes, Math::LeadingZeros, Math::TrailingZeros] {
        let x = body.local(value);
        results.push(body.math(function, vec![x]));
    }
    let x = body.local(value);
    let value_abs = body.math(Math::Abs, vec![x]);
    results.push(body.convert(value_abs, Scalar::U32));
    let x = body.local(value);
    let sign = body.math(Math::Signum, vec![x]);
    results.push(body.convert(sign, Scalar::U32));
    let (x, low, high) = (body.local(value), body.i32(-5), body.i32(7));
    let clamped = body.math(Math::Clamp, vec![x, low, high]);
    results.push(body.convert(clamped, Scalar::U32));
    let (x, by) = (body.local(value), body.u32(3));
    let shifted = body.binary(Op::ShiftRight, x, by);
    results.push(body.convert(shifted, Scalar::U32));
    let x = body.local(value);
    let x = body.convert(x, Scalar::F32);
    results.push(body.bitcast(x, Scalar::U32));
    for (k, result) in results.into_iter().enumerate() {
        let (index, eight, k) = (body.local(i), body.index(8), body.index(k as u32));
        let to = body.binary(Op::Multiply, index, eight);
        let to = body.binary(Op::Add, to, k);
        write(&mut body, Root::Binding(y), to, result);
    }
    body.finish_entry();
    let module = module.build();
    let x = [0, 1, -1, i32::MIN, i32::MAX, -6, 12, 0x00ff_0000];
    let buffers = [words(x.map(i32::cast_unsigned)), words([9; 64])];
    let run = Run { groups: [1, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (x, row) in x.iter().zip(as_words(&got[1]).chunks_exact(8)) {
        let expected = [
            x.count_ones(),
            x.leading_zeros(),
            x.trailing_zeros(),
            x.wrapping_abs().cast_unsigned(),
            x.signum().cast_unsigned(),
            (*x).clamp(-5, 7).cast_unsigned(),
            (x >> 3).cast_unsigned(),
            (*x as f32).to_bits(),
        ];
        assert_eq!(row, expected, "{x}");
    }
}

#[test]
fn mathematics() {
    // Those that lowering leaves to the target, with a tolerance in relation to the result.
    type Case = (Math, fn(f64) -> f64, f64);
    let cases: [Case; 19] = [
        (Math::Abs, f64::abs, 0.0),
        (Math::Signum, |x| if x.is_nan() { x } else { 1f64.copysign(x) }, 0.0),
        (Math::Floor, f64::floor, 0.0),
        (Math::Ceil, f64::ceil, 0.0),
        (Math::RoundTiesEven, f64::round_ties_even, 0.0),
        (Math::Trunc, f64::trunc, 0.0),
        (Math::Sqrt, f64::sqrt, 1e-6),
        (Math::InverseSqrt, |x| 1.0 / x.sqrt(), 1e-6),
        (Math::Exp, f64::exp, 3e-6),
        (Math::Exp2, f64::exp2, 3e-6),
        (Math::Ln, f64::ln, 3e-6),
        (Math::Log2, f64::log2, 3e-6),
        (Math::Sin, f64::sin, 1e-3),
        (Math::Cos, f64::cos, 1e-3),
        (Math::Tan, f64::tan, 1e-2),
        (Math::Tanh, f64::tanh, 1e-3),
        (Math::Atan, f64::atan, 1e-3),
        (Math::IsNan, |x| f64::from(u8::from(x.is_nan())), 0.0),
        (Math::IsInfinite, |x| f64::from(u8::from(x.is_infinite())), 0.0),
    ];
    let mut module = ModuleBuilder::new("mathematics", [8, 1, 1]);
    let float = module.scalar(Scalar::F32);
    let (x, y) = (module.shared("x", float), module.mutable("y", float));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.bind("value", value);
    for (k, (function, ..)) in cases.iter().enumerate() {
        let argument = body.local(value);
        let mut result = body.math(*function, vec![argument]);
        if matches!(function, Math::IsNan | Math::IsInfinite) {
            result = body.convert(result, Scalar::F32);
        }
        let (index, count, k) = (body.local(i), body.index(cases.len() as u32), body.index(k as u32));
        let to = body.binary(Op::Multiply, index, count);
        let to = body.binary(Op::Add, to, k);
        write(&mut body, Root::Binding(y), to, result);
    }
    body.finish_entry();
    let module = module.build();
    let x = [0.5f32, 1.0, 1.5, 2.5, 3.25, -0.75, -1.5, -2.5, 0.0, 4.75, f32::INFINITY, f32::NAN];
    let buffers = [floats(x), floats(vec![9.0; x.len() * cases.len()])];
    let run = Run { groups: [2, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (x, row) in x.iter().zip(as_floats(&got[1]).chunks_exact(cases.len())) {
        for ((function, reference, tolerance), got) in cases.iter().zip(row) {
            let expected = reference(f64::from(*x));
            // What a function is outside its domain or at its poles is lowering's affair.
            let exact = *tolerance == 0.0;
            let defined = x.is_finite() && expected.is_finite();
            if !exact && !defined {
                continue;
            }
            let error = (f64::from(*got) - expected).abs();
            let same = f64::from(*got) == expected || (got.is_nan() && expected.is_nan());
            assert!(same || error <= tolerance * expected.abs().max(1e-2), "{function:?}({x}) = {got}, not {expected}");
        }
    }
}
