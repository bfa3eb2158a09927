//! Matrices that a subgroup holds together, of 8 rows and columns and of 16, on every device that lists such products; those of 16 are made of those of 8 where there are no others.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::Subject;
use trefoil::DeviceKind;
use trefoil::prelude::*;

/// `rows[i] * (a * b + c)`, of which negative elements are cut off, by way of workgroup memory; and the same rounded to halves, column by column, as bits. The depth is
/// that of `STEPS` products.
#[kernel(
    workgroup(64),
    targets(spirv, cpu),
    requires(CooperativeMatrices),
    specialise(STEPS: usize = 1, in 1..=4),
    instances(SIDE = [8, 16])
)]
fn scaled<const SIDE: usize>(
    a: &[f16],
    b: &[Vec4<u32>],
    c: &[f32],
    rows: &[f32],
    out: &mut [f32],
    halves: &mut [Vec4<u32>],
    scale: f32,
) {
    let mut tile = workgroup_array::<f16>(SIDE * SIDE);
    let mut factors = workgroup_array::<f32>(SIDE);
    let i = local_index();
    if i < SIDE {
        factors[i] = rows[i];
    }
    let mut sum = Accumulator::<f32, SIDE, SIDE>::load(c, 0, SIDE);
    for step in 0..STEPS {
        for at in (i..SIDE * SIDE).step_by(64) {
            tile[at] = a[at / SIDE * (SIDE * STEPS) + step * SIDE + at % SIDE];
        }
        barrier();
        let left = MatrixA::<f16, SIDE, SIDE>::load(&tile, 0, SIDE);
        let right = MatrixB::<f16, SIDE, SIDE>::load(b, step * SIDE * (SIDE / 8), SIDE / 8);
        sum = multiply_add(left, right, sum);
        barrier();
    }
    let factor = Accumulator::<f32, SIDE, SIDE>::load_columns(&factors, 0, 0);
    let cut = sum.zip(factor, |sum, factor| sum * factor).map(|x| max(x, 0.0));
    let scaled = cut.zip(Accumulator::fill(scale), |x, y| x * y);
    scaled.store(out, 0, SIDE);
    Accumulator::<f16, SIDE, SIDE>::convert(scaled).store_columns(halves, 0, SIDE / 8);
}

/// Of ten bits: times integers of fourteen it is exact in `f32`, and `f16` must round.
const SCALE: f32 = 513.0 / 1024.0;

/// Small integers, whose sums are exact.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f32 - 5.0).collect()
}

/// Eight halves in 16 bytes.
fn bits(all: &[f16]) -> Vec<Vec4<u32>> {
    let pair = |halves: &[f16]| u32::from(halves[0].to_bits()) | u32::from(halves[1].to_bits()) << 16;
    all.chunks_exact(8).map(|eight| Vec4::from_array([0, 2, 4, 6].map(|at| pair(&eight[at..])))).collect()
}

fn check(subject: &Subject, side: usize, steps: usize) {
    let Subject { name, device } = subject;
    let about = format!("{side} rows, {steps} steps on {name}");
    let depth = side * steps;
    let narrow = |all: &[f32]| all.iter().copied().map(f16::from_f32).collect::<Vec<f16>>();
    let (a, b) = (numbers(side * depth, 1), numbers(depth * side, 2));
    let (c, rows) = (numbers(side * side, 3), numbers(side, 4));
    let (a_there, b_there) = (device.buffer(&narrow(&a)).unwrap(), device.buffer(&bits(&narrow(&b))).unwrap());
    let (c_there, rows_there) = (device.buffer(&c).unwrap(), device.buffer(&rows).unwrap());
    let mut out = device.buffer(&vec![f32::NAN; side * side]).unwrap();
    let mut halves = device.buffer(&vec![Vec4::splat(u32::MAX); side * side / 8]).unwrap();
    let (x, y) = (&mut out, &mut halves);
    let launch = match side {
        8 => scaled::<8>(&a_there, &b_there, &c_there, &rows_there, x, y, SCALE),
        _ => scaled::<16>(&a_there, &b_there, &c_there, &rows_there, x, y, SCALE),
    };
    let launch = launch.unwrap().specialise(scaled::Constants { steps }).unwrap();
    let lists = |side: usize| {
        let sums = |sum: &str| format!("{side}x{side}x{side} of f16 in {sum}");
        ["f32", "f16"].iter().all(|sum| device.properties().matrices.iter().any(|one| one.to_string() == sums(sum)))
    };
    let ran = device.run(launch.groups(1));
    // The kernel has no code for CUDA, which has no matrices of 8 by 8.
    let has = match device.kind() {
        DeviceKind::Cpu => true,
        DeviceKind::Cuda => false,
        DeviceKind::Vulkan | DeviceKind::Wgpu => lists(side) || lists(8),
    };
    if !has {
        let error = ran.unwrap_err().to_string();
        let reasons = ["products of matrices", "needs the feature", "is not compiled for"];
        assert!(reasons.iter().any(|reason| error.contains(reason)) && error.contains("scaled"), "{about}: {error}");
        return;
    }
    ran.unwrap_or_else(|error| panic!("{about}: {error}"));
    let expected: Vec<f32> = (0..side * side)
        .map(|at| {
            let (i, j) = (at / side, at % side);
            let product: f32 = (0..depth).map(|k| a[i * depth + k] * b[k * side + j]).sum();
            ((product + c[at]) * rows[i]).max(0.0) * SCALE
        })
        .collect();
    assert_eq!(out.read().unwrap(), expected, "{about}");
    let turned: Vec<f16> = (0..side * side).map(|at| f16::from_f32(expected[at % side * side + at / side])).collect();
    assert_eq!(halves.read().unwrap(), bits(&turned), "{about}");
}

#[test]
fn products() {
    for subject in common::devices() {
        for steps in [1, 3, 4] {
            check(&subject, 8, steps);
            check(&subject, 16, steps);
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
