//! The functions of the language that are not every target's own: elementary functions, vectors, and bits, on every device.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;
#[path = "common/table.rs"]
mod table;

use table::{Row, Value, check, pairs, unzip};
use trefoil::DeviceKind;
use trefoil::prelude::*;

#[kernel(workgroup(64))]
fn elementary(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 20;
        y[at] = asin(x).to_bits();
        y[at + 1] = x.acos().to_bits();
        y[at + 2] = sinh(x).to_bits();
        y[at + 3] = cosh(x).to_bits();
        y[at + 4] = asinh(x).to_bits();
        y[at + 5] = acosh(x).to_bits();
        y[at + 6] = atanh(x).to_bits();
        y[at + 7] = x.exp_m1().to_bits();
        y[at + 8] = ln_1p(x).to_bits();
        y[at + 9] = log10(abs(x)).to_bits();
        y[at + 10] = cbrt(x).to_bits();
        y[at + 11] = hypot(x, z).to_bits();
        y[at + 12] = x.round().to_bits();
        y[at + 13] = fract(x).to_bits();
        y[at + 14] = x.copysign(z).to_bits();
        y[at + 15] = rem_euclid(x, 0.75).to_bits();
        y[at + 16] = step(z, x).to_bits();
        y[at + 17] = smoothstep(-2.0, 3.0, x).to_bits();
        y[at + 18] = mix(x, 4.0, 0.25).to_bits();
        y[at + 19] = 2.5.mix(0.5, 1.0).to_bits();
    }
}

/// What a function of one number must be, computed in `f64`, with room for the errors of division and square roots on GPUs.
fn near(value: f64, steps: u32) -> Value {
    Value::Float(value as f32, steps)
}

fn wide(x: f32) -> f64 {
    f64::from(x)
}

const ELEMENTARY: [Row<(f32, f32)>; 20] = [
    Row { words: "asin", meaning: |(x, _)| near(wide(x).asin(), 6) },
    Row { words: "acos", meaning: |(x, _)| near(wide(x).acos(), 6) },
    Row { words: "sinh", meaning: |(x, _)| near(wide(x).sinh(), 8) },
    Row { words: "cosh", meaning: |(x, _)| near(wide(x).cosh(), 8) },
    Row { words: "asinh", meaning: |(x, _)| near(wide(x).asinh(), 8) },
    Row { words: "acosh", meaning: |(x, _)| near(wide(x).acosh(), 8) },
    Row { words: "atanh", meaning: |(x, _)| near(wide(x).atanh(), 8) },
    Row { words: "exp_m1", meaning: |(x, _)| near(wide(x).exp_m1(), 4) },
    Row { words: "ln_1p", meaning: |(x, _)| near(wide(x).ln_1p(), 4) },
    Row { words: "log10", meaning: |(x, _)| near(wide(x).abs().log10(), 4) },
    Row { words: "cbrt", meaning: |(x, _)| near(wide(x).cbrt(), 3) },
    Row { words: "hypot", meaning: |(x, z)| near(wide(x).hypot(wide(z)), 8) },
    Row { words: "round", meaning: |(x, _)| x.round().into() },
    Row { words: "fract", meaning: |(x, _)| x.fract().into() },
    Row { words: "copysign", meaning: |(x, z)| if x.is_nan() { x.into() } else { x.copysign(z).to_bits().into() } },
    Row { words: "rem_euclid", meaning: |(x, _)| x.rem_euclid(0.75).into() },
    Row { words: "step", meaning: |(x, z)| if z <= x { 1.0f32 } else { 0.0 }.into() },
    Row { words: "smoothstep", meaning: |(x, _)| Value::Float(smoothstep(-2.0, 3.0, x), 16) },
    Row { words: "mix", meaning: |(x, _)| Value::Float(x * 0.75 + 1.0, 1) },
    Row { words: "mix at the end", meaning: |_| 0.5f32.into() },
];

#[test]
fn elementary_functions() {
    let inputs = pairs(&[
        0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.3,
        -0.7,
        0.999,
        1e-3,
        -1e-6,
        10.0,
        -20.5,
        85.0,
        100.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ]);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &ELEMENTARY, |y| elementary(&a, &b, y));
    }
}

#[kernel(workgroup(64))]
fn rests(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        y[i] = (a[i] % b[i]).to_bits();
    }
}

const REMAINDER: [Row<(f32, f32)>; 1] = [Row { words: "%", meaning: |(x, z)| Value::Float(x % z, 8) }];

