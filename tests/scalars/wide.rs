//! Numbers of 64 bits.

use trefoil::artefact::{Feature, Features};
use trefoil::prelude::*;

use super::common::{self, Subject};
use super::{pairs, same};

/// Whether the device has the features; where it lacks one, the launch must be refused with its name.
fn has(subject: &Subject, features: &[Feature], launch: trefoil::Launch) -> bool {
    let known = subject.device.properties().features;
    let missing: Vec<_> = features.iter().filter(|feature| !known.has(**feature)).collect();
    let given = subject.device.run(launch.over(1));
    match missing.first() {
        None => {
            given.unwrap();
            true
        }
        Some(feature) => {
            let error = given.unwrap_err().to_string();
            assert!(error.contains(feature.variant_name()), "{error} on {}", subject.name);
            false
        }
    }
}

#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mixed {
    long: i64,
    double: f64,
    pair: [u64; 2],
    x: f32,
    n: u32,
}

/// What is there without any feature: moves, conversions between integers, equality.
#[kernel(workgroup(64))]
fn moved(
    a: &[i64],
    b: &[u64],
    c: &[f64],
    m: &[Mixed],
    y: &mut [i64],
    z: &mut [u64],
    d: &mut [f64],
    o: &mut [Mixed],
    one: i64,
    list: [u64; 3],
    half: f64,
    doubles: [f64; 2],
) {
    let mut kept = workgroup_array::<u64>(64);
    kept[local_index()] = b[global_index()];
    barrier();
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let word = x as i32;
        let low = b[i] as u32;
        let same = x == one;
        y[5 * i] = x;
        y[5 * i + 1] = word as i64;
        y[5 * i + 2] = if same { -1 } else { b[i] as i64 };
        y[5 * i + 3] = select(i == 1, one, i64::MIN);
        z[4 * i] = kept[local_index()];
        z[4 * i + 1] = word as u64;
        z[4 * i + 2] = list[low as usize % 5];
        z[4 * i + 3] = low as usize as u64;
        d[2 * i] = if low == 3 { half } else { c[i] };
        d[2 * i + 1] = doubles[i % 3];
        o[i] = m[i];
        o[i].long = x;
        o[i].pair[1] = b[i];
        y[5 * i + 4] = (same as u32 + 2 * (b[i] != list[0]) as u32 + 4 * (m[i].long == x) as u32) as i64;
    }
}

const LONGS: [i64; 12] =
    [0, 1, -1, 3, -7, 64, 0x7fff_ffff, -0x8000_0000, 0x1_0000_0003, -0x1234_5678_9abc_def0, i64::MAX, i64::MIN];

#[test]
fn wide_types_are_moved_converted_and_compared_everywhere() {
    let a = LONGS;
    let b = LONGS.map(i64::cast_unsigned);
    let c: Vec<f64> = (0..12).map(|i| 0.1 * f64::from(i) - 0.3).chain([f64::NAN]).take(12).collect();
    let m: Vec<Mixed> = (0..12u32)
        .map(|i| Mixed { long: a[11 - i as usize], double: c[i as usize], pair: [b[i as usize], 5], x: 0.5, n: i })
        .collect();
    let (one, list, half, doubles) = (1i64, [7u64, u64::MAX, 1 << 40], 0.5f64, [1e300, -0.0]);
    for subject in common::devices() {
        let device = &subject.device;
        let there = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap(), device.buffer(&c).unwrap());
        let m_there = device.buffer(&m).unwrap();
        let mut y = device.buffer(&[-7i64; 60]).unwrap();
        let mut z = device.buffer(&[7u64; 48]).unwrap();
        let mut d = device.buffer(&[7f64; 24]).unwrap();
        let mut o = device.buffer(&[m[0]; 12]).unwrap();
        let launch =
            moved(&there.0, &there.1, &there.2, &m_there, &mut y, &mut z, &mut d, &mut o, one, list, half, doubles);
        device.run(launch.unwrap().over(12)).unwrap();
        let (y, z, d) = (y.read().unwrap(), z.read().unwrap(), d.read().unwrap());
        let o = o.read().unwrap();
        for i in 0..12 {
            let (x, low) = (a[i], b[i] as u32);
            let word = x as i32;
            let other = if i == 1 { one } else { i64::MIN };
            assert_eq!(
                y[5 * i..5 * i + 5],
                [
                    x,
                    word.into(),
                    if x == one { -1 } else { b[i].cast_signed() },
                    other,
                    i64::from(x == one) + 2 * i64::from(b[i] != list[0]) + 4 * i64::from(m[i].long == x)
                ],
                "{i} on {}",
                subject.name
            );
            let listed = list.get(low as usize % 5).copied().unwrap_or(0);
            assert_eq!(z[4 * i..4 * i + 4], [b[i], word as u64, listed, low.into()], "{i} on {}", subject.name);
            let expected = [if low == 3 { half } else { c[i] }, doubles.get(i % 3).copied().unwrap_or(0.0)];
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&d[2 * i..2 * i + 2]), bits(&expected), "{i} on {}", subject.name);
            let expected = Mixed { long: x, pair: [m[i].pair[0], b[i]], ..m[i] };
            assert_eq!(format!("{:?}", o[i]), format!("{expected:?}"), "{i} on {}", subject.name);
        }
    }
}

