//! What operators make of elements.

use trefoil_dsl::prelude::*;

/// The larger, or the NaN.
#[device]
pub fn largest(a: f32, b: f32) -> f32 {
    if a > b || is_nan(a) { a } else { b }
}

/// The smaller, or the NaN.
#[device]
pub fn smallest(a: f32, b: f32) -> f32 {
    if a < b || is_nan(a) { a } else { b }
}

/// 1 for all numbers but 0; looked at as bits, since a device may take the smallest numbers for 0.
#[device]
pub fn not_zero(x: f32) -> u32 {
    (x.to_bits() << 1 != 0) as u32
}

/// A number in the order of floats: the larger the float, the larger this; -0 and 0 are equal, and NaN is above all.
#[device]
pub fn order_of(x: f32) -> u32 {
    if is_nan(x) { u32::MAX } else { order_of_number(x) }
}

/// As [`order_of`], of what is no NaN.
#[device]
fn order_of_number(x: f32) -> u32 {
    // All ones for a negative float, whose bits are turned over; one more makes its zero that of the others.
    let sign = (x.to_bits() as i32 >> 31) as u32;
    (x.to_bits() ^ (sign | 0x8000_0000)).wrapping_sub(sign)
}

/// An integer in the order of unsigned ones.
#[device]
pub fn order_of_signed(x: i32) -> u32 {
    x as u32 ^ 0x8000_0000
}

/// a / n; NaN if n is 0.
#[device]
pub fn over(a: f32, n: usize) -> f32 {
    if n == 0 { f32::NAN } else { a / n as f32 }
}

/// An element by its place in an order, and where it stands.
#[device(methods)]
#[derive(Debug, PartialEq)]
pub struct Place {
    /// The larger, the better.
    pub order: u32,
    /// Its index.
    pub index: u32,
}

#[device]
impl Place {
    /// No element: every element is better or comes before.
    pub const NONE: Self = Self { order: 0, index: u32::MAX };

    /// The same element, if there is one, at a higher index.
    pub fn moved(self, by: u32) -> Self {
        Self { order: self.order, index: if self.index == u32::MAX { u32::MAX } else { self.index + by } }
    }

    /// With one element more, of an order above 0, that stands behind all before: of equals the one before.
    pub fn push(self, order: u32, index: u32) -> Self {
        if order > self.order { Self { order, index } } else { self }
    }

    /// With four floats more, of which the larger is the better, that stand behind all before, `apart` from each other. They are held against each other as floats, and only the best is brought into the order: a device that
    /// takes the smallest numbers for 0, or knows of no NaN, would find another.
    #[expect(clippy::eq_op, reason = "one instruction, where the bits of a NaN take three")]
    pub fn push_four(self, x: Vec4<f32>, index: u32, apart: u32) -> Self {
        if (x.x != x.x) | (x.y != x.y) | (x.z != x.z) | (x.w != x.w) {
            self.push(order_of(x.x), index)
                .push(order_of(x.y), index + apart)
                .push(order_of(x.z), index + 2 * apart)
                .push(order_of(x.w), index + 3 * apart)
        } else {
            let (second, fourth) = (x.y > x.x, x.w > x.z);
            let (left, right) = (select(second, x.y, x.x), select(fourth, x.w, x.z));
            let is_right = right > left;
            let place = select(is_right, select(fourth, 3, 2), select(second, 1, 0));
            self.push(order_of_number(select(is_right, right, left)), index + place * apart)
        }
    }

    /// No element, where of equals the last is wanted: every element is better or comes behind, or is the first and the worst that there is.
    pub const NONE_YET: Self = Self { order: 0, index: 0 };

    /// The better, of equals the one behind.
    pub fn last_best(self, other: Self) -> Self {
        if other.order > self.order || (other.order == self.order && other.index > self.index) { other } else { self }
    }

    /// The better, of equals the one before.
    pub fn best(self, other: Self) -> Self {
        if other.order > self.order || (other.order == self.order && other.index < self.index) { other } else { self }
    }
}
