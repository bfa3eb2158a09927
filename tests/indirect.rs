//! Grids that come from a buffer: a kernel computes how many workgroups the next one has, on every device.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::DeviceKind;
use trefoil::error::Error;
use trefoil::prelude::*;

/// Moves the elements that are not 0 to the front, in any order, and counts them.
#[kernel(workgroup(64))]
fn compact(x: &[u32], kept: &mut [u32], count: &[Atomic<u32>]) {
    let i = global_index();
    if i < x.len() {
        let value = x[i];
        if value != 0 {
            let at = count[0].add(1);
            kept[at as usize] = value;
        }
    }
}

/// As many workgroups of 64 as hold what was counted, at a place among other numbers.
#[kernel(workgroup(1))]
fn wanted(count: &[u32], counts: &mut [u32]) {
    counts[2] = (count[0] + 63) / 64;
    counts[3] = 1;
    counts[4] = 1;
}

/// Works on what was kept, and says of every workgroup that it was there, and how many there are.
#[kernel(workgroup(64), indirect)]
fn doubled(kept: &mut [u32], count: &[u32], groups: &mut [u32]) {
    let i = global_index();
    if i < count[0] as usize {
        kept[i] = kept[i] * 2;
    }
    if local_index() == 0 {
        groups[group_index()] = group_count() as u32;
    }
}

/// Looks at axes, and so needs no word.
#[kernel(workgroup(4, 2))]
fn places(y: &[Atomic<u32>]) {
    let id = group_id();
    let counts = group_counts();
    let local = local_id();
    let at = ((id.z * counts.y + id.y) * counts.x + id.x) * 8 + local.y * 4 + local.x;
    let value = counts.x + 10 * counts.y + 100 * counts.z + 1;
    y[at].add(value as u32);
}

/// What the host folds and counts.
#[kernel(workgroup(64))]
fn folded(y: &mut [u32]) {
    y[global_index()] = 1;
}

#[test]
fn a_kernel_says_how_many_workgroups_the_next_one_has() {
    for subject in common::devices() {
        let device = &subject.device;
        for keep in [0usize, 1, 64, 65, 6400] {
            let x: Vec<u32> = (0..10_000).map(|i| if i < keep { i as u32 + 1 } else { 0 }).collect();
            let there = device.buffer(&x).unwrap();
            let mut kept = device.zeros::<u32>(x.len()).unwrap();
            let mut count = device.zeros::<u32>(1).unwrap();
            let mut counts = device.buffer(&[7u32; 6]).unwrap();
            let mut groups = device.zeros::<u32>(200).unwrap();
            let commands = [
                compact(&there, &mut kept, &mut count).unwrap().over(x.len()),
                wanted(&count, &mut counts).unwrap().groups(1),
                doubled(&mut kept, &count, &mut groups).unwrap().indirect(counts.slice(2..5).unwrap()).unwrap(),
            ];
            if keep % 2 == 0 {
                device.run_all(commands).unwrap();
            } else {
                commands.into_iter().for_each(|command| device.run(command).unwrap());
            }
            let mut found = kept.read().unwrap();
            found.sort_unstable();
            let mut expected: Vec<u32> = x.iter().map(|value| value * 2).collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{keep} on {}", subject.name);
            let ran = keep.div_ceil(64);
            let expected: Vec<u32> = (0..200).map(|i| if i < ran { ran as u32 } else { 0 }).collect();
            assert_eq!(groups.read().unwrap(), expected, "{keep} on {}", subject.name);
        }
    }
}

#[test]
fn a_grid_of_three_axes_comes_from_a_buffer() {
    for subject in common::devices() {
        let device = &subject.device;
        for counts in [[1u32, 1, 1], [3, 2, 5], [7, 1, 2], [4, 0, 4], [2, 3, 0]] {
            let there = device.buffer(&counts).unwrap();
            let mut y = device.zeros::<u32>(1000).unwrap();
            device.run(places(&mut y).unwrap().indirect(&there).unwrap()).unwrap();
            let all = counts.iter().product::<u32>() as usize * 8;
            let value = 1 + counts[0] + 10 * counts[1] + 100 * counts[2];
            let expected: Vec<u32> = (0..1000).map(|i| if i < all { value } else { 0 }).collect();
            assert_eq!(y.read().unwrap(), expected, "{counts:?} on {}", subject.name);
        }
    }
}

#[test]
fn what_is_not_possible_is_an_error() {
    let devices = common::devices();
    for subject in &devices {
        let device = &subject.device;
        let counts = device.buffer(&[1u32, 1, 1]).unwrap();
        let mut y = device.zeros::<u32>(64).unwrap();
        let said = |result: trefoil::error::Result<()>, words: &str| {
            let error = result.expect_err(words).to_string();
            assert!(error.contains(words), "{error:?} does not say {words:?} on {}", subject.name);
        };
        said(device.run(folded(&mut y).unwrap().indirect(&counts).unwrap()), "write `indirect` in its attribute");
        let short = counts.slice(1..3).unwrap();
        said(places(&mut y).unwrap().indirect(short).map(drop), "2 elements given, 3 expected");
        let launch = places(&mut y).unwrap();
        said(
            device.run(launch.indirect(&y).unwrap()),
            "which it writes, is in one piece of memory with its workgroup counts",
        );
    }
    if let [one, other, ..] = devices.as_slice() {
        let counts = other.device.buffer(&[1u32, 1, 1]).unwrap();
        let mut y = one.device.zeros::<u32>(64).unwrap();
        let error = one.device.run(places(&mut y).unwrap().indirect(&counts).unwrap()).unwrap_err().to_string();
        assert!(error.contains("the workgroup counts of kernel `places`"), "{error}");
    }
}

/// More than a device has is an error where the host sees it, nothing on wgpu, and on Vulkan, which does not say what happens, not tried.
#[test]
fn counts_above_the_limits_run_nothing() {
    for subject in common::devices() {
        let device = &subject.device;
        for counts in [[1u32, u32::MAX, 1], [1, 1, u32::MAX], [65536, 65536, 65536]] {
            let there = device.buffer(&counts).unwrap();
            let mut y = device.zeros::<u32>(64).unwrap();
            let mut launch = || places(&mut y).unwrap().indirect(&there).unwrap();
            match device.kind() {
                DeviceKind::Vulkan => continue,
                DeviceKind::Wgpu => {
                    device.run(launch()).unwrap();
                    device.run_all([launch(), launch()]).unwrap();
                    device.time(launch()).unwrap();
                }
                DeviceKind::Cpu | DeviceKind::Cuda => {
                    let error = device.run(launch()).expect_err("too many");
                    assert!(matches!(&error, Error::Grid { kernel, .. } if kernel == "places"), "{error}");
                }
            }
            assert_eq!(y.read().unwrap(), [0; 64], "{counts:?} on {}", subject.name);
        }
        // It is still there.
        let mut y = device.zeros::<u32>(64).unwrap();
        let counts = device.buffer(&[1u32, 1, 1]).unwrap();
        device.run(places(&mut y).unwrap().indirect(&counts).unwrap()).unwrap();
        assert_eq!(y.read().unwrap()[0], 112);
    }
}