/// WGSL and Vulkan leave the remainder by what is infinite to the device.
#[test]
fn remainders_of_floats() {
    let numbers = [0.0, 0.1, 0.7, -0.7, 0.75, 1.0, -3.0, 3.0e-5, 2.5, -7.25, 1.0e30, -1.0e30];
    let ends = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    // By numbers of few bits products are exact, also where a device rounds them.
    let few_bits = [0.25, -0.75, 1.0, 3.0, -8.0, 1.0e30];
    let mut inputs = Vec::new();
    for x in numbers.into_iter().chain(ends) {
        let small = |z: &f32| x.is_nan() || x.is_infinite() || (x / z).abs() < 1.0e6;
        let by = few_bits.into_iter().filter(small).chain(ends).chain([0.0, -0.0]);
        inputs.extend(by.map(|z| (x, z)));
    }
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &REMAINDER, |y| rests(&a, &b, y));
    }
}

/// Where no float holds the quotient, the remainder is still one: with the sign of the left side, and smaller than the right one.
#[test]
fn remainders_of_large_quotients_are_smaller_than_the_divisor() {
    let inputs = [
        (1.0e30, 1.0e-30),
        (-1.0e30, 1.0e-30),
        (1.0e10, 3.0),
        (-1.0e10, 3.0),
        (1.0e10, -3.0),
        (f32::MAX, 0.7),
        (-f32::MAX, 0.7),
        (f32::MAX, f32::MIN_POSITIVE),
        (3.0e7, 0.1),
        (-123_456_790_000.0, 7.25),
    ];
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let device = &subject.device;
        let (left, right) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut y = device.zeros::<u32>(a.len()).unwrap();
        device.run(rests(&left, &right, &mut y).unwrap().over(a.len())).unwrap();
        let is_exact = matches!(device.kind(), DeviceKind::Cpu | DeviceKind::Cuda);
        for ((x, z), bits) in inputs.into_iter().zip(y.read().unwrap()) {
            let rest = f32::from_bits(bits);
            let is_one = rest.abs() < z.abs() && (rest == 0.0 || rest.is_sign_negative() == x.is_sign_negative());
            assert!(is_one, "{x:e} % {z:e} is {rest:e} on {}", subject.name);
            assert!(!is_exact || rest == x % z, "{x:e} % {z:e} is {rest:e}, not {:e}, on {}", x % z, subject.name);
        }
    }
}

#[kernel(workgroup(64))]
fn at_the_ends(a: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let at = i * 9;
        y[at] = sinh(x).to_bits();
        y[at + 1] = cosh(x).to_bits();
        y[at + 2] = asinh(x).to_bits();
        y[at + 3] = acosh(x).to_bits();
        y[at + 4] = exp_m1(x).to_bits();
        y[at + 5] = ln_1p(x).to_bits();
        y[at + 6] = cbrt(x).to_bits();
        y[at + 7] = hypot(x, 2.0).to_bits();
        y[at + 8] = round(x).to_bits();
    }
}

const ENDS: [Row<f32>; 9] = [
    Row { words: "sinh", meaning: |x| near(wide(x).sinh(), 8) },
    Row { words: "cosh", meaning: |x| near(wide(x).cosh(), 8) },
    Row { words: "asinh", meaning: |x| near(wide(x).asinh(), 8) },
    Row { words: "acosh", meaning: |x| near(wide(x).acosh(), 8) },
    Row { words: "exp_m1", meaning: |x| near(wide(x).exp_m1(), 4) },
    Row { words: "ln_1p", meaning: |x| near(wide(x).ln_1p(), 4) },
    Row { words: "cbrt", meaning: |x| near(wide(x).cbrt(), 3) },
    Row { words: "hypot", meaning: |x| near(wide(x).hypot(2.0), 8) },
    Row { words: "round", meaning: |x| x.round().into() },
];

#[test]
fn elementary_functions_of_the_largest_numbers() {
    let inputs = [f32::INFINITY, f32::NEG_INFINITY, 88.8, -89.3, 1e30, -1e30, 8_388_609.0, 1e-30, 3e38];
    for subject in common::devices() {
        let a = subject.device.buffer(&inputs).unwrap();
        check(&subject, &inputs, &ENDS, |y| at_the_ends(&a, y));
    }
}

#[kernel(workgroup(64))]
fn powers(a: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        y[2 * i] = exp(a[i]).to_bits();
        y[2 * i + 1] = exp2(a[i]).to_bits();
    }
}

/// A power of `x`: 1 of 0, and 3 + 2 |x| units from what it is elsewhere, as Vulkan and WGSL have it. Beyond the numbers it is exact.
fn power(value: f64, x: f32) -> Value {
    if x == 0.0 { 1.0f32.into() } else { near(value, 3 + 2 * x.abs().min(130.0) as u32) }
}

const POWERS: [Row<f32>; 2] = [
    Row { words: "exp", meaning: |x| power(wide(x).exp(), x) },
    Row { words: "exp2", meaning: |x| power(wide(x).exp2(), x) },
];

