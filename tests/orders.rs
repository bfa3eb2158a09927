//! Atomics and fences that order memory, on every device that has them: compiled, and on the CPU in the evaluator too.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::Arc;

use trefoil::artefact::Kernel;
use trefoil::prelude::*;
use trefoil::{Device, DeviceKind, Launch};

const GROUPS: usize = 500;

/// Each workgroup doubles what the one before it left, and adds its own number; the data are written plainly, and many invocations of the
/// workgroup wrote and read them.
#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn passed_on(rows: &mut [u32], flags: &[Atomic<u32>]) {
    let number = workgroup_array::<Atomic<u32>>(1);
    let i = local_index();
    if i == 0 {
        number[0].store(flags[0].add(1));
    }
    barrier();
    let group = number[0].load() as usize;
    if i == 0 && group > 0 {
        while flags[group].load_acquire() == 0 {}
    }
    barrier();
    let mut before = 0;
    if group > 0 {
        before = rows[(group - 1) * 64 + (63 - i)];
    }
    rows[group * 64 + i] = 2 * before + (group + i) as u32;
    barrier();
    if i == 0 {
        flags[group + 1].store_release(1);
    }
}

/// The same with fences and relaxed atomics.
#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn passed_on_by_fences(rows: &mut [u32], flags: &[Atomic<u32>]) {
    let number = workgroup_array::<Atomic<u32>>(1);
    let i = local_index();
    if i == 0 {
        number[0].store(flags[0].add(1));
    }
    barrier();
    let group = number[0].load() as usize;
    if i == 0 && group > 0 {
        while flags[group].load() == 0 {}
        device_fence();
    }
    barrier();
    let mut before = 0;
    if group > 0 {
        before = rows[(group - 1) * 64 + (63 - i)];
    }
    rows[group * 64 + i] = 2 * before + (group + i) as u32;
    barrier();
    if i == 0 {
        device_fence();
        flags[group + 1].store(1);
    }
}

/// Whoever comes last sums up what all wrote.
#[kernel(workgroup(64), targets(spirv, cuda, cpu))]
fn summed_by_the_last(x: &[u32], sums: &mut [u32], done: &[Atomic<u32>], total: &mut [u32]) {
    let ours = workgroup_array::<Atomic<u32>>(2);
    let i = local_index();
    if i == 0 {
        ours[0].store(0);
    }
    barrier();
    ours[0].add(x[global_index()]);
    barrier();
    if i == 0 {
        sums[group_index()] = ours[0].load();
        if done[0].add_acq_rel(1) as usize + 1 == group_count() {
            let mut sum = 0;
            for k in 0..group_count() {
                sum += sums[k];
            }
            total[0] = sum;
        }
    }
}

/// The kernel as it is, and where the device is the CPU's, once more for the evaluator.
fn engines(device: &Device, kernel: &Kernel) -> Vec<Arc<Kernel>> {
    let mut engines = vec![Arc::new(kernel.clone())];
    if device.kind() == DeviceKind::Cpu {
        engines.push(Arc::new(Kernel { cpu: None, ..kernel.clone() }));
    }
    engines
}

/// The devices whose target has orders.
fn devices() -> Vec<common::Subject> {
    common::devices_with(&[Feature::Ordering])
}

#[test]
fn every_device_but_those_of_wgpu_orders_memory() {
    for subject in common::devices() {
        let orders = subject.device.properties().features.has(Feature::Ordering);
        assert_eq!(orders, subject.device.kind() != DeviceKind::Wgpu, "{}", subject.name);
    }
}

#[test]
fn what_was_released_is_there() {
    let mut expected: Vec<u32> = Vec::new();
    for group in 0..GROUPS as u32 {
        let before = expected.len().checked_sub(64).map_or_else(|| vec![0; 64], |first| expected[first..].to_vec());
        expected.extend((0..64).map(|i| before[63 - i as usize].wrapping_mul(2).wrapping_add(group + i)));
    }
    for subject in devices() {
        let device = &subject.device;
        // A GPU played by a processor may end a loop that waits for long (lavapipe does after 65,535 turns): there one workgroup, which waits for none.
        let groups = if device.properties().software { 1 } else { GROUPS };
        let expected = &expected[..groups * 64];
        for kernel in [&passed_on::KERNEL, &passed_on_by_fences::KERNEL] {
            for kernel in engines(device, kernel) {
                for _ in 0..5 {
                    let mut rows = device.zeros::<u32>(groups * 64).unwrap();
                    let mut flags = device.zeros::<u32>(groups + 1).unwrap();
                    let launch = Launch::of(kernel.clone()).write(&mut rows).unwrap().write(&mut flags).unwrap();
                    device.run(launch.groups(groups)).unwrap();
                    let given = rows.read().unwrap();
                    let wrong = given.iter().zip(expected).position(|(given, expected)| given != expected);
                    assert_eq!(wrong, None, "{} on {}", kernel.name, subject.name);
                }
            }
        }
    }
}

