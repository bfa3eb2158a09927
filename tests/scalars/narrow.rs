//! Numbers of 8 and 16 bits, several of which share a word.

use trefoil::prelude::*;

use super::common::{self, Subject};
use super::{pairs, same};

macro_rules! narrow_integers {
    ($($test:ident $kernel:ident $ty:ty, $wide:ty, [$($value:expr),*];)*) => { $(
        #[kernel(workgroup(64))]
        fn $kernel(a: &[$ty], b: &[$ty], y: &mut [$ty], words: &mut [u32], by: $ty, list: [$ty; 3]) {
            let mut kept = workgroup_array::<$ty>(64);
            let i = global_index();
            kept[local_index()] = a[i] * by;
            barrier();
            if i < a.len() {
                let x = a[i];
                let z = b[i];
                let at = i * 15;
                y[at] = x + z;
                y[at + 1] = x - z;
                y[at + 2] = x * z;
                y[at + 3] = x / z;
                y[at + 4] = x % z;
                y[at + 5] = x << (z as u32);
                y[at + 6] = x >> (z as u32);
                y[at + 7] = min(x, z);
                y[at + 8] = clamp(x, 3, z);
                y[at + 9] = !x ^ (x & z) | by;
                y[at + 10] = kept[local_index()];
                y[at + 11] = (x as f32 * 1000.5) as $ty;
                y[at + 12] = (x as i32 * 77 + 1) as $ty;
                let own = [x, z, list[i % 5]];
                y[at + 13] = own[i % 4];
                let mut sum = Vec2::new(x, z) + Vec2::splat(by);
                sum.y += x;
                y[at + 14] = sum.x * sum.y;
                words[6 * i] = (x < z) as u32;
                words[6 * i + 1] = (x == z) as u32;
                words[6 * i + 2] = x as u32;
                words[6 * i + 3] = (x as f32).to_bits();
                words[6 * i + 4] = (x + z) as i32 as u32;
                words[6 * i + 5] = if x + z > 100 { 1 } else { 0 };
            }
        }

        #[test]
        fn $test() {
            let values: Vec<$ty> = vec![$($value),*];
            let (a, b) = pairs(&values);
            let (by, list): ($ty, [$ty; 3]) = (5, [1, 100, <$ty>::MAX]);
            // Odd lengths: the last word is shared with what is not the kernel's.
            let (a, b) = (&a[..a.len() / 2 * 2 - 1], &b[..b.len() / 2 * 2 - 1]);
            for subject in common::devices() {
                let device = &subject.device;
                let (at, bt) = (device.buffer(a).unwrap(), device.buffer(b).unwrap());
                let mut y = device.buffer(&vec![99 as $ty; a.len() * 15]).unwrap();
                let mut words = device.buffer(&vec![99u32; a.len() * 6]).unwrap();
                device.run($kernel(&at, &bt, &mut y, &mut words, by, list).unwrap().over(a.len())).unwrap();
                let (y, words) = (y.read().unwrap(), words.read().unwrap());
                for (i, (x, z)) in a.iter().copied().zip(b.iter().copied()).enumerate() {
                    let own = [x, z, list.get(i % 5).copied().unwrap_or(0)];
                    let expected: [$ty; 15] = [
                        x.wrapping_add(z),
                        x.wrapping_sub(z),
                        x.wrapping_mul(z),
                        if z == 0 { 0 } else { x.wrapping_div(z) },
                        if z == 0 { 0 } else { x.wrapping_rem(z) },
                        x.wrapping_shl(z as u32),
                        x.wrapping_shr(z as u32),
                        x.min(z),
                        x.max(3).min(z),
                        !x ^ (x & z) | by,
                        x.wrapping_mul(by),
                        (x as f32 * 1000.5) as $ty,
                        (x as i32).wrapping_mul(77).wrapping_add(1) as $ty,
                        own.get(i % 4).copied().unwrap_or(0),
                        x.wrapping_add(by).wrapping_mul(z.wrapping_add(by).wrapping_add(x)),
                    ];
                    assert_eq!(y[15 * i..15 * i + 15], expected, "{x} and {z} on {}", subject.name);
                    let sum = x.wrapping_add(z);
                    let expected = [
                        u32::from(x < z),
                        u32::from(x == z),
                        x as u32,
                        (x as f32).to_bits(),
                        sum as i32 as u32,
                        u32::from(sum > 100),
                    ];
                    assert_eq!(words[6 * i..6 * i + 6], expected, "{x} and {z} on {}", subject.name);
                }
            }
        }
    )* };
}

