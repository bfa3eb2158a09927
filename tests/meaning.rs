//! What the operations of the language mean, on every device: the table in the essay of `trefoil_codegen::ir`, row by row.
//!
//! A kernel computes all rows of a group for each pair of inputs and writes one word a row; the table says in plain Rust what the word must be.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;
#[path = "common/table.rs"]
mod table;

use table::{POISON, Row, Value, check, pairs, unzip};
use trefoil::prelude::*;

#[kernel(workgroup(64))]
fn signed_words(a: &[i32], b: &[i32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 14;
        y[at] = (x + z) as u32;
        y[at + 1] = (x - z) as u32;
        y[at + 2] = (x * z) as u32;
        y[at + 3] = (-x) as u32;
        y[at + 4] = abs(x) as u32;
        y[at + 5] = (x / z) as u32;
        y[at + 6] = (x % z) as u32;
        y[at + 7] = (x << (z as u32)) as u32;
        y[at + 8] = (x >> (z as u32)) as u32;
        y[at + 9] = min(x, z) as u32;
        y[at + 10] = max(x, z) as u32;
        y[at + 11] = clamp(x, -3, z) as u32;
        y[at + 12] = (x as f32).to_bits();
        y[at + 13] = (x < z) as u32;
    }
}

const SIGNED: [Row<(i32, i32)>; 14] = [
    Row { words: "i32 +", meaning: |(x, z)| x.wrapping_add(z).into() },
    Row { words: "i32 -", meaning: |(x, z)| x.wrapping_sub(z).into() },
    Row { words: "i32 *", meaning: |(x, z)| x.wrapping_mul(z).into() },
    Row { words: "i32 negate", meaning: |(x, _)| x.wrapping_neg().into() },
    Row { words: "i32 abs", meaning: |(x, _)| x.wrapping_abs().into() },
    Row { words: "i32 /", meaning: |(x, z)| if z == 0 { 0 } else { x.wrapping_div(z) }.into() },
    Row { words: "i32 %", meaning: |(x, z)| if z == 0 { 0 } else { x.wrapping_rem(z) }.into() },
    Row { words: "i32 <<", meaning: |(x, z)| x.wrapping_shl(z.cast_unsigned()).into() },
    Row { words: "i32 >>", meaning: |(x, z)| x.wrapping_shr(z.cast_unsigned()).into() },
    Row { words: "i32 min", meaning: |(x, z)| x.min(z).into() },
    Row { words: "i32 max", meaning: |(x, z)| x.max(z).into() },
    Row { words: "i32 clamp", meaning: |(x, z)| x.max(-3).min(z).into() },
    Row { words: "i32 to f32", meaning: |(x, _)| (x as f32).into() },
    Row { words: "i32 <", meaning: |(x, z)| (x < z).into() },
];

#[test]
fn signed_integers() {
    let inputs = pairs(&[
        0,
        1,
        -1,
        2,
        -2,
        7,
        -7,
        31,
        32,
        33,
        -33,
        65_537,
        16_777_217,
        -16_777_219,
        2_147_483_583,
        1_000_000_007,
        i32::MAX,
        i32::MIN + 1,
        i32::MIN,
    ]);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &SIGNED, |y| signed_words(&a, &b, y));
    }
}

#[kernel(workgroup(64))]
fn unsigned_words(a: &[u32], b: &[u32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 16;
        y[at] = x + z;
        y[at + 1] = x - z;
        y[at + 2] = x * z;
        y[at + 3] = x / z;
        y[at + 4] = x % z;
        y[at + 5] = x << z;
        y[at + 6] = x >> z;
        y[at + 7] = min(x, z);
        y[at + 8] = max(x, z);
        y[at + 9] = !x;
        y[at + 10] = (x & z) ^ (x | z);
        y[at + 11] = (x as f32).to_bits();
        y[at + 12] = count_ones(x);
        y[at + 13] = leading_zeros(x);
        y[at + 14] = trailing_zeros(x);
        y[at + 15] = (x as usize - 1) as u32;
    }
}

