//! Matrices that a subgroup holds together, on every device that lists products of 8x8x8.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::Subject;
use trefoil::DeviceKind;
use trefoil::prelude::*;

/// Rows and columns.
#[device]
const SIDE: usize = 8;

/// What a device must list.
const PRODUCT: &str = "8x8x8 of f16 in f32";

/// `rows[i] * (a * b + c)`, of which negative elements are cut off, by way of workgroup memory; and the same rounded to halves, column by column. The depth is
/// that of `STEPS` products.
#[kernel(
    workgroup(64),
    targets(spirv, cpu),
    requires(CooperativeMatrices),
    specialise(STEPS: usize = 1, in 1..=4)
)]
fn scaled(a: &[f16], b: &[Vec4<u32>], c: &[f32], rows: &[f32], out: &mut [f32], halves: &mut [f16], scale: f32) {
    let mut tile = workgroup_array::<f16>(SIDE * SIDE);
    let mut factors = workgroup_array::<f32>(SIDE);
    let i = local_index();
    if i < SIDE {
        factors[i] = rows[i];
    }
    let mut sum = Accumulator::<f32, SIDE, SIDE>::load(c, 0, SIDE);
    for step in 0..STEPS {
        tile[i] = a[i / SIDE * (SIDE * STEPS) + step * SIDE + i % SIDE];
        barrier();
        let left = MatrixA::<f16, SIDE, SIDE>::load(&tile, 0, SIDE);
        let right = MatrixB::<f16, SIDE, SIDE>::load(b, step * SIDE, 1);
        sum = multiply_add(left, right, sum);
        barrier();
    }
    let factor = Accumulator::<f32, SIDE, SIDE>::load_columns(&factors, 0, 0);
    let cut = sum.zip(factor, |sum, factor| sum * factor).map(|x| max(x, 0.0));
    let scaled = cut.zip(Accumulator::fill(scale), |x, y| x * y);
    scaled.store(out, 0, SIDE);
    Accumulator::<f16, SIDE, SIDE>::convert(scaled).store_columns(halves, 0, SIDE);
}

/// Small integers, whose sums are exact.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
}

fn check(subject: &Subject, steps: usize) {
    let Subject { name, device } = subject;
    let about = format!("{steps} steps on {name}");
    let depth = SIDE * steps;
    let narrow = |all: &[f32]| all.iter().copied().map(f16::from_f32).collect::<Vec<f16>>();
    let (a, b) = (numbers(SIDE * depth, 1), numbers(depth * SIDE, 2));
    let (c, rows) = (numbers(SIDE * SIDE, 3), numbers(SIDE, 4));
    let bits: Vec<Vec4<u32>> = narrow(&b)
        .chunks(8)
        .map(|eight| {
            Vec4::from_array(
                [0, 2, 4, 6].map(|at| u32::from(eight[at].to_bits()) | u32::from(eight[at + 1].to_bits()) << 16),
            )
        })
        .collect();
    let (a_there, b_there) = (device.buffer(&narrow(&a)).unwrap(), device.buffer(&bits).unwrap());
    let (c_there, rows_there) = (device.buffer(&c).unwrap(), device.buffer(&rows).unwrap());
    let mut out = device.buffer(&[f32::NAN; SIDE * SIDE]).unwrap();
    let mut halves = device.buffer(&[f16::NAN; SIDE * SIDE]).unwrap();
    let launch = scaled(&a_there, &b_there, &c_there, &rows_there, &mut out, &mut halves, 0.5)
        .unwrap()
        .specialise(scaled::Constants { steps })
        .unwrap();
    let properties = device.properties();
    let listed = device.kind() == DeviceKind::Cpu || properties.matrices.iter().any(|one| one.to_string() == PRODUCT);
    let ran = device.run(launch.groups(1));
    if !listed {
        let error = ran.unwrap_err().to_string();
        let reasons = [PRODUCT, "needs the feature matrices", "is not compiled for"];
        assert!(reasons.iter().any(|reason| error.contains(reason)) && error.contains("scaled"), "{about}: {error}");
        return;
    }
    ran.unwrap_or_else(|error| panic!("{about}: {error}"));
    let expected: Vec<f32> = (0..SIDE * SIDE)
        .map(|at| {
            let (i, j) = (at / SIDE, at % SIDE);
            let product: f32 = (0..depth).map(|k| a[i * depth + k] * b[k * SIDE + j]).sum();
            ((product + c[at]) * rows[i]).max(0.0) * 0.5
        })
        .collect();
    assert_eq!(out.read().unwrap(), expected, "{about}");
    let turned: Vec<f16> = (0..SIDE * SIDE).map(|at| f16::from_f32(expected[at % SIDE * SIDE + at / SIDE])).collect();
    assert_eq!(halves.read().unwrap(), turned, "{about}");
}

#[test]
fn products_of_eight() {
    for subject in common::devices() {
        for steps in [1, 3, 4] {
            check(&subject, steps);
        }
    }
}

/// A device has the feature if it lists products, and the other way around; the CPU has every product and lists none. The kinds that
/// `TREFOIL_REQUIRE_MATRICES` names must list some.
#[test]
fn the_feature_is_the_list() {
    let required = std::env::var("TREFOIL_REQUIRE_MATRICES").unwrap_or_default();
    for Subject { name, device } in common::devices() {
        let properties = device.properties();
        if device.kind() != DeviceKind::Cpu {
            let has = properties.features.has(Feature::CooperativeMatrices);
            assert_eq!(has, !properties.matrices.is_empty(), "{name}: {:?}", properties.matrices);
        }
        assert!(!required.split(',').any(|required| required == name) || !properties.matrices.is_empty(), "{name}");
    }
}