#[test]
fn the_last_sees_what_all_wrote() {
    let numbers: Vec<u32> = (0..GROUPS as u32 * 64).map(|i| i % 13).collect();
    for subject in devices() {
        let device = &subject.device;
        let x = device.buffer(&numbers).unwrap();
        for kernel in engines(device, &summed_by_the_last::KERNEL) {
            for _ in 0..5 {
                let mut sums = device.zeros::<u32>(GROUPS).unwrap();
                let mut done = device.zeros::<u32>(1).unwrap();
                let mut total = device.zeros::<u32>(1).unwrap();
                let launch = Launch::of(kernel.clone()).read(&x).unwrap().write(&mut sums).unwrap();
                let launch = launch.write(&mut done).unwrap().write(&mut total).unwrap();
                device.run(launch.groups(GROUPS)).unwrap();
                assert_eq!(total.read().unwrap(), [numbers.iter().sum::<u32>()], "{}", subject.name);
            }
        }
    }
}

/// Every operation on 64 bits, by one invocation, in a buffer and in workgroup memory: what was there before, and at last.
#[kernel(workgroup(1), targets(spirv, cuda, cpu), requires(Int64Atomics))]
fn long_operations(buffer: &[Atomic<i64>], words: &[Atomic<u64>], y: &mut [i64]) {
    let ours = workgroup_array::<Atomic<i64>>(1);
    ours[0].store(5_000_000_000);
    y[0] = ours[0].add(-7_000_000_000);
    y[1] = ours[0].min(-3);
    y[2] = ours[0].load();
    y[3] = buffer[0].add(5_000_000_000);
    y[4] = buffer[0].sub(1);
    y[5] = buffer[0].min(-9_000_000_000);
    y[6] = buffer[0].max(3);
    y[7] = buffer[0].and(6);
    y[8] = buffer[0].or(0x7000_0000_0000);
    y[9] = buffer[0].xor(-1);
    y[10] = buffer[0].exchange(42);
    y[11] = buffer[0].compare_exchange(41, 1);
    y[12] = buffer[0].compare_exchange(42, -1);
    y[13] = buffer[0].load();
    // Past the end.
    y[14] = buffer[1].add(9);
    y[15] = words[0].max(1) as i64;
    y[16] = words[0].min(8) as i64;
    y[17] = words[0].load() as i64;
}

#[test]
fn atomics_of_64_bits_give_the_value_from_before() {
    let high = 0x7000_0000_0000i64;
    let expected = [
        5_000_000_000,
        -2_000_000_000,
        -2_000_000_000,
        7,
        5_000_000_007,
        5_000_000_006,
        -9_000_000_000,
        3,
        2,
        high | 2,
        !(high | 2),
        42,
        42,
        -1,
        0,
        -2,
        -2,
        8,
    ];
    let mut ran = 0;
    for subject in common::devices() {
        let device = &subject.device;
        if !device.properties().features.has(Feature::Int64Atomics) {
            continue;
        }
        for kernel in engines(device, &long_operations::KERNEL) {
            let mut buffer = device.buffer(&[7i64]).unwrap();
            let mut words = device.buffer(&[u64::MAX - 1]).unwrap();
            let mut y = device.zeros::<i64>(expected.len()).unwrap();
            let launch = Launch::of(kernel).write(&mut buffer).unwrap().write(&mut words).unwrap();
            device.run(launch.write(&mut y).unwrap().groups(1)).unwrap();
            assert_eq!(y.read().unwrap(), expected, "{}", subject.name);
            ran += 1;
        }
    }
    assert!(ran >= 2, "the CPU has them, compiled and evaluated");
}