const UNSIGNED: [Row<(u32, u32)>; 16] = [
    Row { words: "u32 +", meaning: |(x, z)| x.wrapping_add(z).into() },
    Row { words: "u32 -", meaning: |(x, z)| x.wrapping_sub(z).into() },
    Row { words: "u32 *", meaning: |(x, z)| x.wrapping_mul(z).into() },
    Row { words: "u32 /", meaning: |(x, z)| x.checked_div(z).unwrap_or(0).into() },
    Row { words: "u32 %", meaning: |(x, z)| x.checked_rem(z).unwrap_or(0).into() },
    Row { words: "u32 <<", meaning: |(x, z)| x.wrapping_shl(z).into() },
    Row { words: "u32 >>", meaning: |(x, z)| x.wrapping_shr(z).into() },
    Row { words: "u32 min", meaning: |(x, z)| x.min(z).into() },
    Row { words: "u32 max", meaning: |(x, z)| x.max(z).into() },
    Row { words: "u32 !", meaning: |(x, _)| (!x).into() },
    Row { words: "u32 & ^ |", meaning: |(x, z)| ((x & z) ^ (x | z)).into() },
    Row { words: "u32 to f32", meaning: |(x, _)| (x as f32).into() },
    Row { words: "count_ones", meaning: |(x, _)| x.count_ones().into() },
    Row { words: "leading_zeros", meaning: |(x, _)| x.leading_zeros().into() },
    Row { words: "trailing_zeros", meaning: |(x, _)| x.trailing_zeros().into() },
    Row { words: "usize - 1", meaning: |(x, _)| x.wrapping_sub(1).into() },
];

#[test]
fn unsigned_integers_and_indices() {
    let inputs = pairs(&[
        0,
        1,
        2,
        3,
        31,
        32,
        33,
        64,
        65_535,
        65_537,
        16_777_217,
        16_777_219,
        0x8000_0000,
        0xffff_ff7f,
        0xffff_ff80,
        u32::MAX - 1,
        u32::MAX,
    ]);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &UNSIGNED, |y| unsigned_words(&a, &b, y));
    }
}

/// Arithmetic of numbers that are not too small, too large or none.
#[kernel(workgroup(64))]
fn arithmetic(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 8;
        y[at] = (x + z).to_bits();
        y[at + 1] = (x - z).to_bits();
        y[at + 2] = (x * z).to_bits();
        y[at + 3] = (x / z).to_bits();
        y[at + 4] = sqrt(abs(x)).to_bits();
        y[at + 5] = (-x).to_bits();
        y[at + 6] = abs(z).to_bits();
        y[at + 7] = signum(x).to_bits();
    }
}

const ARITHMETIC: [Row<(f32, f32)>; 8] = [
    Row { words: "f32 +", meaning: |(x, z)| (x + z).into() },
    Row { words: "f32 -", meaning: |(x, z)| (x - z).into() },
    Row { words: "f32 *", meaning: |(x, z)| (x * z).into() },
    Row { words: "f32 /", meaning: |(x, z)| Value::Float(x / z, 3) },
    Row { words: "sqrt", meaning: |(x, _)| Value::Float(x.abs().sqrt(), 3) },
    Row { words: "f32 negate", meaning: |(x, _)| (-x).into() },
    Row { words: "f32 abs", meaning: |(_, z)| z.abs().into() },
    Row { words: "signum", meaning: |(x, _)| x.signum().into() },
];

#[test]
fn float_arithmetic() {
    let inputs = pairs(&[1.0, -1.0, 0.1, -0.3, 1.5, 3.0, -7.25, 1e-6, 16_777_215.0, 123_456.79, -9.87e8, 1.000_000_1]);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &ARITHMETIC, |y| arithmetic(&a, &b, y));
    }
}

#[kernel(workgroup(64))]
fn float_remainders(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        y[i] = (a[i] % b[i]).to_bits();
    }
}

