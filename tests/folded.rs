//! What compilers of drivers have folded into something else, in kernels drawn at random: the smallest kernels that showed it, on every device.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::artefact::Feature;
use trefoil::prelude::*;

/// A compiler that takes a magnitude for never negative turns the first arm into `abs(x) < 2`, which holds for the least number.
#[kernel(workgroup(64))]
fn sorted_by_magnitude(x: &[i32], y: &mut [i32]) {
    let i = global_index();
    let mut kind = 0;
    match abs(x[i]) {
        0 | 1 => kind = 1,
        2 => {}
        _ => kind = 7,
    }
    y[i] = kind;
}

#[test]
fn the_least_number_is_its_own_magnitude() {
    let x = [0, 1, -1, 2, -2, 3, -3, i32::MIN, i32::MAX, i32::MIN + 1];
    let wanted: Vec<i32> = x.iter().map(|x| [1, 1, 0].get(x.unsigned_abs() as usize).copied().unwrap_or(7)).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let given = device.buffer(&x).unwrap();
        let mut y = device.zeros::<i32>(x.len()).unwrap();
        device.run(sorted_by_magnitude(&given, &mut y).unwrap().over(x.len())).unwrap();
        assert_eq!(y.read().unwrap(), wanted, "on {}", subject.name);
    }
}

/// Beside a quotient the order of a shifted number became one of unsigned numbers.
#[kernel(workgroup(64), requires(Int64))]
fn order_beside_quotient(x: &[i64], quotients: &mut [i64], below: &mut [u32]) {
    let i = global_index();
    let number = x[i];
    below[i] = ((number << 2) <= -8) as u32;
    quotients[i] = 49 / number;
}

#[test]
fn shifted_numbers_are_in_order() {
    let x = [0, 1, -1, 2, -2, 3, -3, 100, -100, i64::MIN, i64::MAX, 1 << 61, -(1 << 61), 5 << 60];
    let below: Vec<u32> = x.iter().map(|x| u32::from((x << 2) <= -8)).collect();
    let quotients: Vec<i64> = x.iter().map(|x| 49_i64.checked_div(*x).unwrap_or(0)).collect();
    for subject in common::devices_with(&[Feature::Int64]) {
        let device = &subject.device;
        let given = device.buffer(&x).unwrap();
        let mut y = device.zeros::<i64>(x.len()).unwrap();
        let mut z = device.zeros::<u32>(x.len()).unwrap();
        device.run(order_beside_quotient(&given, &mut y, &mut z).unwrap().over(x.len())).unwrap();
        assert_eq!(z.read().unwrap(), below, "on {}", subject.name);
        assert_eq!(y.read().unwrap(), quotients, "on {}", subject.name);
    }
}

/// NVIDIA's `atomicSub` negates as if nothing were the least number, so that of `x & i32::MIN` nothing was subtracted.
#[kernel(workgroup(64))]
fn less_the_sign(x: &[i32], words: &[u32], y: &[Atomic<i32>], z: &[Atomic<u32>]) {
    let i = global_index();
    if i < x.len() {
        y[i].sub(x[i] & i32::MIN);
        z[i].sub(words[i] & 0x8000_0000);
    }
}

#[test]
fn the_least_number_is_subtracted() {
    let x = [0, 1, -1, i32::MIN, i32::MAX, -2, 1 << 30];
    let words = x.map(|x| x as u32);
    let wanted = x.map(|x| 1_i32.wrapping_sub(x & i32::MIN));
    for subject in common::devices() {
        let device = &subject.device;
        let (given, given_words) = (device.buffer(&x).unwrap(), device.buffer(&words).unwrap());
        let mut y = device.buffer(&[1_i32; 7]).unwrap();
        let mut z = device.buffer(&[1_u32; 7]).unwrap();
        device.run(less_the_sign(&given, &given_words, &mut y, &mut z).unwrap().over(x.len())).unwrap();
        assert_eq!(y.read().unwrap(), wanted, "on {}", subject.name);
        assert_eq!(z.read().unwrap(), wanted.map(|y| y as u32), "on {}", subject.name);
    }
}

/// Of doubles that round to zero a driver lost the sign.
#[kernel(workgroup(64), requires(Float64, Int64))]
fn rounded(x: &[f64], bits: &mut [u64]) {
    let i = global_index();
    if i < x.len() {
        bits[4 * i] = bitcast::<u64>(trunc(x[i]));
        bits[4 * i + 1] = bitcast::<u64>(round_ties_even(x[i]));
        bits[4 * i + 2] = bitcast::<u64>(floor(x[i]));
        bits[4 * i + 3] = bitcast::<u64>(ceil(x[i]));
    }
}

