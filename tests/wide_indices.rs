//! Kernels whose indices are 64 bits wide, on every device that has them: arithmetic above 2^32, and which instance a launch runs.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::Arc;

use common::{Subject, devices};
use trefoil::artefact::{Feature, IndexWidth, Kernel};
use trefoil::prelude::*;
use trefoil::{DeviceKind, Launch};

/// What is done with an index and two numbers, a row each.
#[kernel(workgroup(64), index = 64, targets(spirv, cuda, cpu))]
fn operations(a: &[u64], b: &[u64], y: &mut [u64], given: usize, some: [usize; 3]) {
    let i = global_index();
    if i < a.len() {
        let x = a[i] as usize;
        let z = b[i] as usize;
        let at = i * 26;
        y[at] = (x + z) as u64;
        y[at + 1] = (x - z) as u64;
        y[at + 2] = (x * z) as u64;
        y[at + 3] = (x / z) as u64;
        y[at + 4] = (x % z) as u64;
        y[at + 5] = (x << (z as u32)) as u64;
        y[at + 6] = (x >> (z as u32)) as u64;
        y[at + 7] = ((x & z) ^ (x | z)) as u64;
        y[at + 8] = !x as u64;
        y[at + 9] = x.min(z) as u64;
        y[at + 10] = x.max(z).min(5_000_000_000) as u64;
        y[at + 11] = x.rem_euclid(z) as u64;
        y[at + 12] = x.div_ceil(z) as u64;
        y[at + 13] = x.count_ones() as u64 + x.leading_zeros() as u64 * 1000 + x.trailing_zeros() as u64 * 1_000_000;
        y[at + 14] = (x < z) as u64 + (x <= z) as u64 * 2 + (x == z) as u64 * 4;
        y[at + 15] = x as u32 as u64;
        y[at + 16] = x as i32 as i64 as u64;
        y[at + 17] = (x as i32 as usize) as u64;
        y[at + 18] = ((x as f32) as usize) as u64;
        y[at + 19] = (given + i) as u64;
        y[at + 20] = some[i % 4] as u64;
        y[at + 21] = chosen(x) as u64;
        y[at + 22] = among(x, z) as u64;
        y[at + 23] = counted(x, z) as u64;
        y[at + 24] = (x - 1) as u64;
        y[at + 25] = (a.len() + 0x1_0000_0000) as u64;
    }
}

/// A choice by cases, of which each fits into 32 bits.
#[device]
fn chosen(x: usize) -> u32 {
    match x {
        0 => 1,
        1 | 33 => 2,
        4_294_967_295 => 3,
        _ => 4,
    }
}

/// A choice by ranges, and an element of a private array.
#[device]
fn among(x: usize, z: usize) -> u32 {
    let mut held = [7u32, 8, 9];
    held[z] = 10;
    match x {
        0..=2 => held[x],
        4_294_967_296 => 11,
        3..=4_294_967_295 => 12,
        _ => held[z] + held[x],
    }
}

/// Rounds of loops that begin near a number, with steps beyond 32 bits.
#[device]
fn counted(x: usize, z: usize) -> u32 {
    let mut rounds = 0;
    let far = x / 4 + 7_000_000_000;
    for i in (far..far + 5).step_by(2) {
        rounds += (i % 7) as u32;
    }
    for i in (0..4).rev() {
        rounds += i as u32 * 100;
    }
    for i in (z / 2..=z / 2 + 9_000_000_000).step_by(4_000_000_000) {
        rounds += 10_000 * (i > 8_000_000_000) as u32 + 1000;
    }
    rounds
}

/// The same on the host.
fn expected(i: usize, x: u64, z: u64, given: u64, some: [u64; 3], length: u64) -> [u64; 26] {
    let held = |at: u64, z: u64| if at == z && at < 3 { 10 } else { [7, 8, 9].get(at as usize).copied().unwrap_or(0) };
    let far = x / 4 + 7_000_000_000;
    let first = z / 2;
    let inclusive = [0u64, 1, 2].map(|k| first.wrapping_add(k * 4_000_000_000));
    let rounds = [far, far + 2, far + 4].map(|i| i % 7).iter().sum::<u64>()
        + 600
        + inclusive.map(|i| 10_000 * u64::from(i > 8_000_000_000) + 1000).iter().sum::<u64>();
    [
        x.wrapping_add(z),
        x.wrapping_sub(z),
        x.wrapping_mul(z),
        x.checked_div(z).unwrap_or(0),
        x.checked_rem(z).unwrap_or(0),
        x.wrapping_shl(z as u32),
        x.wrapping_shr(z as u32),
        (x & z) ^ (x | z),
        !x,
        x.min(z),
        x.max(z).min(5_000_000_000),
        x.checked_rem(z).unwrap_or(0),
        if z == 0 { 0 } else { x.div_ceil(z) },
        u64::from(x.count_ones()) + u64::from(x.leading_zeros()) * 1000 + u64::from(x.trailing_zeros()) * 1_000_000,
        u64::from(x < z) + u64::from(x <= z) * 2 + u64::from(x == z) * 4,
        u64::from(x as u32),
        i64::from(x as i32).cast_unsigned(),
        i64::from(x as i32).cast_unsigned(),
        x as f32 as u64,
        given + i as u64,
        some.get(i % 4).copied().unwrap_or(0),
        match x {
            0 => 1,
            1 | 33 => 2,
            0xffff_ffff => 3,
            _ => 4,
        },
        match x {
            0..=2 => held(x, z),
            0x1_0000_0000 => 11,
            3..=0xffff_ffff => 12,
            _ => held(z, z) + held(x, z),
        },
        rounds,
        x.wrapping_sub(1),
        length + (1 << 32),
    ]
}

