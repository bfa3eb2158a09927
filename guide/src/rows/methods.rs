//! methods, associated constants and operators of structs

use std::ops::Mul;

use trefoil::Device;
use trefoil::prelude::*;

use crate::{Outcome, expect};

/// A complex number.
#[device(methods, operators(Mul))]
#[derive(Debug, PartialEq)]
pub struct Complex {
    /// The real part.
    pub re: f32,
    /// The imaginary part.
    pub im: f32,
}

#[device]
impl Complex {
    /// The imaginary unit.
    pub const I: Self = Self { re: 0.0, im: 1.0 };

    /// The square of its length.
    pub fn norm(&self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    /// Mirrors it at the real axis.
    pub fn conjugate(&mut self) {
        self.im = -self.im;
    }
}

#[device]
impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// Turns each number by a right angle, mirrors it, and tells its norm.
#[kernel(workgroup(64))]
pub fn turned(z: &mut [Complex], norms: &mut [f32]) {
    let i = global_index();
    if i < z.len() {
        z[i] = z[i] * Complex::I;
        z[i].conjugate();
        norms[i] = z[i].norm();
    }
}

/// Runs it.
///
/// # Errors
/// The device fails, or gives something else.
pub fn check(device: &Device) -> Outcome {
    let mut z = device.buffer(&[Complex { re: 1.0, im: 2.0 }, Complex { re: -3.0, im: 0.5 }])?;
    let mut norms = device.zeros::<f32>(2)?;
    device.run(turned(&mut z, &mut norms)?.over(2))?;
    expect(&z.read()?, &[Complex { re: -2.0, im: -1.0 }, Complex { re: -0.5, im: 3.0 }])?;
    expect(&norms.read()?, &[5.0, 9.25])
}
