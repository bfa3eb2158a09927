//! Loops whose counters come near the ends of their types, or whose steps are none, on every device.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use trefoil::prelude::*;

/// How many rounds loops have that begin a few numbers before the end of their type, and the sum of what they count.
#[kernel(workgroup(64))]
fn near_the_end(rounds: &mut [u32], sums: &mut [u32], start: u32, low: i32, step: u32, none: u32, last: u32) {
    if global_index() == 0 {
        for i in (start..u32::MAX).step_by(2) {
            rounds[0] += 1;
            sums[0] += i;
        }
        for i in (start..u32::MAX).step_by(step as usize) {
            rounds[1] += 1;
            sums[1] += i;
        }
        for i in (low..i32::MAX).step_by(3) {
            rounds[2] += 1;
            sums[2] += i as u32;
        }
        for i in (low..i32::MAX).step_by(step as usize) {
            rounds[3] += 1;
            sums[3] += i as u32;
        }
        for i in (i32::MIN..low).step_by(0x7000_0000) {
            rounds[4] += 1;
            sums[4] += i as u32;
        }
        for i in (start..=last).step_by(step as usize) {
            rounds[5] += 1;
            sums[5] += i;
        }
        // A step of 0 counts as 1.
        for i in (2u32..=9).step_by(none as usize) {
            rounds[6] += 1;
            sums[6] += i;
        }
        for i in (2u32..9 + none).step_by(none as usize) {
            rounds[7] += 1;
            sums[7] += i;
        }
        // A step from below an end of which nothing is known.
        for i in (last - 7..last).step_by(4) {
            rounds[8] += 1;
            sums[8] += i;
        }
        let far = last as usize;
        for i in (far - 7..far).step_by(4) {
            rounds[9] += 1;
            sums[9] += i as u32;
        }
    }
}

#[test]
fn loops_end_at_the_ends_of_their_types() {
    let (start, low) = (u32::MAX - 15, i32::MAX - 16);
    let unsigned = |numbers: Vec<u32>| (numbers.len() as u32, numbers.iter().fold(0u32, |sum, i| sum.wrapping_add(*i)));
    let signed = |numbers: Vec<i32>| unsigned(numbers.into_iter().map(i32::cast_unsigned).collect());
    let expected = [
        unsigned((start..u32::MAX).step_by(2).collect()),
        unsigned((start..u32::MAX).step_by(7).collect()),
        signed((low..i32::MAX).step_by(3).collect()),
        signed((low..i32::MAX).step_by(7).collect()),
        signed((i32::MIN..low).step_by(0x7000_0000).collect()),
        unsigned((start..=u32::MAX).step_by(7).collect()),
        unsigned((2..=9).collect()),
        unsigned((2..9).collect()),
        unsigned((u32::MAX - 7..u32::MAX).step_by(4).collect()),
        unsigned((u32::MAX - 7..u32::MAX).step_by(4).collect()),
    ];
    for subject in common::devices() {
        let device = &subject.device;
        let mut rounds = device.zeros::<u32>(10).unwrap();
        let mut sums = device.zeros::<u32>(10).unwrap();
        device.run(near_the_end(&mut rounds, &mut sums, start, low, 7, 0, u32::MAX).unwrap().over(1)).unwrap();
        assert_eq!(rounds.read().unwrap(), expected.map(|(rounds, _)| rounds), "rounds on {}", subject.name);
        assert_eq!(sums.read().unwrap(), expected.map(|(_, sum)| sum), "sums on {}", subject.name);
    }
}

/// Counts each number once, in a loop whose start may lie behind the end of its type for all invocations but the first ones.
#[kernel(workgroup(64))]
fn from_behind_the_end(y: &mut [u32], offset: u32) {
    for i in (local_index().wrapping_add(offset as usize)..y.len()).step_by(64) {
        y[i] += 1;
    }
}

#[test]
fn loops_whose_starts_wrap_begin_where_each_invocation_does() {
    for (subject, offset) in common::devices().iter().flat_map(|subject| [5, 0, u32::MAX - 3].map(|at| (subject, at))) {
        let mut expected = vec![0u32; 150];
        for lane in 0..64u32 {
            (lane.wrapping_add(offset)..150).step_by(64).for_each(|i| expected[i as usize] += 1);
        }
        let mut y = subject.device.zeros::<u32>(150).unwrap();
        subject.device.run(from_behind_the_end(&mut y, offset).unwrap().groups(1)).unwrap();
        assert_eq!(y.read().unwrap(), expected, "from {offset} on {}", subject.name);
    }
}