#[kernel(workgroup(64), requires(Int64))]
fn long_arithmetic(a: &[i64], b: &[i64], y: &mut [i64], flags: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 17;
        y[at] = x + z;
        y[at + 1] = x - z;
        y[at + 2] = x * z;
        y[at + 3] = -x;
        y[at + 4] = abs(x);
        y[at + 5] = x / z;
        y[at + 6] = x % z;
        y[at + 7] = x << (z as u32);
        y[at + 8] = x >> (z as u32);
        y[at + 9] = min(x, z);
        y[at + 10] = max(x, z);
        y[at + 11] = clamp(x, -3, z);
        y[at + 12] = (x & z) ^ (x | !z);
        y[at + 13] = signum(x);
        y[at + 14] = x / 10 + i64::MIN;
        y[at + 15] = (x as f32) as i64;
        let both = Vec2::new(x, z) * Vec2::splat(3);
        y[at + 16] = both.x + both.y;
        flags[3 * i] = (x < z) as u32;
        flags[3 * i + 1] = (x >= z) as u32;
        flags[3 * i + 2] = (x as f32).to_bits();
    }
}

#[kernel(workgroup(64), requires(Int64))]
fn unsigned_arithmetic(a: &[u64], b: &[u64], y: &mut [u64], flags: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 13;
        y[at] = x + z;
        y[at + 1] = x - z;
        y[at + 2] = x * z;
        y[at + 3] = x / z;
        y[at + 4] = x % z;
        y[at + 5] = x << (z as u32);
        y[at + 6] = x >> (z as u32);
        y[at + 7] = min(x, z);
        y[at + 8] = max(x, z);
        y[at + 9] = !x;
        y[at + 10] = (x as f32) as u64;
        y[at + 11] = x.div_ceil(7);
        y[at + 12] = (x as i32) as u64 + 1;
        flags[2 * i] = (x < z) as u32;
        flags[2 * i + 1] = (x <= z) as u32;
    }
}

