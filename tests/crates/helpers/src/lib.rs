//! `#[device]` items for kernels of another crate.

use trefoil_dsl::prelude::*;

/// Invocations of a workgroup, and elements of its array.
#[device]
pub const LANES: usize = 64;

/// A body in a buffer.
#[device]
#[derive(Debug, PartialEq)]
pub struct Body {
    /// Position and mass.
    pub place: Vec4<f32>,
    /// Where it goes.
    pub velocity: Vec3<f32>,
    /// Who it is.
    pub id: u32,
}

/// The sum over a workgroup of what `weigh` makes of the elements of `x`, through `scratch`; the workgroup has [`LANES`] invocations.
#[device]
pub fn group_sum(x: &[f32], scratch: &mut [f32]) -> f32 {
    let lane = local_index();
    let mut sum = 0.0;
    let mut i = lane;
    while i < x.len() {
        sum += weigh(x[i]);
        i += LANES;
    }
    scratch[lane] = sum;
    barrier();
    let mut width = LANES / 2;
    while width > 0 {
        if lane < width {
            scratch[lane] += scratch[lane + width];
        }
        barrier();
        width /= 2;
    }
    scratch[0]
}

// Private, and defined after its use: whoever uses `group_sum` needs to know neither.
#[device]
fn weigh(x: f32) -> f32 {
    x * deep::FACTOR
}

/// What `combine` makes of the elements of `x`, one after the other, and of a private function's opinion of each.
#[device]
pub fn reduce<F: Fn(f32, f32) -> f32>(x: &[f32], first: f32, combine: F) -> f32 {
    let mut result = first;
    for i in 0..x.len() {
        result = combine(result, weigh(x[i]));
    }
    result
}

/// A complex number.
#[device(methods, operators(Add, Mul, Mul<f32>, Neg, AddAssign, PartialEq))]
#[derive(Debug)]
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
    /// How many numbers it is.
    pub const PARTS: usize = 2;

    /// From its parts.
    pub fn new(re: f32, im: f32) -> Self {
        Complex { re, im }
    }

    /// The square of its length, by a private function.
    pub fn norm(&self) -> f32 {
        square(self.re) + square(self.im)
    }

    /// Turns it by a right angle.
    pub fn turn(&mut self) {
        let re = self.re;
        self.re = -self.im;
        self.im = re;
    }

    /// A function of each part.
    pub fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::new(f(self.re), f(self.im))
    }
}

#[device]
impl std::ops::Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

#[device(uses(methods))]
impl std::ops::Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self::Output {
        Complex::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

#[device(uses(methods))]
impl std::ops::Mul<f32> for Complex {
    type Output = Self;
    fn mul(self, by: f32) -> Self {
        Self::new(self.re * by, self.im * by)
    }
}

#[device]
impl std::ops::Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Self { re: -self.re, im: -self.im }
    }
}

#[device(uses(Add))]
impl std::ops::AddAssign for Complex {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl PartialEq for Complex {
    fn eq(&self, other: &Self) -> bool {
        self.re == other.re && self.im == other.im
    }
}

#[device]
fn square(x: f32) -> f32 {
    x * x
}

/// An activation, chosen while running.
#[device(methods)]
#[derive(Debug)]
pub enum Act {
    /// Nothing.
    Keep,
    /// Not below zero.
    Relu = 4,
    /// A tenth below zero.
    Leaky = 7,
}

#[device]
impl Act {
    /// Of `x`.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Self::Relu => x.max(0.0),
            Act::Leaky => select(x < 0.0, 0.1 * x, x),
            Act::Keep => x,
        }
    }

    /// The one that bends more.
    pub fn harder(self) -> Self {
        match self {
            Act::Keep => Act::Leaky,
            Act::Leaky | Act::Relu => Act::Relu,
        }
    }
}

/// Modules work alike.
pub mod deep {
    use trefoil_dsl::prelude::*;

    /// A constant by another constant, of another module.
    #[device]
    pub const FACTOR: f32 = crate::TWO * 1.5;

    /// Where a body will be; by a path that leads out of the module.
    #[device]
    pub fn moved(body: super::Body, time: f32) -> super::Body {
        let step = body.velocity * time;
        super::Body { place: body.place + Vec4::new(step.x, step.y, step.z, 0.0), velocity: body.velocity, id: body.id }
    }
}

#[device]
const TWO: f32 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_functions_run_on_the_host() {
        assert_eq!(weigh(2.0), 6.0);
        let body = Body { place: Vec4::splat(1.0), velocity: Vec3::new(1.0, 2.0, 3.0), id: 7 };
        assert_eq!(deep::moved(body, 2.0).place, Vec4::new(3.0, 5.0, 7.0, 1.0));
    }
}
