//! Functions with barriers that a workgroup leaves early, on every device: from some ways through a branch, from some cases of a match, from loops.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::prelude::*;

/// What the invocation at the other end of the workgroup has.
#[device]
fn across(x: u32, scratch: &mut [u32]) -> u32 {
    let l = local_index();
    scratch[l] = x;
    barrier();
    let other = scratch[63 - l];
    barrier();
    other
}

#[device]
fn from_branches(x: u32, n: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    if n > 4 {
        if n > 8 {
            return sum + 1000;
        }
        sum += 10;
    }
    let other = across(sum, scratch);
    sum + 2 * other
}

#[device]
fn from_cases(x: u32, n: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    match n {
        0 => {
            return 7;
        }
        1 => {
            sum += 5;
        }
        2 | 3 => {
            let other = across(sum, scratch);
            return sum + other;
        }
        _ => {
            sum += 6;
        }
    }
    let other = across(sum, scratch);
    sum + 3 * other
}

#[device]
fn from_loops(x: u32, n: u32, scratch: &mut [u32]) -> u32 {
    let mut sum = x;
    for i in 0u32..3 {
        for j in 0u32..3 {
            let other = across(sum, scratch);
            sum += other + j;
            if i * 3 + j == n {
                return sum + 100;
            }
        }
        if i + 10 == n {
            return sum + 200;
        }
        sum += 1;
    }
    let other = across(sum, scratch);
    sum + 2 * other
}

/// Each of the functions twice, the second time with what the first one gave.
#[kernel(workgroup(64))]
fn left_early(x: &[u32], y: &mut [u32], n: u32) {
    let mut scratch = workgroup_array::<u32>(64);
    let i = global_index();
    let a = from_branches(x[i], n, &mut scratch);
    let b = from_branches(a, n / 2, &mut scratch);
    let c = from_cases(b, n, &mut scratch);
    let d = from_cases(c, n / 2, &mut scratch);
    let e = from_loops(d, n, &mut scratch);
    let f = from_loops(e, n / 2, &mut scratch);
    y[i] = a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f;
}

/// `a + times * b + more`, invocation by invocation.
fn sum(a: &[u32], times: u32, b: &[u32], more: u32) -> Vec<u32> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(times.wrapping_mul(*b)).wrapping_add(more)).collect()
}

/// `x + times * other + more`, with what the other end of the workgroup has.
fn mixed(x: &[u32], times: u32, more: u32) -> Vec<u32> {
    let other: Vec<u32> = x.iter().rev().copied().collect();
    sum(x, times, &other, more)
}

fn branches(x: &[u32], n: u32) -> Vec<u32> {
    match n {
        0..=4 => mixed(x, 2, 0),
        5..=8 => mixed(&mixed(x, 0, 10), 2, 0),
        _ => mixed(x, 0, 1000),
    }
}

fn cases(x: &[u32], n: u32) -> Vec<u32> {
    match n {
        0 => vec![7; x.len()],
        1 => mixed(&mixed(x, 0, 5), 3, 0),
        2 | 3 => mixed(x, 1, 0),
        _ => mixed(&mixed(x, 0, 6), 3, 0),
    }
}

fn loops(x: &[u32], n: u32) -> Vec<u32> {
    let mut all = x.to_vec();
    for i in 0..3 {
        for j in 0..3 {
            all = mixed(&all, 1, j);
            if i * 3 + j == n {
                return mixed(&all, 0, 100);
            }
        }
        if i + 10 == n {
            return mixed(&all, 0, 200);
        }
        all = mixed(&all, 0, 1);
    }
    mixed(&all, 2, 0)
}

#[test]
fn functions_with_barriers_are_left_early() {
    let x: Vec<u32> = (0..128).map(|i| i * 37 % 101).collect();
    for n in [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 20, 24] {
        let workgroup = |x: &[u32]| {
            let a = branches(x, n);
            let b = branches(&a, n / 2);
            let c = cases(&b, n);
            let d = cases(&c, n / 2);
            let e = loops(&d, n);
            let f = loops(&e, n / 2);
            [(3, b), (5, c), (7, d), (11, e), (13, f)].iter().fold(a, |all, (times, part)| sum(&all, *times, part, 0))
        };
        let expected: Vec<u32> = x.chunks(64).flat_map(workgroup).collect();
        for subject in common::devices() {
            let x = subject.device.buffer(&x).unwrap();
            let mut y = subject.device.zeros::<u32>(128).unwrap();
            subject.device.run(left_early(&x, &mut y, n).unwrap().groups(2)).unwrap();
            assert_eq!(y.read().unwrap(), expected, "{n} on {}", subject.name);
        }
    }
}