#[test]
fn long_integers_mean_what_rust_means() {
    let (a, b) = pairs(&LONGS);
    let (ua, ub): (Vec<u64>, Vec<u64>) =
        (a.iter().map(|x| x.cast_unsigned()).collect(), b.iter().map(|x| x.cast_unsigned()).collect());
    let mut ran = 0;
    for subject in common::devices() {
        let device = &subject.device;
        let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut y = device.buffer(&vec![7i64; a.len() * 17]).unwrap();
        let mut flags = device.buffer(&vec![7u32; a.len() * 3]).unwrap();
        if !has(&subject, &[Feature::Int64], long_arithmetic(&at, &bt, &mut y, &mut flags).unwrap()) {
            continue;
        }
        ran += 1;
        device.run(long_arithmetic(&at, &bt, &mut y, &mut flags).unwrap().over(a.len())).unwrap();
        let (y, flags) = (y.read().unwrap(), flags.read().unwrap());
        for (i, (x, z)) in a.iter().copied().zip(b.iter().copied()).enumerate() {
            let by = z as u32;
            let expected = [
                x.wrapping_add(z),
                x.wrapping_sub(z),
                x.wrapping_mul(z),
                x.wrapping_neg(),
                x.wrapping_abs(),
                if z == 0 { 0 } else { x.wrapping_div(z) },
                if z == 0 { 0 } else { x.wrapping_rem(z) },
                x.wrapping_shl(by),
                x.wrapping_shr(by),
                x.min(z),
                x.max(z),
                x.max(-3).min(z),
                (x & z) ^ (x | !z),
                x.signum(),
                (x / 10).wrapping_add(i64::MIN),
                (x as f32) as i64,
                x.wrapping_mul(3).wrapping_add(z.wrapping_mul(3)),
            ];
            assert_eq!(y[17 * i..17 * i + 17], expected, "{x} and {z} on {}", subject.name);
            let expected = [u32::from(x < z), u32::from(x >= z), (x as f32).to_bits()];
            assert_eq!(flags[3 * i..3 * i + 3], expected, "{x} and {z} on {}", subject.name);
        }
        let (at, bt) = (device.buffer(&ua).unwrap(), device.buffer(&ub).unwrap());
        let mut y = device.buffer(&vec![7u64; a.len() * 13]).unwrap();
        let mut flags = device.buffer(&vec![7u32; a.len() * 2]).unwrap();
        device.run(unsigned_arithmetic(&at, &bt, &mut y, &mut flags).unwrap().over(a.len())).unwrap();
        let (y, flags) = (y.read().unwrap(), flags.read().unwrap());
        for (i, (x, z)) in ua.iter().copied().zip(ub.iter().copied()).enumerate() {
            let by = z as u32;
            let expected = [
                x.wrapping_add(z),
                x.wrapping_sub(z),
                x.wrapping_mul(z),
                x.checked_div(z).unwrap_or(0),
                x.checked_rem(z).unwrap_or(0),
                x.wrapping_shl(by),
                x.wrapping_shr(by),
                x.min(z),
                x.max(z),
                !x,
                (x as f32) as u64,
                x.div_ceil(7),
                ((x as i32) as u64).wrapping_add(1),
            ];
            assert_eq!(y[13 * i..13 * i + 13], expected, "{x} and {z} on {}", subject.name);
            assert_eq!(flags[2 * i..2 * i + 2], [u32::from(x < z), u32::from(x <= z)], "{x}, {z} on {}", subject.name);
        }
    }
    assert!(ran > 0, "the CPU computes with 64 bits");
}

#[kernel(workgroup(64), requires(Float64))]
fn double_rests(a: &[f64], b: &[f64], y: &mut [f64]) {
    let i = global_index();
    if i < a.len() {
        y[i] = a[i] % b[i];
    }
}

/// Also where no double holds the quotient.
#[test]
fn rests_of_doubles_are_smaller_than_the_divisor() {
    let a = [1e300, -1e300, 1e30, -1e30, f64::MAX, 7.5, -7.5];
    let b = [1e-300, 1e-300, 3.0, -3.0, 0.7, 2.0, 2.0];
    for subject in common::devices() {
        let device = &subject.device;
        let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut y = device.buffer(&[7f64; 7]).unwrap();
        if !has(&subject, &[Feature::Float64], double_rests(&at, &bt, &mut y).unwrap()) {
            continue;
        }
        device.run(double_rests(&at, &bt, &mut y).unwrap().over(a.len())).unwrap();
        for ((x, z), rest) in a.into_iter().zip(b).zip(y.read().unwrap()) {
            let is_one = rest.abs() < z.abs() && (rest == 0.0 || rest.is_sign_negative() == x.is_sign_negative());
            assert!(is_one, "{x:e} % {z:e} is {rest:e} on {}", subject.name);
        }
    }
}