const NUMBERS: [u64; 17] = [
    0,
    1,
    2,
    3,
    31,
    33,
    63,
    65,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0001,
    5_000_000_000,
    0x1234_5678_9abc_def0,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

/// A device's own code for a kernel, and on the CPU the evaluator too.
fn engines(subject: &Subject, kernel: &'static Kernel) -> Vec<Arc<Kernel>> {
    let mut engines = vec![Arc::new(kernel.clone())];
    if subject.device.kind() == DeviceKind::Cpu {
        engines.push(Arc::new(Kernel { cpu: None, ..kernel.clone() }));
    }
    engines
}

/// Devices that run kernels with wide indices: those of Vulkan, CUDA and the CPU that compute in 64 bits.
fn wide_devices() -> Vec<Subject> {
    let mut all = devices();
    all.retain(|subject| {
        let has = subject.device.properties().features.has(Feature::Int64) && subject.device.kind() != DeviceKind::Wgpu;
        if !has {
            eprintln!("{} has no indices of 64 bits", subject.name);
        }
        has
    });
    all
}

#[test]
fn indices_are_computed_in_64_bits() {
    let pairs: Vec<(u64, u64)> = NUMBERS.iter().flat_map(|a| NUMBERS.iter().map(|b| (*a, *b))).collect();
    let (a, b): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let (given, some) = (6_000_000_000, [7_000_000_000, 1, u64::MAX]);
    for subject in wide_devices() {
        for kernel in engines(&subject, &operations::KERNEL) {
            let device = &subject.device;
            let (at, bt) = (device.buffer(&a).unwrap(), device.buffer(&b).unwrap());
            let mut y = device.buffer(&vec![7u64; pairs.len() * 26]).unwrap();
            let launch = Launch::of(kernel).read(&at).unwrap().read(&bt).unwrap().write(&mut y).unwrap();
            let launch = launch.value(given as usize).unwrap().value(some.map(|x| x as usize)).unwrap();
            device.run(launch.over(pairs.len())).unwrap();
            let found = y.read().unwrap();
            for (i, ((x, z), found)) in pairs.iter().zip(found.chunks(26)).enumerate() {
                let expected = expected(i, *x, *z, given, some, pairs.len() as u64);
                for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
                    assert_eq!(*found, expected, "row {row} of {x:#x} and {z:#x} on {}", subject.name);
                }
            }
        }
    }
}

/// Positions in a matrix of many columns; of either width.
#[kernel(workgroup(64), index = [32, 64])]
fn positions(y: &mut [u32], columns: usize) {
    let i = global_index();
    if i < y.len() {
        y[i] = (i * columns / 1000) as u32;
    }
}

/// The same of several types.
#[kernel(workgroup(64), index = [32, 64], instances(T = [f32, u32]), specialise(TIMES: usize = 1, in 1..=9))]
fn scaled<T: Number>(y: &mut [T], from: usize) {
    let i = global_index();
    if i + from * TIMES < y.len() {
        y[i + from * TIMES] = T::lit(3.0);
    }
}

