//! Rounding to 16-bit floats, in buffers and packed in words.

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
fn brains_packed_in_words() {
    for lanes in [1, 2, 4] {
        let mut module = ModuleBuilder::new(&format!("brains_{lanes}"), [32, 1, 1]);
        let (brain, float) = (module.scalar(Scalar::BF16), module.scalar(Scalar::F32));
        let (x, y, z) = (module.shared("x", float), module.mutable("y", brain), module.mutable("z", brain));
        let mut body = module.entry();
        let i = global(&mut body);
        let at = |body: &mut FunctionBuilder<'_>, binding: u32| {
            let index = body.local(i);
            if lanes == 1 {
                element(Root::Binding(binding), index)
            } else {
                vector(Root::Binding(binding), index, lanes)
            }
        };
        let from = at(&mut body, x);
        let value = body.load(from);
        let value = body.convert(value, Scalar::BF16);
        let to = at(&mut body, y);
        body.store(to, value);
        // What is moved about stays as it is.
        let from = at(&mut body, y);
        let value = body.load(from);
        let to = at(&mut body, z);
        body.store(to, value);
        body.finish_entry();
        let module = module.build();
        let words = spirv::emit(&lowered(&module, Features::NONE, ParamTransport::Value)).unwrap();
        assert_eq!(spirv::disassemble(&words).contains("%runtime_array_u32x2"), lanes == 4, "two words at once");
        let mut x: Vec<f32> = brain_cases();
        x.resize(x.len().next_multiple_of(4), 1.0);
        let buffers = [floats(x.clone()), vec![0x55; x.len() * 2], vec![0x55; x.len() * 2]];
        let groups = x.len().div_ceil(32 * usize::from(lanes)) as u32;
        let run = Run { groups: [groups, 1, 1], buffers: &buffers, params: &[], views: &[] };
        let Some(got) = self::run(&module, Features::NONE, &run) else { continue };
        assert_eq!(got[1], got[2], "{lanes} at once");
        for (x, stored) in x.iter().zip(got[1].chunks_exact(2)) {
            let stored = u16::from_le_bytes([stored[0], stored[1]]);
            let is_right = if x.is_nan() { stored & 0x7fff > 0x7f80 } else { stored == nearest_brain(*x) };
            assert!(is_right, "stored {x:e} as {stored:#x}, {lanes} at once");
        }
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

/// Numbers around everything that rounding to `bf16` must get right.
fn brain_cases() -> Vec<f32> {
    let mut cases = vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(0x7f80_0001), f32::MAX];
    for upper in [0x0080u32, 0x0081, 0x3f80, 0x3f81, 0x3fff, 0x4000, 0x7f7e, 0x7f7f] {
        for rest in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
            cases.extend([0, 1 << 31].map(|sign| f32::from_bits(sign | upper << 16 | rest)));
        }
    }
    cases
}

/// The closest `bf16`, and of two equally close ones that with the even last place; past the largest, infinity lies where numbers would go on.
fn nearest_brain(x: f32) -> u16 {
    let value = |upper: u16| match f64::from(f32::from_bits(u32::from(upper) << 16)) {
        infinite if infinite.is_infinite() => 2f64.powi(128),
        finite => finite,
    };
    let magnitude = f64::from(x.abs());
    let below = (x.abs().to_bits() >> 16) as u16;
    let sign = ((x.to_bits() >> 16) & 0x8000) as u16;
    if magnitude.is_infinite() {
        return sign | below;
    }
    let (under, over) = (magnitude - value(below), value(below + 1) - magnitude);
    sign | if over < under || over == under && below & 1 == 1 { below + 1 } else { below }
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