#[test]
fn zeros_keep_the_sign_of_what_is_rounded() {
    let x = [0.3, -0.3, 0.5, -0.5, 0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 3e15, -3e15, 1e300, -1e300];
    let wanted: Vec<u64> =
        x.iter().flat_map(|x: &f64| [x.trunc(), x.round_ties_even(), x.floor(), x.ceil()]).map(f64::to_bits).collect();
    for subject in common::devices_with(&[Feature::Float64, Feature::Int64]) {
        let device = &subject.device;
        let given = device.buffer(&x).unwrap();
        let mut bits = device.zeros::<u64>(wanted.len()).unwrap();
        device.run(rounded(&given, &mut bits).unwrap().over(x.len())).unwrap();
        assert_eq!(bits.read().unwrap(), wanted, "on {}", subject.name);
    }
}

/// A compiler takes the negative of what is 0 or 1 for a number that is never below 0.
#[kernel(workgroup(64))]
fn least_of_negatives(x: &[i32], y: &mut [i32]) {
    let bits = [0i32, 0, 1];
    let bit = bits[local_index()];
    let all = Vec3::<i32>::splat(-bit);
    let least = Vec3::<i32>::new(0, min(0, min(x[193], all.y)), 0);
    y[global_index()] = bit;
    y[global_index()] = least.y;
}

#[test]
fn the_negative_of_one_is_below_zero() {
    let mut wanted = [0; 64];
    wanted[2] = -1;
    for subject in common::devices() {
        let device = &subject.device;
        let given = device.buffer(&[5i32; 4]).unwrap();
        let mut y = device.buffer(&[7i32; 64]).unwrap();
        device.run(least_of_negatives(&given, &mut y).unwrap().over(64)).unwrap();
        assert_eq!(y.read().unwrap(), wanted, "on {}", subject.name);
    }
}

#[device]
fn negated(x: i32) -> i32 {
    -x
}

#[device]
fn less(x: Vec2<i32>) -> Vec2<i32> {
    Vec2::<i32>::splat(0) - x
}

/// In functions, of vectors and as differences, where workgroups lie along three axes.
#[kernel(workgroup(4, 2))]
fn negatives_in_a_volume(x: &[i32], y: &mut [i32]) {
    let at = global_id();
    let bits = [0i32, 1];
    let i = at.x + 8 * (at.y + 4 * at.z);
    let both = less(Vec2::<i32>::new(bits[at.x % 2], x[i]));
    y[3 * i] = min(x[0], min(x[100], negated(bits[at.y % 2])));
    y[3 * i + 1] = min(x[0], both.x);
    y[3 * i + 2] = both.y;
}

#[test]
fn negatives_are_right_in_every_grid() {
    let x: [i32; 96] = std::array::from_fn(|i| (i as i32).wrapping_mul(i32::MIN / 7) & !1);
    let wanted: Vec<i32> =
        (0..96).flat_map(|i| [-((i / 8 % 2) as i32), -((i % 2) as i32), x[i].wrapping_neg()]).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let given = device.buffer(&x).unwrap();
        let mut y = device.zeros::<i32>(3 * 96).unwrap();
        device.run(negatives_in_a_volume(&given, &mut y).unwrap().over_axes([8, 4, 3])).unwrap();
        assert_eq!(y.read().unwrap(), wanted, "on {}", subject.name);
    }
}

/// A compiler ended at the sign of a difference, beside doubles.
#[kernel(workgroup(64), requires(Float64, Int64))]
fn signs_beside_doubles(x: &[u32], counts: &mut [i32], errors: &mut [f64]) {
    let count = workgroup_array::<Atomic<i32>>(1);
    let mut kept = workgroup_array::<i32>(64);
    let i = local_index();
    if i == 0 {
        count[0].store(8);
    }
    barrier();
    count[0].sub(signum(256 - (2147483646i32 >> x[i])));
    kept[i] = dot4_i8(0, x[i], 0);
    barrier();
    counts[global_index()] = count[0].load() + kept[27];
    errors[global_index()] = erf(0.0f64);
}

