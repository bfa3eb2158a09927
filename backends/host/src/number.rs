//! What operands and results of products are made of: `f32`, and halves, which are computed with as `f32`.

use half::{bf16, f16};

/// A float of at most 32 bits.
pub trait Number: Copy + Send + Sync + 'static {
    /// The same value.
    fn wide(self) -> f32;

    /// The nearest value.
    fn narrow(value: f32) -> Self;

    /// The numbers as they lie, if they are `f32`.
    fn singles(_values: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Number for f32 {
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        value
    }

    fn singles(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }
}

impl Number for bf16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

impl Number for f16 {
    /// By shifts and one product, of which the compiler makes vectors; the crate's own function looks at the processor for each number.
    #[inline(always)]
    fn wide(self) -> f32 {
        let bits = u32::from(self.to_bits());
        // Exponent and fraction where those of an `f32` are, and the difference of the exponents' biases, 112, put right.
        let scaled = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((112 + 127) << 23);
        let endless = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(scaled.to_bits() | endless | (bits & 0x8000) << 16)
    }

    #[inline(always)]
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_what_they_are() {
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert!(x.wide() == x.to_f32() || x.wide().is_nan() && x.is_nan(), "{bits:x}: {}", x.wide());
            assert!(y.wide() == y.to_f32() || y.wide().is_nan() && y.is_nan(), "{bits:x}: {}", y.wide());
            assert_eq!(x.wide().is_sign_negative(), x.is_sign_negative(), "{bits:x}");
        }
    }
}
