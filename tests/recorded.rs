//! Kernels recorded once and run many times.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use common::devices;
use trefoil::prelude::*;

/// Adds a number to all.
#[kernel(workgroup(64))]
fn add(x: &mut [u32], number: u32) {
    let i = global_index();
    if i < x.len() {
        x[i] += number;
    }
}

/// Twice as much of all.
#[kernel(workgroup(64))]
fn twice(x: &mut [u32]) {
    let i = global_index();
    if i < x.len() {
        x[i] *= 2;
    }
}

#[test]
fn each_run_sees_what_the_last_one_wrote() {
    for subject in devices() {
        let device = &subject.device;
        let mut x = device.buffer(&[1u32, 2, 3]).unwrap();
        let steps = [add(&mut x, 1).unwrap().over(3), twice(&mut x).unwrap().over(3)];
        let recorded = device.record(steps).unwrap();
        for _ in 0..3 {
            recorded.run().unwrap();
        }
        assert_eq!(x.read().unwrap(), [8 + 14, 16 + 14, 24 + 14], "{}", subject.name);
    }
}

#[test]
fn submissions_run_in_order_with_everything_else() {
    for subject in devices() {
        let device = &subject.device;
        let mut x = device.buffer(&[1u32, 2, 3]).unwrap();
        let step = device.record([add(&mut x, 1).unwrap().over(3)]).unwrap();
        for _ in 0..100 {
            step.submit().unwrap();
        }
        device.run(twice(&mut x).unwrap().over(3)).unwrap();
        step.submit().unwrap();
        step.run().unwrap();
        step.submit().unwrap();
        drop(step);
        assert_eq!(x.read().unwrap(), [205, 207, 209], "{}", subject.name);
    }
}

#[test]
fn nothing_is_recorded_as_nothing() {
    for subject in devices() {
        let recorded = subject.device.record([]).unwrap();
        recorded.run().unwrap();
        recorded.submit().unwrap();
    }
}
