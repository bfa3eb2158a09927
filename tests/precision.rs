//! `strict` and `fast`, on every device: strict code gives the bits that Rust computes, fast code keeps its bounds.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::prelude::*;

/// What is as its caller: contracted it would give what rounding takes from the product.
#[device]
fn difference(x: f32, y: f32) -> f32 {
    let product = x * y;
    x * y - product
}

/// Every form in which a product meets a sum.
#[device(strict)]
fn forms(x: Vec3<f32>, y: Vec3<f32>) -> Vec4<f32> {
    let cross = cross(x, y);
    let mixed = mix(x, y, Vec3::splat(0.3));
    let sums = x * y + mixed - y * 0.7;
    Vec4::new(dot(x, y), cross.x + cross.y * cross.z, sums.x * sums.y + sums.z, difference(x.x, y.y))
}

#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn strict_words(x: &[Vec3<f32>], y: &[Vec3<f32>], z: &mut [Vec4<f32>]) {
    let i = global_index();
    if i < x.len() {
        z[i] = forms(x[i], y[i]);
    }
}

/// A variable that is assigned what it was, times something and plus something.
#[kernel(workgroup(64), targets(spirv, cuda, cpu), strict)]
fn strict_steps(x: &[Vec3<f32>], y: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        let mut sum = x[i].x;
        sum *= x[i].y;
        sum += x[i].z;
        y[i] = sum;
    }
}

#[kernel(workgroup(64), targets(spirv, cuda, cpu), requires(Float64), strict)]
fn strict_doubles(x: &[f64], z: &mut [f64]) {
    let i = global_index();
    if i + 2 < x.len() {
        z[i] = x[i] * x[i + 1] + x[i + 2];
    }
}

/// Numbers whose products need many digits.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits((state >> 9) | 0x3f80_0000) * if state & 1 == 0 { 1.0 } else { -0.75 }
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn strict_code_gives_the_bits_that_rust_gives() {
    let of = |seed| -> Vec<Vec3<f32>> {
        numbers(3000, seed).chunks(3).map(|lanes| Vec3::new(lanes[0], lanes[1], lanes[2])).collect()
    };
    let (x, y) = (of(1), of(2));
    let lanes = |v: &Vec4<f32>| [v.x, v.y, v.z, v.w].map(f32::to_bits);
    let expected: Vec<[u32; 4]> = x.iter().zip(&y).map(|(x, y)| lanes(&forms(*x, *y))).collect();
    assert!(expected.iter().all(|words| words[3] == 0));
    for subject in common::devices() {
        let device = &subject.device;
        if !device.properties().features.has(Feature::Strict) {
            assert_eq!(device.kind(), trefoil::DeviceKind::Wgpu);
            continue;
        }
        let (x_there, y_there) = (device.buffer(&x).unwrap(), device.buffer(&y).unwrap());
        let mut z = device.zeros::<Vec4<f32>>(x.len()).unwrap();
        device.run(strict_words(&x_there, &y_there, &mut z).unwrap().over(x.len())).unwrap();
        for (i, (found, wanted)) in z.read().unwrap().iter().zip(&expected).enumerate() {
            assert_eq!(lanes(found), *wanted, "row {i} on {}", subject.name);
        }
        let mut sums = device.zeros::<f32>(x.len()).unwrap();
        device.run(strict_steps(&x_there, &mut sums).unwrap().over(x.len())).unwrap();
        for (x, found) in x.iter().zip(sums.read().unwrap()) {
            let product = std::hint::black_box(x.x * x.y);
            assert_eq!(found.to_bits(), (product + x.z).to_bits(), "steps on {}", subject.name);
        }
        if device.properties().features.has(Feature::Float64) {
            let wide: Vec<f64> = numbers(1000, 3).iter().map(|x| f64::from(*x) / 3.0).collect();
            let there = device.buffer(&wide).unwrap();
            let mut z = device.zeros::<f64>(wide.len()).unwrap();
            device.run(strict_doubles(&there, &mut z).unwrap().over(wide.len())).unwrap();
            for (i, (found, part)) in z.read().unwrap().iter().zip(wide.windows(3)).enumerate() {
                let product = std::hint::black_box(part[0] * part[1]);
                assert_eq!(found.to_bits(), (product + part[2]).to_bits(), "double {i} on {}", subject.name);
            }
        }
    }
}

/// One function a row.
#[kernel(workgroup(64), fast)]
fn fast_words(x: &[f32], y: &mut [f32]) {
    let i = global_index();
    if i < x.len() {
        let v = x[i];
        let size = abs(v) + 0.01;
        let at = 12 * i;
        y[at] = exp(v);
        y[at + 1] = ln(size);
        y[at + 2] = log2(size);
        y[at + 3] = log10(size);
        y[at + 4] = sin(v * 0.3);
        y[at + 5] = cos(v * 0.3);
        y[at + 6] = tanh(v);
        y[at + 7] = powf(size, v * 0.25);
        y[at + 8] = v / size;
        y[at + 9] = sqrt(size);
        y[at + 10] = min(v, 1.0) + max(v, -1.0);
        y[at + 11] = inverse_sqrt(size);
    }
}

#[test]
fn fast_code_keeps_its_bounds() {
    let x: Vec<f32> = (-1000..=1000).map(|i| i as f32 * 0.01).collect();
    for subject in common::devices() {
        let device = &subject.device;
        let there = device.buffer(&x).unwrap();
        let mut y = device.zeros::<f32>(12 * x.len()).unwrap();
        device.run(fast_words(&there, &mut y).unwrap().over(x.len())).unwrap();
        for (x, row) in x.iter().zip(y.read().unwrap().chunks(12)) {
            let (v, size) = (f64::from(*x), f64::from(x.abs() + 0.01));
            // What the arguments were rounded to counts too.
            let exact = [
                v.exp(),
                size.ln(),
                size.log2(),
                size.log10(),
                f64::from(*x * 0.3).sin(),
                f64::from(*x * 0.3).cos(),
                v.tanh(),
                size.powf(f64::from(*x * 0.25)),
                v / size,
                size.sqrt(),
                v.min(1.0) + v.max(-1.0),
                1.0 / size.sqrt(),
            ];
            for (row, (found, exact)) in row.iter().zip(exact).enumerate() {
                let error = (f64::from(*found) - exact).abs();
                assert!(
                    error <= 4e-6 * exact.abs().max(1.0),
                    "row {row} of {x}: {found}, not {exact}, on {}",
                    subject.name
                );
            }
        }
    }
}
