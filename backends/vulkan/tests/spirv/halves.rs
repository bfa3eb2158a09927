//! Rounding to halves, in buffers and packed in words.

use super::*;

#[test]
fn halves_in_buffers() {
    let mut module = ModuleBuilder::new("halves", [32, 1, 1]);
    let (half, float) = (module.scalar(Scalar::F16), module.scalar(Scalar::F32));
    let (x, y, z) = (module.shared("x", float), module.mutable("y", half), module.mutable("z", float));
    let mut body = module.entry();
    let i = global(&mut body);
    // The store rounds, and so does a half in a register.
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.convert(value, Scalar::F16);
    let index = body.local(i);
    write(&mut body, Root::Binding(y), index, value);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let value = body.convert(value, Scalar::F16);
    let value = body.bind("rounded", value);
    let value = body.local(value);
    let value = body.convert(value, Scalar::F32);
    let index = body.local(i);
    write(&mut body, Root::Binding(z), index, value);
    body.finish_entry();
    let module = module.build();
    let x: Vec<f32> = half_cases();
    let buffers = [floats(x.clone()), vec![0x55; x.len() * 2], floats(vec![-1.0; x.len()])];
    let groups = x.len().div_ceil(32) as u32;
    let run = Run { groups: [groups, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::of(&[Feature::F16Storage]), &run) else { return };
    for (i, x) in x.iter().enumerate() {
        let stored = u16::from_le_bytes([got[1][2 * i], got[1][2 * i + 1]]);
        let rounded = as_floats(&got[2])[i];
        if x.is_nan() {
            assert!(stored & 0x7fff > 0x7c00 && rounded.is_nan(), "{x}");
            continue;
        }
        let expected = nearest_half(*x);
        // Denormals may be flushed by the store.
        if f64::from(*x).abs() >= 2f64.powi(-14) {
            assert_eq!(half_value(stored), expected, "stored {x:e} as {stored:#x}");
        }
        assert_eq!(rounded.to_bits(), (expected as f32).to_bits(), "rounded {x:e} to {rounded:e}");
    }
}

#[test]
fn halves_packed_in_words() {
    let mut module = ModuleBuilder::new("packed", [32, 1, 1]);
    let (word, float) = (module.scalar(Scalar::U32), module.scalar(Scalar::F32));
    let (x, y, z) = (module.shared("x", float), module.mutable("y", word), module.mutable("z", float));
    let mut body = module.entry();
    let i = global(&mut body);
    let index = body.local(i);
    let value = read(&mut body, Root::Binding(x), index);
    let packed = body.expression(
        ExpressionKind::Math { function: Math::PackHalf, arguments: vec![value] },
        Type::Scalar(Scalar::U32),
    );
    let packed = body.bind("bits", packed);
    let (index, value) = (body.local(i), body.local(packed));
    write(&mut body, Root::Binding(y), index, value);
    let value = body.local(packed);
    let value = body.expression(
        ExpressionKind::Math { function: Math::UnpackHalf, arguments: vec![value] },
        Type::Scalar(Scalar::F32),
    );
    let index = body.local(i);
    write(&mut body, Root::Binding(z), index, value);
    body.finish_entry();
    let module = module.build();
    let x: Vec<f32> = half_cases();
    let buffers = [floats(x.clone()), words(vec![7; x.len()]), floats(vec![-1.0; x.len()])];
    let groups = x.len().div_ceil(32) as u32;
    let run = Run { groups: [groups, 1, 1], buffers: &buffers, params: &[], views: &[] };
    let Some(got) = self::run(&module, Features::NONE, &run) else { return };
    for (i, x) in x.iter().enumerate() {
        let (bits, back) = (as_words(&got[1])[i], as_floats(&got[2])[i]);
        assert!(bits <= 0xffff, "{x:e}: {bits:#x}");
        if x.is_nan() {
            assert!(back.is_nan());
        } else if f64::from(*x).abs() >= 2f64.powi(-14) {
            assert_eq!(half_value(bits as u16), nearest_half(*x), "{x:e}: {bits:#x}");
            assert_eq!(f64::from(back), nearest_half(*x), "{x:e}");
        }
    }
}

/// Numbers around everything that rounding to halves must get right.
fn half_cases() -> Vec<f32> {
    let mut cases =
        vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 65504.0, 65519.99, 65520.0, 1e30, -1e30];
    for exponent in -30..17 {
        let one = 2f32.powi(exponent);
        for ulps in [0.0, 0.25, 0.5, 0.499_99, 0.500_01, 0.75, 1.0, 1.5, 2.5, 1023.5] {
            cases.push(one * (1.0 + ulps / 1024.0));
            cases.push(-one * (1.0 + ulps / 1024.0));
            // Ties between subnormal halves.
            cases.push((ulps + 3.0) * 2f32.powi(-24));
        }
    }
    cases
}

fn half_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 => f64::INFINITY,
        _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// By search: the closest half, and of two equally close ones that with the even last place.
fn nearest_half(x: f32) -> f64 {
    let magnitude = f64::from(x).abs();
    let distance = |bits: u16| match bits {
        // Where infinity would lie if exponents went on.
        0x7c00 if magnitude.is_finite() => (65536.0 - magnitude).abs(),
        0x7c00 => 0.0,
        _ => (half_value(bits) - magnitude).abs(),
    };
    if magnitude >= 65536.0 {
        return f64::INFINITY.copysign(f64::from(x));
    }
    let bits =
        (0..=0x7c00u16).min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)))).unwrap();
    half_value(bits).copysign(f64::from(x))
}