narrow_integers! {
    bytes_wrap_as_in_rust u8_words u8, u32, [0, 1, 2, 3, 7, 8, 9, 100, 127, 128, 200, 254, 255];
    signed_bytes_wrap_as_in_rust i8_words i8, i32, [0, 1, -1, 2, 7, 8, 9, -9, 100, 126, 127, -127, -128];
    short_integers_wrap_as_in_rust u16_words u16, u32, [0, 1, 3, 15, 16, 17, 255, 256, 32_767, 32_768, 65_534, 65_535];
    signed_short_integers_wrap_as_in_rust i16_words i16, i32, [0, 1, -1, 3, 15, 16, 17, -300, 32_766, 32_767, -32_767, -32_768];
}

macro_rules! short_floats {
    ($($test:ident $kernel:ident $ty:ident;)*) => { $(
        #[kernel(workgroup(64))]
        fn $kernel(a: &[$ty], b: &[$ty], y: &mut [$ty], words: &mut [u32], by: $ty, bits: &mut [u16]) {
            let i = global_index();
            if i < a.len() {
                let x = a[i];
                let z = b[i];
                let at = i * 14;
                y[at] = x + z;
                y[at + 1] = x - z;
                y[at + 2] = x * z;
                y[at + 3] = x / z;
                y[at + 4] = -x * by;
                y[at + 5] = sqrt(abs(x));
                y[at + 6] = min(x, z);
                y[at + 7] = max(x, z);
                y[at + 8] = floor(x);
                y[at + 9] = (x + z) + (x * z);
                y[at + 10] = $ty::from_bits(x.to_bits() ^ 1);
                let mut sum = $ty::from_f32(0.0);
                for k in 1..5 {
                    sum += x * $ty::from_f32(k as f32);
                }
                y[at + 11] = sum;
                y[at + 12] = x.clamp(by, z);
                let pair = clamp(Vec2::new(x, z), Vec2::splat(-by), Vec2::splat(by));
                y[at + 13] = pair.y;
                words[4 * i] = (x < z) as u32;
                words[4 * i + 1] = (x != z) as u32;
                words[4 * i + 2] = is_nan(x) as u32;
                words[4 * i + 3] = (x + z).to_f32().to_bits();
                bits[i] = (x * z).to_bits();
            }
        }

        #[test]
        fn $test() {
            type T = $ty;
            let values = [
                0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 1.001, 2049.0, 0.333, 1e-3, 300.7, -65000.0, 6e-5, 1e-7,
                f32::INFINITY, f32::NAN,
            ];
            let values: Vec<T> = values.into_iter().map(T::from_f32).collect();
            let (a, b) = pairs(&values);
            let by = T::from_f32(0.7);
            for subject in common::devices() {
                let device = &subject.device;
                let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
                let mut y = device.buffer(&vec![by; a.len() * 14]).unwrap();
                let mut words = device.buffer(&vec![99u32; a.len() * 4]).unwrap();
                let mut bits = device.buffer(&vec![99u16; a.len()]).unwrap();
                let launch = $kernel(&at, &bt, &mut y, &mut words, by, &mut bits);
                device.run(launch.unwrap().over(a.len())).unwrap();
                let (y, words, bits) = (y.read().unwrap(), words.read().unwrap(), bits.read().unwrap());
                // One rounding after each operation, done here in f64.
                let op = |f: f64| T::from_f64(f);
                let f = |x: T| x.to_f64();
                for (i, (x, z)) in a.iter().copied().zip(b.iter().copied()).enumerate() {
                    let product = op(f(x) * f(z));
                    let total = op(f(x) + f(z));
                    let sum = (1..5).fold(T::from_f32(0.0), |sum, k| op(f(sum) + f(op(f(x) * f64::from(k)))));
                    let expected = [
                        total,
                        op(f(x) - f(z)),
                        product,
                        op(f(x) / f(z)),
                        op(-f(x) * f(by)),
                        op(f(x).abs().sqrt()),
                        op(f(x).min(f(z))),
                        op(f(x).max(f(z))),
                        op(f(x).floor()),
                        op(f(total) + f(product)),
                        T::from_bits(x.to_bits() ^ 1),
                        sum,
                        if x.is_nan() { x } else { op(f(x).max(f(by)).min(f(z))) },
                        op(f(z).clamp(-f(by), f(by))),
                    ];
                    for (row, (given, expected)) in y[14 * i..].iter().zip(expected).enumerate() {
                        assert!(
                            same(f(*given), f(expected))
                                || tiny(f(expected), f(*given))
                                // Division and roots are within 3 ulp of `f32`, which may be on the other side of a tie.
                                || ([3, 5].contains(&row) && given.to_bits().abs_diff(expected.to_bits()) <= 1),
                            "row {row} of {x:e} and {z:e} is {given:e} on {}, {expected:e} expected",
                            subject.name
                        );
                    }
                    let expected = [u32::from(x < z), u32::from(x != z), u32::from(x.is_nan())];
                    assert_eq!(words[4 * i..4 * i + 3], expected, "{x:e} and {z:e} on {}", subject.name);
                    let given = f32::from_bits(words[4 * i + 3]);
                    assert!(same(given.into(), f(total)), "{x:e} + {z:e} is {given:e} on {}", subject.name);
                    let given = T::from_bits(bits[i]);
                    assert!(same(f(given), f(product)) || tiny(f(product), f(given)), "the bits of {x:e} * {z:e}");
                }
            }
        }
    )* };
}