#[test]
fn a_launch_runs_the_narrowest_instance_that_fits() {
    assert_eq!(positions::KERNEL.index, IndexWidth::Bits32);
    assert_eq!(positions::KERNEL_INDEX64.index, IndexWidth::Bits64);
    assert_eq!(positions::KERNEL_INDEX64.name, "positions_index64");
    assert_eq!(positions::KERNELS.len(), 2);
    for subject in devices() {
        let device = &subject.device;
        let mut y = device.zeros::<u32>(100).unwrap();
        let narrow = positions(&mut y, 5000).unwrap().over(100);
        assert_eq!(narrow.kernel().index, IndexWidth::Bits32);
        device.run(narrow).unwrap();
        assert_eq!(y.read().unwrap(), (0..100).map(|i| i * 5).collect::<Vec<u32>>(), "{}", subject.name);

        let wide = positions(&mut y, 5_000_000_000).unwrap().over(100);
        assert_eq!(wide.kernel().index, IndexWidth::Bits64);
        match device.run(wide) {
            // WGSL has none; where wgpu takes SPIR-V, that may have them.
            Err(error) if device.kind() == DeviceKind::Wgpu => {
                let error = error.to_string();
                assert!(error.contains("`positions_index64` is not compiled for wgsl"), "{error}");
            }
            ran if device.properties().features.has(Feature::Int64) => {
                ran.unwrap();
                let expected: Vec<u32> = (0..100u64).map(|i| (i * 5_000_000) as u32).collect();
                assert_eq!(y.read().unwrap(), expected, "{}", subject.name);
            }
            _ => {}
        }

        let mut y = device.zeros::<f32>(100).unwrap();
        let late = scaled::<f32>(&mut y, 20).unwrap().specialise(scaled::Constants { times: 2 }).unwrap();
        device.run(late.over(30)).unwrap();
        let expected: Vec<f32> = (0..100).map(|i| if i >= 40 { 3.0 } else { 0.0 }).collect();
        assert_eq!(y.read().unwrap(), expected, "{}", subject.name);
        let far = scaled::<f32>(&mut y, 1 << 40).unwrap().over(30);
        assert_eq!(far.kernel().name, "scaled_f32_index64");
    }
}

/// Of one width alone, a launch that does not fit is an error.
#[kernel(workgroup(64))]
fn narrow(y: &mut [u32], columns: usize) {
    let i = global_index();
    if i < y.len() {
        y[i] = (i * columns) as u32;
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    for subject in devices() {
        let device = &subject.device;
        let mut y = device.zeros::<u32>(4).unwrap();
        let error = narrow(&mut y, 1 << 32).unwrap_err().to_string();
        assert_eq!(error, "kernel `narrow`, argument `columns`: 4294967296 does not fit into 32 bits");
        let error = device.run(narrow(&mut y, 1).unwrap().over(1 << 33)).unwrap_err().to_string();
        assert!(error.contains("kernel `narrow`: a grid of"), "{error}");
        // The workgroups of a grid are counted in 32 bits whatever the width of indices.
        let error = device.run(positions(&mut y, 1).unwrap().over(1 << 39)).unwrap_err().to_string();
        assert!(error.contains("kernel `positions_index64`: a grid of"), "{error}");
    }
}

/// Marks elements of a buffer that 32 bits do not number.
#[kernel(workgroup(256), index = 64, targets(spirv, cuda, cpu))]
fn marked(y: &mut [u8]) {
    let i = global_index();
    if i < y.len() {
        y[i] = (i % 251) as u8 + (i / 4_294_967_296) as u8;
    }
}

/// Elements here and there.
#[kernel(workgroup(64), index = [32, 64], targets(spirv, cuda, cpu))]
fn sampled(x: &[u8], y: &mut [u32], step: usize) {
    let i = global_index();
    if i < y.len() {
        y[i] = x[i * step] as u32;
    }
}

/// On machines with a GPU alone: the buffer takes 4.5 GiB.
#[test]
fn a_buffer_of_more_than_four_billion_elements() {
    const LENGTH: usize = 9 << 29;
    for subject in devices().iter().filter(|subject| subject.device.kind() == DeviceKind::Cuda) {
        let device = &subject.device;
        let mut large = match device.uninit::<u8>(LENGTH) {
            Ok(large) => large,
            Err(error @ trefoil::Error::OutOfMemory { .. }) => {
                eprintln!("skipped on {}: {error}", subject.name);
                continue;
            }
            Err(error) => panic!("{}: {error}", subject.name),
        };
        device.run(marked(&mut large).unwrap().over(LENGTH)).unwrap();
        let count = 1000;
        let step = LENGTH / count;
        let mut y = device.zeros::<u32>(count + 8).unwrap();
        let launch = sampled(&large, &mut y, step).unwrap().over(count + 8);
        assert_eq!(launch.kernel().index, IndexWidth::Bits64);
        device.run(launch).unwrap();
        let element = |i: usize| if i < LENGTH { (i % 251) as u32 + (i >> 32) as u32 } else { 0 };
        let expected: Vec<u32> = (0..count + 8).map(|i| element(i * step) & 0xff).collect();
        assert_eq!(y.read().unwrap(), expected, "{}", subject.name);
    }
}