#[kernel(workgroup(64), requires(Float64))]
fn double_arithmetic(a: &[f64], b: &[f64], y: &mut [f64], flags: &mut [u32]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i];
        let z = b[i];
        let at = i * 17;
        y[at] = x + z;
        y[at + 1] = x - z;
        y[at + 2] = x * z;
        y[at + 3] = x / z;
        y[at + 4] = -x;
        y[at + 5] = abs(x);
        y[at + 6] = min(x, z);
        y[at + 7] = max(x, z);
        y[at + 8] = floor(x);
        y[at + 9] = x.ceil();
        y[at + 10] = trunc(x);
        y[at + 11] = round_ties_even(x);
        y[at + 12] = sqrt(abs(x));
        y[at + 13] = clamp(x, -2.5, 1e300);
        y[at + 14] = (x as f32) as f64 + 0.1;
        y[at + 15] = x.clamp(z, 3.0);
        let pair = clamp(Vec2::new(x, z), Vec2::splat(-2.5), Vec2::new(3.0, x));
        y[at + 16] = pair.y;
        flags[8 * i] = (x < z) as u32;
        flags[8 * i + 1] = (x == z) as u32;
        flags[8 * i + 2] = (x != z) as u32;
        flags[8 * i + 3] = is_nan(x) as u32;
        flags[8 * i + 4] = is_infinite(x) as u32;
        flags[8 * i + 5] = (x as i32) as u32;
        flags[8 * i + 6] = x as u32;
        flags[8 * i + 7] = (x as f32).to_bits();
    }
}

#[kernel(workgroup(64), requires(Int64, Float64))]
fn wide_conversions(a: &[f64], b: &[i64], y: &mut [i64], z: &mut [u64], d: &mut [f64]) {
    let i = global_index();
    if i < a.len() {
        y[i] = a[i] as i64;
        z[2 * i] = a[i] as u64;
        z[2 * i + 1] = a[i].to_bits();
    }
    if i < b.len() {
        d[3 * i] = b[i] as f64;
        d[3 * i + 1] = (b[i] as u64) as f64;
        d[3 * i + 2] = f64::from_bits(b[i] as u64);
    }
}

const DOUBLES: [f64; 21] = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    -0.3,
    4_503_599_627_370_497.5,
    2_147_483_647.9,
    -2_147_483_649.5,
    4_294_967_295.9,
    9_223_372_036_854_775_808.0,
    -9_223_372_036_854_777_856.0,
    1e19,
    1e20,
    -1e300,
    1e-300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Not so on wgpu with Mesa 25: WGSL has no word for exact arithmetic, and that driver takes `f64(f32(x))` for `x`.
#[test]
fn doubles_are_computed_to_their_last_bit() {
    let (a, b) = pairs(&DOUBLES);
    for subject in common::devices() {
        let device = &subject.device;
        let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut y = device.buffer(&vec![7f64; a.len() * 17]).unwrap();
        let mut flags = device.buffer(&vec![7u32; a.len() * 8]).unwrap();
        if !has(&subject, &[Feature::Float64], double_arithmetic(&at, &bt, &mut y, &mut flags).unwrap()) {
            continue;
        }
        device.run(double_arithmetic(&at, &bt, &mut y, &mut flags).unwrap().over(a.len())).unwrap();
        let (y, flags) = (y.read().unwrap(), flags.read().unwrap());
        for (i, (x, z)) in a.iter().copied().zip(b.iter().copied()).enumerate() {
            let expected = [
                x + z,
                x - z,
                x * z,
                x / z,
                -x,
                x.abs(),
                x.min(z),
                x.max(z),
                x.floor(),
                x.ceil(),
                x.trunc(),
                x.round_ties_even(),
                x.abs().sqrt(),
                x.clamp(-2.5, 1e300),
                f64::from(x as f32) + 0.1,
                if x.is_nan() { x } else { x.max(z).min(3.0) },
                if z.is_nan() { z } else { z.max(-2.5).min(x) },
            ];
            for (row, (given, expected)) in y[17 * i..].iter().zip(expected).enumerate() {
                assert!(
                    same(*given, expected),
                    "row {row} of {x:e} and {z:e} is {given:e} on {}, {expected:e} expected",
                    subject.name
                );
            }
            let expected = [
                u32::from(x < z),
                u32::from(x == z),
                u32::from(x != z),
                x.is_nan().into(),
                x.is_infinite().into(),
                (x as i32).cast_unsigned(),
                x as u32,
            ];
            assert_eq!(flags[8 * i..8 * i + 7], expected, "{x:e} and {z:e} on {}", subject.name);
            let single = f32::from_bits(flags[8 * i + 7]);
            assert!(same(single.into(), (x as f32).into()), "{x:e} as f32 is {single:e} on {}", subject.name);
        }
        let (at, bt) = (device.buffer(&DOUBLES).unwrap(), device.buffer(&LONGS).unwrap());
        let mut y = device.buffer(&[7i64; 21]).unwrap();
        let mut z = device.buffer(&[7u64; 42]).unwrap();
        let mut d = device.buffer(&[7f64; 36]).unwrap();
        let launch = wide_conversions(&at, &bt, &mut y, &mut z, &mut d).unwrap();
        if !has(&subject, &[Feature::Int64, Feature::Float64], launch) {
            continue;
        }
        device.run(wide_conversions(&at, &bt, &mut y, &mut z, &mut d).unwrap().over(21)).unwrap();
        let (y, z, d) = (y.read().unwrap(), z.read().unwrap(), d.read().unwrap());
        for (i, x) in DOUBLES.into_iter().enumerate() {
            assert_eq!((y[i], z[2 * i]), (x as i64, x as u64), "{x:e} on {}", subject.name);
            assert!(same(f64::from_bits(z[2 * i + 1]), x), "the bits of {x:e} on {}", subject.name);
        }
        for (i, x) in LONGS.into_iter().enumerate() {
            let bits = x.cast_unsigned();
            let given = [d[3 * i], d[3 * i + 1], d[3 * i + 2]];
            for (given, expected) in given.into_iter().zip([x as f64, bits as f64, f64::from_bits(bits)]) {
                assert!(same(given, expected), "{x} gives {given:e} on {}, {expected:e} expected", subject.name);
            }
        }
    }
}