/// Whether an `f32` that small may have been flushed to zero.
fn tiny(expected: f64, given: f64) -> bool {
    expected.abs() < f64::from(f32::MIN_POSITIVE) && given == 0.0
}

short_floats! {
    halves_are_rounded_after_every_operation f16_words f16;
    brain_floats_are_rounded_after_every_operation bf16_words bf16;
}

/// Neighbours in a word are written by different invocations, and by different workgroups; vectors are moved beside them.
#[kernel(workgroup(64))]
fn neighbours(
    x: &[u8],
    y: &mut [u8],
    quads: &mut [u8],
    pairs: &mut [i8],
    shorts: &mut [i16],
    vectors: &mut [Vec4<u8>],
) {
    let i = global_index();
    if i < x.len() {
        y[x.len() - 1 - i] = x[i];
        let quad = x.vec4(i);
        quads.set_vec4(i, quad + Vec4::splat(1));
        let pair = x.vec2(i);
        pairs.set_vec2(i, Vec2::new(pair.x as i8, -(pair.y as i8)));
        shorts[i] = -(x[i] as i16);
        vectors[i] = Vec4::new(x[i], 1, 2, quad.w);
    }
}

#[test]
fn neighbours_in_a_word_are_not_lost() {
    for count in [1usize, 2, 3, 5, 63, 257, 1000] {
        let x: Vec<u8> = (0..count).map(|i| (i * 7 % 251) as u8).collect();
        for subject in common::devices() {
            let device = &subject.device;
            let at = device.buffer(&x).unwrap();
            // A part of larger buffers, whose other elements must stay.
            let mut y = device.buffer(&vec![0xa5u8; count + 24]).unwrap();
            let mut quads = device.buffer(&vec![0xa5u8; count + 24]).unwrap();
            let mut pairs = device.buffer(&vec![0x5ai8; count + 24]).unwrap();
            let mut shorts = device.buffer(&vec![77i16; count + 24]).unwrap();
            let mut vectors = device.buffer(&vec![Vec4::splat(3u8); count]).unwrap();
            let range = 16..16 + count;
            let launch = neighbours(
                &at,
                y.slice_mut(range.clone()).unwrap(),
                quads.slice_mut(range.clone()).unwrap(),
                pairs.slice_mut(range.clone()).unwrap(),
                shorts.slice_mut(range.clone()).unwrap(),
                &mut vectors,
            );
            device.run(launch.unwrap().over(count)).unwrap();
            let (mut ey, mut equads) = (vec![0xa5u8; count + 24], vec![0xa5u8; count + 24]);
            let (mut epairs, mut eshorts) = (vec![0x5ai8; count + 24], vec![77i16; count + 24]);
            for i in 0..count {
                ey[16 + count - 1 - i] = x[i];
                eshorts[16 + i] = -i16::from(x[i]);
                if 4 * i + 4 <= count {
                    for k in 4 * i..4 * i + 4 {
                        equads[16 + k] = x[k].wrapping_add(1);
                    }
                }
                if 2 * i + 2 <= count {
                    epairs[16 + 2 * i] = x[2 * i] as i8;
                    epairs[17 + 2 * i] = (x[2 * i + 1] as i8).wrapping_neg();
                }
            }
            assert_eq!(y.read().unwrap(), ey, "{count} bytes on {}", subject.name);
            assert_eq!(quads.read().unwrap(), equads, "{count} quads on {}", subject.name);
            assert_eq!(pairs.read().unwrap(), epairs, "{count} pairs on {}", subject.name);
            assert_eq!(shorts.read().unwrap(), eshorts, "{count} shorts on {}", subject.name);
            for (i, vector) in vectors.read().unwrap().into_iter().enumerate() {
                let last = x.get(4 * i + 3).copied().unwrap_or(0);
                assert_eq!(vector, Vec4::new(x[i], 1, 2, last), "vector {i} of {count} on {}", subject.name);
            }
        }
    }
}