#[test]
fn float_remainders_have_the_sign_of_the_left_side() {
    const TABLE: [Row<(f32, f32)>; 1] = [Row { words: "f32 %", meaning: |(x, z)| (x % z).into() }];
    let inputs =
        [(5.5, 2.0), (-5.5, 2.0), (5.5, -2.0), (-5.5, -2.0), (7.25, 1.5), (0.75, 4.0), (-0.75, 4.0), (9.5, 0.5)];
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &TABLE, |y| float_remainders(&a, &b, y));
    }
}

/// What the table says of numbers of any kind.
#[kernel(workgroup(64))]
fn special(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 19;
        y[at] = min(x, z).to_bits();
        y[at + 1] = max(x, z).to_bits();
        y[at + 2] = clamp(x, -2.0, 3.0).to_bits();
        y[at + 3] = (x == z) as u32;
        y[at + 4] = (x != z) as u32;
        y[at + 5] = (x < z) as u32;
        y[at + 6] = (x <= z) as u32;
        y[at + 7] = (x > z) as u32;
        y[at + 8] = (x >= z) as u32;
        y[at + 9] = (!(x < z)) as u32;
        y[at + 10] = round_ties_even(x).to_bits();
        y[at + 11] = floor(x).to_bits();
        y[at + 12] = ceil(x).to_bits();
        y[at + 13] = trunc(x).to_bits();
        y[at + 14] = (x as i32) as u32;
        y[at + 15] = x as u32;
        y[at + 16] = is_nan(x) as u32;
        y[at + 17] = is_infinite(x) as u32;
        y[at + 18] = x as usize as u32;
    }
}

const SPECIAL: [Row<(f32, f32)>; 19] = [
    Row { words: "f32 min", meaning: |(x, z)| x.min(z).into() },
    Row { words: "f32 max", meaning: |(x, z)| x.max(z).into() },
    Row { words: "f32 clamp", meaning: |(x, _)| x.clamp(-2.0, 3.0).into() },
    Row { words: "f32 ==", meaning: |(x, z)| (x == z).into() },
    Row { words: "f32 !=", meaning: |(x, z)| (x != z).into() },
    Row { words: "f32 <", meaning: |(x, z)| (x < z).into() },
    Row { words: "f32 <=", meaning: |(x, z)| (x <= z).into() },
    Row { words: "f32 >", meaning: |(x, z)| (x > z).into() },
    Row { words: "f32 >=", meaning: |(x, z)| (x >= z).into() },
    Row {
        words: "not f32 <",
        meaning: |(x, z)| (x.partial_cmp(&z).is_none_or(|order| order != std::cmp::Ordering::Less)).into(),
    },
    Row { words: "round_ties_even", meaning: |(x, _)| x.round_ties_even().into() },
    Row { words: "floor", meaning: |(x, _)| x.floor().into() },
    Row { words: "ceil", meaning: |(x, _)| x.ceil().into() },
    Row { words: "trunc", meaning: |(x, _)| x.trunc().into() },
    Row { words: "f32 to i32", meaning: |(x, _)| (x as i32).into() },
    Row { words: "f32 to u32", meaning: |(x, _)| (x as u32).into() },
    Row { words: "is_nan", meaning: |(x, _)| x.is_nan().into() },
    Row { words: "is_infinite", meaning: |(x, _)| x.is_infinite().into() },
    Row { words: "f32 to usize", meaning: |(x, _)| (x as u32).into() },
];

const KINDS: [f32; 21] = [
    0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    -2.5,
    0.499_999_97,
    8_388_609.0,
    2_147_483_500.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    -2_147_483_904.0,
    4_294_967_000.0,
    4_294_967_296.0,
    1e20,
    -1e20,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

#[test]
fn floats_of_every_kind() {
    let inputs = pairs(&KINDS);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &SPECIAL, |y| special(&a, &b, y));
    }
}