#[kernel(workgroup(64), requires(Int64))]
fn fours_of_longs(x: &[u64], y: &mut [u64]) {
    let i = global_index();
    let four = x.vec4(i);
    y.set_vec4(i, Vec4::new(four.x + 1, four.y, four.z, four.w));
}

#[kernel(workgroup(64), requires(Float64))]
fn fours_of_doubles(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    let four = x.vec4(i);
    y.set_vec4(i, Vec4::new(four.x + 1.0, four.y, four.z, four.w));
}

/// A slice may hold fewer than the four that a kernel moves at once; then it is read as zeros.
#[test]
fn slices_of_less_than_is_moved_at_once_may_be_bound() {
    for subject in common::devices() {
        let device = &subject.device;
        let known = device.properties().features;
        for (count, first) in [(0usize, 0usize), (1, 0), (2, 0), (4, 0), (4, 4), (5, 4), (33, 32), (36, 32)] {
            let case = format!("{first}..{count} on {}", subject.name);
            let is_whole = count - first >= 4;
            let longs: Vec<u64> = (0..count as u64).map(|i| i << 33).collect();
            if known.has(Feature::Int64) {
                let x = device.buffer(&longs).unwrap();
                let mut y = device.buffer(&[7u64; 4]).unwrap();
                let launch = fours_of_longs(x.slice(first..).unwrap(), &mut y).unwrap();
                device.run(launch.over(1)).unwrap();
                let [a, b, c, d] = if is_whole { [0, 1, 2, 3].map(|k| longs[first + k]) } else { [0; 4] };
                assert_eq!(y.read().unwrap(), [a + 1, b, c, d], "{case}");
                // What is written may be less, too: nothing is.
                let mut y = device.zeros::<u64>(count).unwrap();
                device.run(fours_of_longs(&x, y.slice_mut(first..).unwrap()).unwrap().over(1)).unwrap();
                let is_written = y.read().unwrap().iter().any(|y| *y != 0);
                assert_eq!(is_written, is_whole, "{case}");
            }
            if known.has(Feature::Float64) {
                let doubles: Vec<f64> = longs.iter().map(|long| *long as f64).collect();
                let x = device.buffer(&doubles).unwrap();
                let mut y = device.buffer(&[7f64; 4]).unwrap();
                let launch = fours_of_doubles(x.slice(first..).unwrap(), &mut y).unwrap();
                device.run(launch.over(1)).unwrap();
                let [a, b, c, d] = if is_whole { [0, 1, 2, 3].map(|k| doubles[first + k]) } else { [0.0; 4] };
                assert_eq!(y.read().unwrap(), [a + 1.0, b, c, d], "{case}");
            }
        }
    }
}