#[test]
fn signs_of_differences() {
    let x: [u32; 64] = std::array::from_fn(|i| i as u32);
    let wanted = 8 - x.iter().map(|x| (256 - (2_147_483_646_i32 >> (x & 31))).signum()).sum::<i32>();
    for subject in common::devices_with(&[Feature::Float64, Feature::Int64]) {
        let device = &subject.device;
        let given = device.buffer(&x).unwrap();
        let mut counts = device.zeros::<i32>(64).unwrap();
        let mut errors = device.buffer(&[7.0f64; 64]).unwrap();
        device.run(signs_beside_doubles(&given, &mut counts, &mut errors).unwrap().over(64)).unwrap();
        assert_eq!(counts.read().unwrap(), [wanted; 64], "on {}", subject.name);
        assert_eq!(errors.read().unwrap(), [0.0; 64], "on {}", subject.name);
    }
}

/// Of two quotients of 64 bits in a kernel a compiler gave one twice.
#[kernel(workgroup(64), requires(Int64))]
fn quotients_and_rests(a: &[i64], b: &[i64], signed: &mut [i64], unsigned: &mut [u64]) {
    let i = global_index();
    let (x, y) = (a[i], b[i]);
    signed[6 * i] = x / y;
    signed[6 * i + 1] = x % y;
    signed[6 * i + 2] = -46 % y;
    signed[6 * i + 3] = 93 % a[0];
    signed[6 * i + 4] = x / 1000;
    signed[6 * i + 5] = x % -7;
    unsigned[2 * i] = (x as u64) / (y as u64);
    unsigned[2 * i + 1] = (x as u64) % (y as u64);
}

#[test]
fn quotients_of_64_bits_stand_beside_each_other() {
    // Edges of every size, with each other, and numbers of all sizes from a fixed sequence.
    let mut edges = vec![5, 0, 3, 7, 10, i64::MAX, i64::MIN, 0x7fff_ffff_ffff_fc00, 0x0000_ffff_ffff_ffff];
    edges.extend(
        [1, 19, 23, 24, 25, 31, 32, 38, 47, 52, 57, 62]
            .iter()
            .flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]),
    );
    edges.extend(edges.clone().iter().map(|x| x.wrapping_neg()));
    let mut pairs: Vec<(i64, i64)> = edges.iter().flat_map(|x| edges.iter().map(move |y| (*x, *y))).collect();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ (state >> 29)).cast_signed() >> ((state >> 58) & 63)
    };
    pairs.extend((0..100_000).map(|_| (next(), next())));
    // Dividends beside a multiple of the divisor.
    pairs.extend((0..50_000).map(|_| {
        let (x, y) = (next(), next());
        (y.wrapping_mul(x.checked_div(y).unwrap_or(0)).wrapping_sub(x & 1), y)
    }));
    let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    let quotient = |x: i64, y: i64| if y == 0 { 0 } else { x.wrapping_div(y) };
    let rest = |x: i64, y: i64| if y == 0 { 0 } else { x.wrapping_rem(y) };
    let signed: Vec<i64> = pairs
        .iter()
        .flat_map(|(x, y)| [quotient(*x, *y), rest(*x, *y), rest(-46, *y), rest(93, a[0]), x / 1000, x % -7])
        .collect();
    let unsigned: Vec<u64> = pairs
        .iter()
        .map(|(x, y)| (x.cast_unsigned(), y.cast_unsigned()))
        .flat_map(|(x, y)| [x.checked_div(y).unwrap_or(0), x.checked_rem(y).unwrap_or(0)])
        .collect();
    for subject in common::devices_with(&[Feature::Int64]) {
        let device = &subject.device;
        let (x, y) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
        let mut of_signed = device.zeros::<i64>(signed.len()).unwrap();
        let mut of_unsigned = device.zeros::<u64>(unsigned.len()).unwrap();
        device.run(quotients_and_rests(&x, &y, &mut of_signed, &mut of_unsigned).unwrap().over(a.len())).unwrap();
        let (found, wanted) = (of_signed.read().unwrap(), &signed);
        if let Some(at) = (0..wanted.len()).find(|at| found[*at] != wanted[*at]) {
            panic!(
                "on {}: {:?} gives {} in place {}, not {}",
                subject.name,
                pairs[at / 6],
                found[at],
                at % 6,
                wanted[at]
            );
        }
        let (found, wanted) = (of_unsigned.read().unwrap(), &unsigned);
        if let Some(at) = (0..wanted.len()).find(|at| found[*at] != wanted[*at]) {
            panic!(
                "on {}: {:x?} gives {} in place {}, not {}",
                subject.name,
                pairs[at / 2],
                found[at],
                at % 2,
                wanted[at]
            );
        }
    }
}