/// `clamp` as a function and as a method, of numbers and of vectors, between bounds that are known and others.
#[kernel(workgroup(64))]
fn bounded(a: &[f32], b: &[f32], y: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 12;
        y[at] = x.clamp(-2.0, 3.0).to_bits();
        y[at + 1] = x.clamp(-2.0, z).to_bits();
        y[at + 2] = clamp(x, z, 3.0).to_bits();
        let two = Vec2::new(x, z).clamp(Vec2::splat(-2.0), Vec2::splat(3.0));
        y[at + 3] = two.x.to_bits();
        y[at + 4] = two.y.to_bits();
        let three = clamp(Vec3::new(x, 1.0, z), Vec3::new(-2.0, z, x), Vec3::splat(3.0));
        y[at + 5] = three.x.to_bits();
        y[at + 6] = three.y.to_bits();
        y[at + 7] = three.z.to_bits();
        let four = clamp(Vec4::new(x, 1.0, z, x), Vec4::new(z, -2.0, -2.0, -2.0), Vec4::new(3.0, x, x, 3.0));
        y[at + 8] = four.x.to_bits();
        y[at + 9] = four.y.to_bits();
        y[at + 10] = four.z.to_bits();
        y[at + 11] = four.w.to_bits();
    }
}

/// What the essay says of `clamp`.
fn between(x: f32, low: f32, high: f32) -> Value {
    Value::Float(if x.is_nan() { x } else { x.max(low).min(high) }, 0)
}

const BOUNDED: [Row<(f32, f32)>; 12] = [
    Row { words: "clamp between numbers", meaning: |(x, _)| between(x, -2.0, 3.0) },
    Row { words: "clamp below z", meaning: |(x, z)| between(x, -2.0, z) },
    Row { words: "clamp above z", meaning: |(x, z)| between(x, z, 3.0) },
    Row { words: "clamp of Vec2, x", meaning: |(x, _)| between(x, -2.0, 3.0) },
    Row { words: "clamp of Vec2, y", meaning: |(_, z)| between(z, -2.0, 3.0) },
    Row { words: "clamp of Vec3, x", meaning: |(x, _)| between(x, -2.0, 3.0) },
    Row { words: "clamp of Vec3, y", meaning: |(_, z)| between(1.0, z, 3.0) },
    Row { words: "clamp of Vec3, z", meaning: |(x, z)| between(z, x, 3.0) },
    Row { words: "clamp of Vec4, x", meaning: |(x, z)| between(x, z, 3.0) },
    Row { words: "clamp of Vec4, y", meaning: |(x, _)| between(1.0, -2.0, x) },
    Row { words: "clamp of Vec4, z", meaning: |(x, z)| between(z, -2.0, x) },
    Row { words: "clamp of Vec4, w", meaning: |(x, _)| between(x, -2.0, 3.0) },
];

#[test]
fn clamp_keeps_a_nan_and_takes_any_bounds() {
    let inputs = pairs(&KINDS);
    let (a, b) = unzip(&inputs);
    for subject in common::devices() {
        let (a, b) = (subject.device.buffer(&a).unwrap(), subject.device.buffer(&b).unwrap());
        check(&subject, &inputs, &BOUNDED, |y| bounded(&a, &b, y));
    }
}

#[kernel(workgroup(64))]
fn halves(x: &[f32], h: &[f16], narrow: &mut [f16], wide: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        narrow[i] = f16::from_f32(x[i]);
    }
    if i < h.len() {
        wide[i] = h[i].to_f32();
    }
}