/// Vectors, workgroup memory and parameters of doubles; three lanes lie otherwise in WGSL.
#[kernel(workgroup(64), requires(Int64, Float64))]
fn double_vectors(a: &[Vec3<f64>], b: &[Vec4<i64>], y: &mut [f64], by: Vec2<f64>, list: [f64; 3]) {
    let mut kept = workgroup_array::<f64>(64);
    let i = global_index();
    kept[local_index()] = a[i].x + a[i].z;
    barrier();
    if i < a.len() {
        y.set_vec2(2 * i, Vec2::new(kept[local_index()], dot(a[i], a[i])) * by);
        let own = [1.5, 2.5, list[i % 4]];
        y.set_vec2(2 * i + 1, Vec2::new(own[i % 5], (b[i].x + b[i].w) as f64));
    }
}

#[test]
fn vectors_of_doubles_lie_where_the_host_puts_them() {
    let a: Vec<Vec3<f64>> = (0..9).map(|i| Vec3::new(f64::from(i), 0.25, -1.5)).collect();
    let b: Vec<Vec4<i64>> = (0..9).map(|i| Vec4::new(i, 7, 8, 1 << 40)).collect();
    let list = [10.0, 20.0, 30.0];
    for subject in common::devices() {
        let device = &subject.device;
        let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut y = device.buffer(&[7f64; 36]).unwrap();
        let by = Vec2::new(2.0, 0.5);
        if !has(&subject, &[Feature::Int64, Feature::Float64], double_vectors(&at, &bt, &mut y, by, list).unwrap()) {
            continue;
        }
        device.run(double_vectors(&at, &bt, &mut y, by, list).unwrap().over(9)).unwrap();
        for (i, given) in y.read().unwrap().chunks(4).enumerate() {
            let x = i as f64;
            let own = [1.5, 2.5, list.get(i % 4).copied().unwrap_or(0.0)];
            let expected = [
                (x - 1.5) * 2.0,
                (x * x + 0.0625 + 2.25) * 0.5,
                own.get(i % 5).copied().unwrap_or(0.0),
                (i as i64 + (1 << 40)) as f64,
            ];
            assert_eq!(given, expected, "{i} on {}", subject.name);
        }
    }
}

/// Exact where there is `f64`, and something else where there is none: the author says which.
#[kernel(workgroup(64))]
fn exact_sum(x: &[f32], y: &mut [f32]) {
    if const { target::has(Feature::Float64) } {
        let mut sum = 0.0f64;
        for i in 0..x.len() {
            sum += x[i] as f64;
        }
        y[0] = sum as f32;
    } else {
        y[0] = -1.0;
    }
}

/// Without `requires`: every device of these targets has it.
#[kernel(workgroup(64), targets(cpu, cuda))]
fn everywhere_here(x: &[f64], y: &mut [f64]) {
    let i = global_index();
    y[i] = x[i] * 2.0;
}

#[test]
fn a_kernel_chooses_by_what_the_device_has() {
    let x = [1e8f32, 1.0, -1e8, 1.0];
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let mut y = device.buffer(&[0f32]).unwrap();
        device.run(exact_sum(&there, &mut y).unwrap().over(1)).unwrap();
        let exact = device.properties().features.contains(Features::of(&[Feature::Float64]));
        assert_eq!(y.read().unwrap(), [if exact { 2.0 } else { -1.0 }], "on {}", subject.name);
        let there = device.buffer(&[1.5f64, 3.0]).unwrap();
        let mut y = device.buffer(&[0f64; 2]).unwrap();
        let ran = device.run(everywhere_here(&there, &mut y).unwrap().over(2));
        match device.kind() {
            trefoil::DeviceKind::Cpu | trefoil::DeviceKind::Cuda => {
                ran.unwrap();
                assert_eq!(y.read().unwrap(), [3.0, 6.0], "on {}", subject.name);
            }
            _ => assert!(ran.is_err(), "it has no code for {}", subject.name),
        }
    }
}