/// Below the least normal number a device may give 0, so that none of these is there by either.
#[test]
fn powers_of_the_largest_numbers_and_of_none() {
    let within = [0.0, -0.0, 1e-30, -1e-30, 1e-7, -1e-7, 1.0, -1.0, 88.7, -87.3, 127.9, 129.0, -152.0];
    let beyond = [1e4, -1e4, 1e9, -1e9, 1e30, -1e30, 3e38, -3e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let inputs = [within.as_slice(), beyond.as_slice()].concat();
    for subject in common::devices() {
        let a = subject.device.buffer(&inputs).unwrap();
        check(&subject, &inputs, &POWERS, |y| powers(&a, y));
    }
}

#[kernel(workgroup(64))]
fn words(a: &[u32], b: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let s = x as i32;
        let at = i * 17;
        y[at] = reverse_bits(x);
        y[at + 1] = s.reverse_bits() as u32;
        y[at + 2] = x.rotate_left(z);
        y[at + 3] = rotate_right(s, z) as u32;
        y[at + 4] = extract_bits(x, z, 5);
        y[at + 5] = extract_bits(s, 3, z) as u32;
        y[at + 6] = insert_bits(x, 0x5a5a_5a5a, z, 7);
        y[at + 7] = mul_high(x, z);
        y[at + 8] = mul_high(s, z as i32) as u32;
        y[at + 9] = dot4_i8(x, z, 1000) as u32;
        y[at + 10] = dot4_u8(x, z, 0xffff_fff0);
        y[at + 11] = rem_euclid(s, z as i32) as u32;
        y[at + 12] = rem_euclid(x, z);
        y[at + 13] = Vec2::new(x, z).reverse_bits().y;
        y[at + 14] = Vec3::new(x, z, 5).rotate_left(z).x;
        y[at + 15] = Vec2::new(s, 7).extract_bits(z, 9).x as u32;
        y[at + 16] = mul_high(Vec2::new(x, x), Vec2::new(z, 3)).x;
    }
}

const OF_WORDS: [Row<(u32, u32)>; 17] = [
    Row { words: "reverse_bits", meaning: |(x, _)| x.reverse_bits().into() },
    Row { words: "reverse_bits of i32", meaning: |(x, _)| x.reverse_bits().into() },
    Row { words: "rotate_left", meaning: |(x, z)| x.rotate_left(z % 32).into() },
    Row { words: "rotate_right", meaning: |(x, z)| x.rotate_right(z % 32).into() },
    Row { words: "extract_bits", meaning: |(x, z)| extract_bits(x, z, 5).into() },
    Row { words: "extract_bits of i32", meaning: |(x, z)| extract_bits(x.cast_signed(), 3, z).into() },
    Row { words: "insert_bits", meaning: |(x, z)| insert_bits(x, 0x5a5a_5a5a, z, 7).into() },
    Row { words: "mul_high", meaning: |(x, z)| (((u64::from(x) * u64::from(z)) >> 32) as u32).into() },
    Row {
        words: "mul_high of i32",
        meaning: |(x, z)| (((i64::from(x.cast_signed()) * i64::from(z.cast_signed())) >> 32) as u32).into(),
    },
    Row { words: "dot4_i8", meaning: |(x, z)| dot4_i8(x, z, 1000).into() },
    Row { words: "dot4_u8", meaning: |(x, z)| dot4_u8(x, z, 0xffff_fff0).into() },
    Row {
        words: "rem_euclid of i32",
        meaning: |(x, z)| if z == 0 { 0 } else { x.cast_signed().wrapping_rem_euclid(z.cast_signed()) }.into(),
    },
    Row { words: "rem_euclid of u32", meaning: |(x, z)| x.checked_rem(z).unwrap_or(0).into() },
    Row { words: "reverse_bits of Vec2", meaning: |(_, z)| z.reverse_bits().into() },
    Row { words: "rotate_left of Vec3", meaning: |(x, z)| x.rotate_left(z % 32).into() },
    Row { words: "extract_bits of Vec2<i32>", meaning: |(x, z)| extract_bits(x.cast_signed(), z, 9).into() },
    Row { words: "mul_high of Vec2", meaning: |(x, z)| (((u64::from(x) * u64::from(z)) >> 32) as u32).into() },
];

#[test]
fn integers_as_bits() {
    let inputs = pairs(&[
        0,
        1,
        3,
        5,
        16,
        28,
        31,
        32,
        33,
        127,
        255,
        0xfffe,
        0x1234_5678,
        0x7fff_ffff,
        0x8000_0000,
        0x80ff_7f01,
        u32::MAX,
    ]);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &OF_WORDS, |y| words(&a, &b, y));
    }
}