#[test]
fn halves_convert_to_nearest_and_back_exactly() {
    let mut x: Vec<f32> =
        vec![0.0, 1.0, -1.0, 65_504.0, 65_519.0, 65_520.0, -65_520.0, 1e9, 0.1, -0.3, 6.103_515_6e-5, 3.3e-5, 6e-8];
    // Ties: halfway between neighbours, to the even one.
    x.extend([1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 2049.0, 2051.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    // Every half there is; an odd number, so that the last word is half used.
    let h: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).chain([f16::ONE]).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let mut narrow = device.buffer(&vec![f16::from_f32(-7.0); x.len()]).unwrap();
        let mut wide = device.buffer(&vec![-7.0f32; h.len()]).unwrap();
        let (x_there, h_there) = (device.buffer(&x).unwrap(), device.buffer(&h).unwrap());
        device.run(halves(&x_there, &h_there, &mut narrow, &mut wide).unwrap().over(h.len())).unwrap();
        for (x, y) in x.iter().zip(narrow.read().unwrap()) {
            let expected = f16::from_f32(*x);
            let same = y.to_bits() == expected.to_bits() || (x.is_nan() && y.is_nan());
            assert!(same, "f32 to f16 of {x:e} is {y} on {}, {expected} expected", subject.name);
        }
        for (h, y) in h.iter().zip(wide.read().unwrap()) {
            let expected = h.to_f32();
            let same = y == expected || (h.is_nan() && y.is_nan());
            assert!(same, "f16 to f32 of {:#x} is {y:e} on {}, {expected:e} expected", h.to_bits(), subject.name);
        }
    }
}

#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Red,
    Green = 5,
    Blue,
}

#[kernel(workgroup(64))]
fn choices(x: &[i32], y: &mut [u32], flag: bool, colour: Colour, numbers: [u32; 3]) {
    let i = global_index();
    if i < x.len() {
        let positive = x[i] > 0;
        let at = i * 6;
        y[at] = positive as u32;
        y[at + 1] = (positive as i32 - 2) as u32;
        y[at + 2] = if flag && !positive { 10 } else { 20 };
        y[at + 3] = colour as u32;
        y[at + 4] = match colour {
            Colour::Red => 100,
            Colour::Green => 200,
            Colour::Blue => 300,
        };
        y[at + 5] = match x[i] {
            0 => numbers[0],
            1 | 2 => numbers[1],
            3..=5 => numbers[2],
            _ => select(flag, 1000, 2000),
        };
    }
}

#[test]
fn bools_enums_and_choices() {
    let inputs: Vec<i32> = (-3..9).collect();
    for subject in common::devices() {
        let x = subject.device.buffer(&inputs).unwrap();
        for (flag, colour) in [(true, Colour::Red), (false, Colour::Green), (true, Colour::Blue)] {
            let mut y = subject.device.buffer(&vec![POISON; inputs.len() * 6]).unwrap();
            let launch = choices(&x, &mut y, flag, colour, [7, 8, 9]).unwrap();
            subject.device.run(launch.over(inputs.len())).unwrap();
            for (x, words) in inputs.iter().zip(y.read().unwrap().chunks(6)) {
                let positive = u32::from(*x > 0);
                let expected = [
                    positive,
                    positive.wrapping_sub(2),
                    if flag && *x <= 0 { 10 } else { 20 },
                    match colour {
                        Colour::Red => 0,
                        Colour::Green => 5,
                        Colour::Blue => 6,
                    },
                    match colour {
                        Colour::Red => 100,
                        Colour::Green => 200,
                        Colour::Blue => 300,
                    },
                    match x {
                        0 => 7,
                        1 | 2 => 8,
                        3..=5 => 9,
                        _ if flag => 1000,
                        _ => 2000,
                    },
                ];
                assert_eq!(words, expected, "x = {x}, {flag}, {colour:?} on {}", subject.name);
            }
        }
    }
}

/// Reads at indices that the launch gives, each of six kinds of memory.
#[kernel(workgroup(64))]
fn read_anywhere(x: &[u32], at: &[u32], y: &mut [u32]) {
    let mut shared = workgroup_array::<u32>(64);
    let local = local_index();
    shared[local] = 100 + local as u32;
    barrier();
    let i = global_index();
    if i < at.len() {
        let k = at[i] as usize;
        let own = [11, 12, 13u32];
        let vector = Vec3::new(21, 22, 23u32);
        let quad = x.vec4(k);
        y[i * 5] = x[k];
        y[i * 5 + 1] = shared[k];
        y[i * 5 + 2] = own[k];
        y[i * 5 + 3] = vector[k];
        y[i * 5 + 4] = quad.x + quad.w;
    }
}

