//! Philox against the vectors that its authors publish, and its normals against exact words and `f64`.

use trefoil::kernels::random::philox::philox;
use trefoil::prelude::*;
use trefoil_example_kernels::philox::normals;

use crate::common::{Subject, devices};
use crate::held::{Held, large, repeat};

/// Counter, key, and the words that they give.
const KNOWN: [([u32; 4], [u32; 2], [u32; 4]); 3] = [
    ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
    ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
    (
        [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822, 0x299f_31d0],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ),
];

/// The words of counters and keys, six words each.
#[kernel(workgroup(64))]
fn words(of: &[u32], out: &mut [u32]) {
    let i = global_index();
    if 6 * i + 5 < of.len() {
        let counter = Vec4::new(of[6 * i], of[6 * i + 1], of[6 * i + 2], of[6 * i + 3]);
        out.set_vec4(i, philox(counter, Vec2::new(of[6 * i + 4], of[6 * i + 5])));
    }
}

/// The rounds in 64 bits, as the paper writes them.
fn reference(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        let products = [u64::from(counter[0]) * 0xd251_1f53, u64::from(counter[2]) * 0xcd9e_8d57];
        let high = products.map(|product| (product >> 32) as u32);
        counter =
            [high[1] ^ counter[1] ^ key[0], products[1] as u32, high[0] ^ counter[3] ^ key[1], products[0] as u32];
    }
    counter
}

#[test]
fn known_answers() {
    let of: Vec<u32> = KNOWN.iter().flat_map(|(counter, key, _)| counter.iter().chain(key).copied()).collect();
    let expected: Vec<u32> = KNOWN.iter().flat_map(|(.., words)| *words).collect();
    for (counter, key, words) in KNOWN {
        assert_eq!(reference(counter, key), words);
        assert_eq!(philox(counter.into(), key.into()).to_array(), words, "on the host");
    }
    for subject in devices() {
        let of = Held::new(&subject.device, &of);
        let mut out = Held::output(&subject.device, expected.len());
        subject.device.run(words(of.slice(), out.slice_mut()).unwrap().over(KNOWN.len())).unwrap();
        assert_eq!(out.read(&subject.name), expected, "on {}", subject.name);
    }
}

/// Element `i` of a stream by the exact formula.
fn normal(i: usize, seed: u64, stream: u64) -> f64 {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let [low, high] = halves(stream);
    let words = reference([(i / 4) as u32, 0, low, high], halves(seed));
    let pair = i % 4 / 2 * 2;
    // The first 24 significant bits of a word, and a quarter and a part of one.
    let word = words[pair].max(1);
    let cut = 8u32.saturating_sub(word.leading_zeros());
    let radius = (-2.0 * (f64::from(word >> cut << cut) / 4_294_967_296.0).ln()).sqrt();
    let part = f64::from(words[pair + 1] << 2 >> 7) / 33_554_432.0 - 0.5;
    let (sine, cosine) = (part * std::f64::consts::FRAC_PI_2).sin_cos();
    let turned = [[cosine, sine], [-sine, cosine], [-cosine, -sine], [sine, -cosine]];
    radius * turned[(words[pair + 1] >> 30) as usize][i % 2]
}

fn check(subject: &Subject, count: usize, seed: u64, stream: u64) -> Vec<f32> {
    let about = format!("{count} normals on {}", subject.name);
    let mut out = Held::output(&subject.device, count);
    subject.device.run_all(normals(out.slice_mut(), seed, stream).unwrap()).unwrap();
    let given = out.read(&about);
    // All of a few, and some of many.
    for i in (0..count).step_by(1 + count / 40_000) {
        let expected = normal(i, seed, stream);
        let ulp = 2f64.powi(expected.abs().log2().floor() as i32 - 23);
        let off = (f64::from(given[i]) - expected).abs();
        assert!(off <= 4.0 * ulp, "{about}: element {i} is {}, {expected} within 4 ulp expected", given[i]);
    }
    given
}

#[test]
fn normals_of_every_length() {
    for subject in devices() {
        for count in [0, 1, 2, 3, 4, 5, 1021, 1023, 1024, 1025, 1027, 65_537] {
            check(&subject, count, 0x0123_4567_89ab_cdef, 42);
        }
        check(&subject, 1000, u64::MAX, u64::MAX);
    }
}

/// Mean, variance, skewness and kurtosis lie within five standard errors; so do correlations of neighbours and of streams.
#[test]
fn moments() {
    for subject in devices() {
        let count = large(&subject);
        let x = check(&subject, count, 2026, 0);
        let n = count as f64;
        let moment = |power: i32| x.iter().map(|x| f64::from(*x).powi(power)).sum::<f64>() / n;
        // The variance of the mean of x^k is that of x^k, (2k - 1)!! - ((k - 1)!!)^2 for even k, over n.
        for (power, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let off = (moment(power) - expected).abs();
            let allowed: f64 = 5.0 * (variance / n).sqrt() + 1e-6;
            assert!(off < allowed, "moment {power} on {}: off by {off:e}, {allowed:e} allowed", subject.name);
        }
        let y = check(&subject, count, 2026, 1);
        let correlation = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>() / n;
        for (words, found) in [("neighbours", correlation(&x, &x[1..])), ("streams", correlation(&x, &y))] {
            assert!(found.abs() < 5.0 / n.sqrt(), "correlation of {words} on {}: {found:e}", subject.name);
        }
    }
}

#[test]
fn a_stream_is_the_same_each_time() {
    for subject in devices() {
        let mut out = Held::output(&subject.device, 70_001);
        let launches = normals(out.slice_mut(), 7, 7).unwrap();
        repeat(&subject.device, &launches, &out, &subject.name);
    }
}
