//! What operators make of elements of 64 bits, as [`super::values`] says of others.

use trefoil_dsl::prelude::*;

/// The larger, or the NaN.
#[device]
pub fn largest_double(a: f64, b: f64) -> f64 {
    if a > b || is_nan(a) { a } else { b }
}

/// The smaller, or the NaN.
#[device]
pub fn smallest_double(a: f64, b: f64) -> f64 {
    if a < b || is_nan(a) { a } else { b }
}

/// 1 for all doubles but 0, by their bits.
#[device]
pub fn double_not_zero(x: f64) -> u32 {
    (bitcast::<u64>(x) << 1 != 0) as u32
}

/// A number in the order of doubles: the larger the double, the larger this; -0 and 0 are equal, and NaN is above all.
#[device]
pub fn order_of_double(x: f64) -> u64 {
    let bits = bitcast::<u64>(x);
    // All ones for a negative double, whose bits are turned over; one more makes its zero that of the others.
    let sign = (bits as i64 >> 63) as u64;
    let order = (bits ^ (sign | 0x8000_0000_0000_0000)).wrapping_sub(sign);
    if is_nan(x) { u64::MAX } else { order }
}

/// A signed integer in the order of unsigned ones.
#[device]
pub fn order_of_signed_long(x: i64) -> u64 {
    x as u64 ^ 0x8000_0000_0000_0000
}

/// a / n; NaN if n is 0.
#[device]
pub fn double_over(a: f64, n: usize) -> f64 {
    if n == 0 { f64::NAN } else { a / n as f64 }
}

/// As [`super::values::Place`], of an order of 64 bits; the index has as many, which leaves no gap.
#[device(methods)]
#[derive(Debug, PartialEq)]
pub struct LongPlace {
    /// The larger, the better.
    pub order: u64,
    /// Its index.
    pub index: u64,
}

#[device]
impl LongPlace {
    /// No element: every element is better or comes before.
    pub const NONE: Self = Self { order: 0, index: u64::MAX };

    /// No element, where of equals the last is wanted: every element is better or comes behind, or is the first and the worst that there is.
    pub const NONE_YET: Self = Self { order: 0, index: 0 };

    /// The same element, if there is one, at a higher index.
    pub fn moved(self, by: u32) -> Self {
        Self { order: self.order, index: if self.index == u64::MAX { u64::MAX } else { self.index + by as u64 } }
    }

    /// The better, of equals the one before.
    pub fn best(self, other: Self) -> Self {
        if other.order > self.order || (other.order == self.order && other.index < self.index) { other } else { self }
    }

    /// The better, of equals the one behind.
    pub fn last_best(self, other: Self) -> Self {
        if other.order > self.order || (other.order == self.order && other.index > self.index) { other } else { self }
    }
}