#[test]
fn reads_past_the_end_give_zero() {
    // Not a multiple of 4: the last four elements from 8 on are past the end together.
    let x: Vec<u32> = (0..11).map(|i| 1000 + i).collect();
    let at: [u32; 12] = [0, 1, 2, 3, 10, 11, 12, 63, 64, 1 << 20, 0x4000_0000, u32::MAX];
    for subject in common::devices() {
        let device = &subject.device;
        // A part of a larger buffer, whose other elements must not be seen.
        let mut whole = vec![77; 64];
        whole[16..27].copy_from_slice(&x);
        let whole = device.buffer(&whole).unwrap();
        let at_there = device.buffer(&at).unwrap();
        let mut y = device.buffer(&[POISON; 60]).unwrap();
        let launch = read_anywhere(whole.slice(16..27).unwrap(), &at_there, &mut y).unwrap();
        device.run(launch.over(at.len())).unwrap();
        for (k, words) in at.iter().zip(y.read().unwrap().chunks(5)) {
            let index = *k as usize;
            let element = |values: &[u32]| values.get(index).copied().unwrap_or(0);
            let shared: Vec<u32> = (100..164).collect();
            let quad = x.chunks_exact(4).nth(index).map_or(0, |quad| quad[0] + quad[3]);
            let expected = [element(&x), element(&shared), element(&[11, 12, 13]), element(&[21, 22, 23]), quad];
            assert_eq!(words, expected, "index {k} on {}", subject.name);
        }
    }
}

#[kernel(workgroup(64))]
fn write_anywhere(at: &[u32], y: &mut [u32], quads: &mut [u32], counts: &[Atomic<u32>], old: &mut [u32]) {
    let i = global_index();
    if i < at.len() {
        let k = at[i] as usize;
        let mut own = [1, 2, 3u32];
        own[k] = 9;
        y[k] = own[0] + own[1] + own[2];
        quads.set_vec4(k, Vec4::splat(5));
        old[i] = counts[k].add(3);
    }
}

#[test]
fn writes_past_the_end_are_dropped_and_atomics_there_do_nothing() {
    let at: [u32; 8] = [0, 2, 5, 10, 11, 64, 0x4000_0000, u32::MAX];
    for subject in common::devices() {
        let device = &subject.device;
        let fresh = || device.buffer(&[POISON; 64]).unwrap();
        let (mut y, mut quads, mut counts) = (fresh(), fresh(), fresh());
        counts.write(&[40; 64]).unwrap();
        let mut old = device.buffer(&[POISON; 8]).unwrap();
        let at_there = device.buffer(&at).unwrap();
        let launch = write_anywhere(
            &at_there,
            y.slice_mut(16..27).unwrap(),
            quads.slice_mut(16..27).unwrap(),
            counts.slice_mut(16..27).unwrap(),
            &mut old,
        );
        device.run(launch.unwrap().over(at.len())).unwrap();
        let (mut expected_y, mut expected_quads, mut expected_counts) = ([POISON; 64], [POISON; 64], [40; 64]);
        for k in at.iter().map(|k| *k as usize).filter(|k| *k < 11) {
            expected_y[16 + k] = [1, 2, 3].iter().enumerate().map(|(i, own)| if i == k { 9 } else { *own }).sum();
            expected_counts[16 + k] = 43;
            if 4 * k + 4 <= 11 {
                expected_quads[16 + 4 * k..20 + 4 * k].fill(5);
            }
        }
        assert_eq!(y.read().unwrap(), expected_y, "on {}", subject.name);
        assert_eq!(quads.read().unwrap(), expected_quads, "quads on {}", subject.name);
        assert_eq!(counts.read().unwrap(), expected_counts, "atomics on {}", subject.name);
        let expected_old = at.map(|k| if k < 11 { 40 } else { 0 });
        assert_eq!(old.read().unwrap(), expected_old, "what atomics gave on {}", subject.name);
    }
}
