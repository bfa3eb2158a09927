//! Another crate's functions of functions, methods and operators give on the device what they give on the host.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

// What the tests share knows the facade by its own name.
extern crate gpu as trefoil;

#[path = "../../../common/mod.rs"]
mod common;

use gpu::prelude::*;
use trefoil_test_helpers::{self as helpers, Act, Complex};

#[device]
fn product(a: f32, b: f32) -> f32 {
    a * b
}

#[kernel(workgroup(64))]
fn foreign(x: &[f32], z: &mut [Complex], y: &mut [f32], act: Act) {
    if global_index() == 0 {
        y[0] = helpers::reduce(x, 1.0, product) + helpers::reduce(x, 0.0, |a, b| a.max(b));
        let mut c = z[0] * 2.0 + Complex::I * z[1];
        c += Complex::new(1.0, -1.0);
        c.turn();
        z[2].turn();
        if c != -z[3] {
            z[3] = c.map(|v| v + 1.0);
        }
        y[1] = act.harder().apply(-c.norm());
    }
}

#[test]
fn foreign_functions_of_functions_and_methods() {
    let x = [1.0, -2.0, 0.5];
    let z = [Complex::new(1.0, 2.0), Complex::new(-3.0, 0.5), Complex::new(4.0, 5.0), Complex::new(0.0, 0.0)];
    let mut c = z[0] * 2.0 + Complex::I * z[1];
    c += Complex::new(1.0, -1.0);
    c.turn();
    // The private function of the helpers triples.
    let sums = [(3.0 * -6.0 * 1.5) + 3.0, Act::Leaky.apply(-c.norm())];
    for subject in common::devices() {
        let device = &subject.device;
        let x = device.buffer(&x).unwrap();
        let mut there = device.buffer(&z).unwrap();
        let mut y = device.buffer(&[0.0; 2]).unwrap();
        device.run(foreign(&x, &mut there, &mut y, Act::Keep).unwrap().over(1)).unwrap();
        assert_eq!(y.read().unwrap(), sums, "on {}", subject.name);
        let read = there.read().unwrap();
        assert_eq!(read[2], Complex::new(-5.0, 4.0), "on {}", subject.name);
        assert_eq!(read[3], c.map(|v| v + 1.0), "on {}", subject.name);
    }
}
