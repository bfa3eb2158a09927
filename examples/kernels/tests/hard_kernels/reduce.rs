//! Sums, largest and least elements.

use trefoil::DeviceKind;
use trefoil_example_kernels::reduce::{Placed, argmin, maximum, sum};

use crate::common::{Subject, devices};
use crate::held::{EPSILON, Held, large, repeat};
use crate::numbers::numbers;

const LENGTHS: [usize; 14] = [0, 1, 2, 3, 5, 255, 256, 257, 1021, 4095, 4096, 4099, 65_537, 270_337];

/// Numbers with equal least and largest elements in several places, and NaNs.
fn awkward(count: usize) -> Vec<f32> {
    let mut x = numbers(count, 7, 100.0);
    for i in (5..count).step_by(97) {
        x[i] = [-100.5, 100.5, f32::NAN, -0.0][i % 4];
    }
    x
}

fn check(subject: &Subject, x: &[f32], ordinary: &[f32]) {
    let about = format!("{} elements on {}", x.len(), subject.name);
    let device = &subject.device;
    let (there, ordinary_there) = (Held::new(device, x), Held::new(device, ordinary));

    let mut total = Held::output(device, 1);
    device.run_all(sum(device, ordinary_there.slice(), total.slice_mut()).unwrap()).unwrap();
    let expected: f64 = ordinary.iter().copied().map(f64::from).sum();
    let sizes: f64 = ordinary.iter().copied().map(|x| f64::from(x).abs()).sum();
    // Additions one after the other: an invocation's own, in each launch, and those of the tree.
    let depth = ordinary.len().div_ceil(1056 * 256) + 16 + 1056usize.div_ceil(256) + 16 + 16;
    let given = f64::from(total.read(&about)[0]);
    assert!((given - expected).abs() <= sizes * EPSILON * depth as f64, "sum of {about}: {given}, {expected} expected");

    let mut largest = Held::output(device, 1);
    device.run_all(maximum(device, there.slice(), largest.slice_mut()).unwrap()).unwrap();
    let expected = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    assert_eq!(largest.read(&about), [expected], "maximum of {about}");

    let mut least = Held::output(device, 1);
    device.run_all(argmin(device, there.slice(), least.slice_mut()).unwrap()).unwrap();
    let mut expected = Placed::NONE;
    for (index, x) in x.iter().enumerate().rev() {
        let value = if x.is_nan() { f32::INFINITY } else { *x };
        if value <= expected.value {
            expected = Placed { value, index: index as u32 };
        }
    }
    assert_eq!(least.read(&about), [expected], "least of {about}");
}

#[test]
fn reductions() {
    for subject in devices() {
        for length in LENGTHS {
            check(&subject, &awkward(length), &numbers(length, 8, 3.0));
        }
        check(&subject, &[f32::NAN; 300], &[1.0; 300]);
        check(&subject, &[f32::INFINITY; 301], &[-1.0; 301]);
        let length = large(&subject);
        check(&subject, &awkward(length), &numbers(length, 8, 3.0));
    }
}

#[test]
fn a_sum_rounds_alike_each_time() {
    for subject in devices() {
        let length = if subject.device.kind() == DeviceKind::Cuda { 1_000_003 } else { 70_001 };
        let device = &subject.device;
        let x = Held::new(device, &numbers(length, 9, 3.0));
        let mut total = Held::output(device, 1);
        let launches = sum(device, x.slice(), total.slice_mut()).unwrap();
        repeat(device, &launches, &total, &subject.name);
    }
}

#[test]
fn a_wrong_length_is_refused() {
    for subject in devices() {
        let device = &subject.device;
        let (x, mut two) = (Held::new(device, &[1.0f32]), Held::<f32>::output(device, 2));
        let error = sum(device, x.slice(), two.slice_mut()).unwrap_err().to_string();
        assert_eq!(error, "kernel `sum`, argument `total`: 2 elements given, 1 expected");
    }
}