#[kernel(workgroup(64))]
fn packed(a: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let v = Vec4::new(x, -x, 0.5, x * 0.25);
        let at = i * 9;
        y[at] = pack4x8snorm(v);
        y[at + 1] = pack4x8unorm(v);
        y[at + 2] = pack2x16snorm(Vec2::new(x, 0.25));
        y[at + 3] = pack2x16unorm(Vec2::new(0.75, x));
        y[at + 4] = pack2x16float(Vec2::new(x, -2.0));
        let word = x.to_bits();
        y[at + 5] = pack4xi8(unpack4xi8(word) * 2);
        y[at + 6] = pack4xu8(unpack4xu8(word) + 1);
        y[at + 7] = pack4x8snorm(unpack4x8snorm(word)) ^ pack4x8unorm(unpack4x8unorm(word));
        y[at + 8] = pack2x16snorm(unpack2x16snorm(word))
            ^ pack2x16unorm(unpack2x16unorm(word))
            ^ pack2x16float(unpack2x16float(word & 0x3bff_3bff));
    }
}

fn quad(x: f32) -> Vec4<f32> {
    Vec4::new(x, -x, 0.5, x * 0.25)
}

const PACKED: [Row<f32>; 9] = [
    Row { words: "pack4x8snorm", meaning: |x| pack4x8snorm(quad(x)).into() },
    Row { words: "pack4x8unorm", meaning: |x| pack4x8unorm(quad(x)).into() },
    Row { words: "pack2x16snorm", meaning: |x| pack2x16snorm(Vec2::new(x, 0.25)).into() },
    Row { words: "pack2x16unorm", meaning: |x| pack2x16unorm(Vec2::new(0.75, x)).into() },
    Row { words: "pack2x16float", meaning: |x| pack2x16float(Vec2::new(x, -2.0)).into() },
    Row { words: "4xi8", meaning: |x| pack4xi8(unpack4xi8(x.to_bits()) * 2).into() },
    Row { words: "4xu8", meaning: |x| pack4xu8(unpack4xu8(x.to_bits()) + 1).into() },
    Row {
        words: "4x8 there and back",
        meaning: |x| (pack4x8snorm(unpack4x8snorm(x.to_bits())) ^ pack4x8unorm(unpack4x8unorm(x.to_bits()))).into(),
    },
    Row {
        words: "2x16 there and back",
        meaning: |x| {
            let word = x.to_bits();
            let (snorm, unorm) = (unpack2x16snorm(word), unpack2x16unorm(word));
            (pack2x16snorm(snorm) ^ pack2x16unorm(unorm) ^ pack2x16float(unpack2x16float(word & 0x3bff_3bff))).into()
        },
    },
];

#[test]
fn several_numbers_in_a_word() {
    let inputs = [0.0, 1.0, -1.0, 0.1, -0.3, 0.7, 2.0, -5.0, 0.003, 1e-5, 123.456, -0.999, 65_519.0];
    for subject in common::devices() {
        let a = subject.device.buffer(&inputs).unwrap();
        check(&subject, &inputs, &PACKED, |y| packed(&a, y));
    }
}

#[kernel(workgroup(64))]
fn directions(a: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let v = Vec3::new(a[i], 2.0, -1.5);
        let w = Vec3::new(0.25, a[i], 3.0);
        let at = i * 7;
        y[at] = length(v).to_bits();
        y[at + 1] = distance(v, w).to_bits();
        y[at + 2] = normalize(v).y.to_bits();
        y[at + 3] = cross(v, w).x.to_bits();
        y[at + 4] = v.cross(w).z.to_bits();
        y[at + 5] = reflect(v, w).y.to_bits();
        y[at + 6] = Vec2::new(a[i], 1.0).length().to_bits();
    }
}

fn both(x: f32) -> (Vec3<f32>, Vec3<f32>) {
    (Vec3::new(x, 2.0, -1.5), Vec3::new(0.25, x, 3.0))
}

const DIRECTIONS: [Row<f32>; 7] = [
    Row { words: "length", meaning: |x| Value::Float(length(both(x).0), 4) },
    Row { words: "distance", meaning: |x| Value::Float(distance(both(x).0, both(x).1), 4) },
    Row { words: "normalize", meaning: |x| Value::Float(normalize(both(x).0).y, 6) },
    Row { words: "cross, x", meaning: |x| Value::Float(cross(both(x).0, both(x).1).x, 2) },
    Row { words: "cross, z", meaning: |x| Value::Float(cross(both(x).0, both(x).1).z, 2) },
    Row { words: "reflect", meaning: |x| Value::Float(reflect(both(x).0, both(x).1).y, 4) },
    Row { words: "length of Vec2", meaning: |x| Value::Float(Vec2::new(x, 1.0).length(), 4) },
];

#[test]
fn vectors_as_a_whole() {
    let inputs = [0.0, 1.0, -1.0, 3.5, 100.0, -0.125];
    for subject in common::devices() {
        let a = subject.device.buffer(&inputs).unwrap();
        check(&subject, &inputs, &DIRECTIONS, |y| directions(&a, y));
    }
}
