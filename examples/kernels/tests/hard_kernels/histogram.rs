//! Histograms.

use trefoil_example_kernels::histogram::{MOST_BINS, histogram};

use crate::common::{Subject, devices};
use crate::held::{Held, large, repeat};
use crate::numbers::numbers;

const LENGTHS: [usize; 11] = [0, 1, 3, 255, 256, 257, 1021, 4095, 4096, 4099, 65_537];
const BINS: [usize; 6] = [1, 2, 37, 255, 257, MOST_BINS];

/// Counts of elements, whose places are rounded twice to `f32`, as the contract says.
fn expected(x: &[f32], bins: usize, low: f32, high: f32) -> Vec<u32> {
    let scale = f64::from((bins as f64 / f64::from((f64::from(high) - f64::from(low)) as f32)) as f32);
    let mut counts = vec![0; bins];
    for x in x {
        let above = f64::from((f64::from(*x) - f64::from(low)) as f32);
        let place = f64::from((above * scale) as f32).floor();
        if (0.0..bins as f64).contains(&place) {
            counts[place as usize] += 1;
        }
    }
    counts
}

fn check(subject: &Subject, x: &[f32], bins: usize, low: f32, high: f32) {
    let about = format!("{} elements in {bins} bins on {}", x.len(), subject.name);
    let device = &subject.device;
    let there = Held::new(device, x);
    let mut counts = Held::output(device, bins);
    device.run_all(histogram(there.slice(), counts.slice_mut(), low, high).unwrap()).unwrap();
    assert_eq!(counts.read(&about), expected(x, bins, low, high), "{about}");
}

/// Numbers beyond the bins at both ends, and some that are none.
fn awkward(count: usize) -> Vec<f32> {
    let mut x = numbers(count, 21, 3.0);
    for i in (2..count).step_by(89) {
        x[i] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -2.0, 2.0][i % 5];
    }
    x
}

#[test]
fn histograms() {
    for subject in devices() {
        for length in LENGTHS {
            check(&subject, &awkward(length), 100, -2.0, 2.0);
        }
        for bins in BINS {
            check(&subject, &awkward(5003), bins, -1.7, 2.3);
        }
        // All in one bin.
        check(&subject, &[0.5; 10_007], 16, 0.0, 1.0);
        check(&subject, &awkward(large(&subject)), 256, -2.0, 2.0);
    }
}

#[test]
fn counts_are_the_same_each_time() {
    for subject in devices() {
        let x = Held::new(&subject.device, &awkward(70_001));
        let mut counts = Held::output(&subject.device, 300);
        let launches = histogram(x.slice(), counts.slice_mut(), -2.0, 2.0).unwrap();
        repeat(&subject.device, &launches, &counts, &subject.name);
    }
}

#[test]
fn impossible_bins_are_refused() {
    for subject in devices() {
        let x = Held::new(&subject.device, &[1.0f32]);
        for (bins, low, high, argument) in [
            (0, 0.0, 1.0, "counts"),
            (MOST_BINS + 1, 0.0, 1.0, "counts"),
            (4, 1.0, 1.0, "high"),
            (4, f32::NAN, 1.0, "high"),
        ] {
            let mut counts = Held::output(&subject.device, bins);
            let error = histogram(x.slice(), counts.slice_mut(), low, high).unwrap_err().to_string();
            assert!(error.contains(&format!("argument `{argument}`")), "{error}");
        }
    }
}