/// One source for every number.
#[kernel(workgroup(64), targets(cpu, wgsl, spirv, cuda), instances(T = [f32, f16, bf16, u8, i16, u32]))]
fn scaled<T: Number>(x: &[T], y: &mut [T], by: T) {
    let i = global_index();
    if i < x.len() {
        y[i] = x[i] * by + T::lit(1.0);
    }
}

/// Each lies a little beyond a tie, where an `f32` between would make it one.
#[kernel(workgroup(64))]
fn constant_halves(halves: &mut [f16], brains: &mut [bf16]) {
    if global_index() == 0 {
        halves[0] = f16::lit(1.000_488_281_250_000_2);
        halves[1] = f16::lit(-1.000_488_281_250_000_2);
        halves[2] = f16::lit(0.1);
        brains[0] = bf16::lit(1.003_906_250_000_000_2);
        brains[1] = bf16::lit(-1.003_906_250_000_000_2);
        brains[2] = bf16::lit(0.1);
    }
}

#[test]
fn constants_are_rounded_once_as_on_the_host() {
    let halves = [1.000_488_281_250_000_2, -1.000_488_281_250_000_2, 0.1].map(f16::lit);
    let brains = [1.003_906_250_000_000_2, -1.003_906_250_000_000_2, 0.1].map(bf16::lit);
    assert_eq!(halves[0].to_bits(), f16::ONE.to_bits() + 1);
    assert_eq!(brains[0].to_bits(), bf16::ONE.to_bits() + 1);
    for subject in common::devices() {
        let device = &subject.device;
        let mut there = (device.buffer(&[f16::ZERO; 3]).unwrap(), device.buffer(&[bf16::ZERO; 3]).unwrap());
        device.run(constant_halves(&mut there.0, &mut there.1).unwrap().over(1)).unwrap();
        assert_eq!(there.0.read().unwrap(), halves, "on {}", subject.name);
        assert_eq!(there.1.read().unwrap(), brains, "on {}", subject.name);
    }
}

#[kernel(workgroup(64), instances(T = [u8, i16, u32]))]
fn mixed_bits<T: Int>(x: &[T], y: &mut [T]) {
    let i = global_index();
    if i < x.len() {
        let mut value = (x[i] << 3) | (x[i] >> 2);
        value ^= !x[i] & T::lit(85.0);
        y[i] = value;
    }
}

#[test]
fn generic_kernels_take_the_narrow_types() {
    fn run<T: Int + std::fmt::Debug>(subject: &Subject, values: Vec<T>, expected: impl Fn(T) -> T) {
        let device = &subject.device;
        let x = device.buffer(&values).unwrap();
        let mut y = device.buffer(&values).unwrap();
        device.run(mixed_bits::<T>(&x, &mut y).unwrap().over(values.len())).unwrap();
        let expected: Vec<T> = values.into_iter().map(expected).collect();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
    for subject in common::devices() {
        run(&subject, (0..=255u8).collect(), |x| (x.wrapping_shl(3) | (x >> 2)) ^ (!x & 85));
        run(&subject, (-300..300i16).collect(), |x| (x.wrapping_shl(3) | (x >> 2)) ^ (!x & 85));
        run(&subject, (0..300u32).map(|x| x.wrapping_mul(0x0101_0101)).collect(), |x| {
            (x.wrapping_shl(3) | (x >> 2)) ^ (!x & 85)
        });
        let device = &subject.device;
        let halves: Vec<bf16> = (0..9).map(|i| bf16::from_f32(i as f32 * 0.37)).collect();
        let x = device.buffer(&halves).unwrap();
        let mut y = device.buffer(&halves).unwrap();
        let by = bf16::from_f32(1.3);
        device.run(scaled::<bf16>(&x, &mut y, by).unwrap().over(9)).unwrap();
        let expected: Vec<bf16> = halves.iter().map(|x| *x * by + bf16::from_f32(1.0)).collect();
        assert_eq!(y.read().unwrap(), expected, "on {}", subject.name);
    }
}
