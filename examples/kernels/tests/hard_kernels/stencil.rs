//! The stencil.

use trefoil_example_kernels::stencil::stencil;

use crate::common::{Subject, devices};
use crate::held::{EPSILON, Held, large, repeat};
use crate::numbers::numbers;

const SIZES: [[usize; 2]; 12] =
    [[0, 5], [5, 0], [1, 1], [1, 67], [67, 1], [31, 33], [32, 32], [33, 31], [64, 65], [101, 3], [2, 129], [97, 103]];
const WEIGHTS: [f32; 9] = [0.0625, 0.11, -0.0625, 0.3, 0.25, 0.2, -0.1, 0.125, 0.03];

/// One step, and how far rounding may have led from it, given how far it had before.
fn step(x: &[f64], error: &[f64], [height, width]: [usize; 2]) -> (Vec<f64>, Vec<f64>) {
    let mut next = (vec![0.0; x.len()], vec![0.0; x.len()]);
    for row in 0..height {
        for column in 0..width {
            let (mut sum, mut sizes, mut errors) = (0.0, 0.0, 0.0);
            for (at, weight) in WEIGHTS.iter().copied().map(f64::from).enumerate() {
                let (down, right) = (row + at / 3, column + at % 3);
                if (1..=height).contains(&down) && (1..=width).contains(&right) {
                    let place = (down - 1) * width + right - 1;
                    sum += weight * x[place];
                    sizes += (weight * x[place]).abs();
                    errors += weight.abs() * error[place];
                }
            }
            next.0[row * width + column] = sum;
            next.1[row * width + column] = errors + (sizes + errors) * EPSILON * 10.0;
        }
    }
    next
}

fn check(subject: &Subject, size: [usize; 2], steps: usize) {
    let about = format!("{steps} steps of {size:?} on {}", subject.name);
    let device = &subject.device;
    let x = numbers(size[0] * size[1], 31, 4.0);
    let there = Held::new(device, &x);
    let mut out = Held::output(device, x.len());
    device.run_all(stencil(device, there.slice(), out.slice_mut(), size, WEIGHTS, steps).unwrap()).unwrap();
    let mut expected = (x.iter().copied().map(f64::from).collect::<Vec<_>>(), vec![0.0; x.len()]);
    for _ in 0..steps {
        expected = step(&expected.0, &expected.1, size);
    }
    for (place, (given, (value, error))) in out.read(&about).iter().zip(expected.0.iter().zip(&expected.1)).enumerate()
    {
        assert!((f64::from(*given) - value).abs() <= *error, "{about}: element {place} is {given}, {value} expected");
    }
}

#[test]
fn stencils() {
    for subject in devices() {
        for size in SIZES {
            check(&subject, size, 1);
        }
        for steps in 2..=4 {
            check(&subject, [41, 70], steps);
        }
        let width = large(&subject).isqrt();
        check(&subject, [width, width], 1);
    }
}

#[test]
fn steps_are_the_same_each_time() {
    for subject in devices() {
        let device = &subject.device;
        let x = Held::new(device, &numbers(97 * 103, 32, 1.0));
        let mut out = Held::output(device, 97 * 103);
        let launches = stencil(device, x.slice(), out.slice_mut(), [97, 103], WEIGHTS, 3).unwrap();
        repeat(device, &launches, &out, &subject.name);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for subject in devices() {
        let device = &subject.device;
        let (x, mut out) = (Held::new(device, &[1.0f32; 6]), Held::output(device, 6));
        for (size, steps, argument) in [([2, 2], 1, "from"), ([2, 3], 0, "steps"), ([usize::MAX, 2], 1, "size")] {
            let error = stencil(device, x.slice(), out.slice_mut(), size, WEIGHTS, steps).unwrap_err().to_string();
            assert!(error.contains(&format!("argument `{argument}`")), "{error}");
        }
    }
}
