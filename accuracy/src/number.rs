//! Float types, as far as errors are counted in their steps.

use trefoil::dsl::element::Element;
use trefoil::{bf16, f16};

/// What a type can hold.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Binary digits of a number, with the first.
    pub digits: i32,
    /// The smallest normal number.
    pub smallest: f64,
    /// The largest finite number.
    pub largest: f64,
}

impl Format {
    /// The distance of neighbours at a number: a unit in its last place.
    pub fn step(&self, at: f64) -> f64 {
        // The exponent, from the bits: every number of the types is a normal `f64`, but for subnormal ones of `f64` itself.
        let size = at.abs().clamp(self.smallest, self.largest);
        let exponent = (size.to_bits() >> 52) as i32 - 1023;
        2f64.powi(exponent - self.digits + 1)
    }
}

/// A float type.
pub trait Number: Element {
    /// What it can hold.
    const FORMAT: Format;
    /// The nearest number of the type.
    fn nearest(value: f64) -> Self;
    /// The number, exactly.
    fn wide(self) -> f64;
}

macro_rules! number {
    ($($ty:ident: $digits:expr, $smallest:expr, $largest:expr, $nearest:expr, $wide:expr;)*) => {
        $(impl Number for $ty {
            const FORMAT: Format = Format { digits: $digits as i32, smallest: $smallest, largest: $largest };
            fn nearest(value: f64) -> Self {
                $nearest(value)
            }
            fn wide(self) -> f64 {
                $wide(self)
            }
        })*
    };
}

number! {
    f32: f32::MANTISSA_DIGITS, f32::MIN_POSITIVE as f64, f32::MAX as f64, |x| x as f32, f64::from;
    f64: f64::MANTISSA_DIGITS, f64::MIN_POSITIVE, f64::MAX, |x| x, |x| x;
    f16: f16::MANTISSA_DIGITS, 6.103_515_625e-5, 65504.0, f16::from_f64, f16::to_f64;
    bf16: bf16::MANTISSA_DIGITS, f32::MIN_POSITIVE as f64, 3.389_531_389_251_535_5e38, bf16::from_f64, bf16::to_f64;
}
