//! What functions of bits and of small vectors mean, in plain Rust: those that Rust's own library lacks.
//!
//! The host meaning of the language and the evaluator call these, so that each is said once in Rust. What targets run is made by lowering, and
//! tests hold one against the other.

use half::f16;

/// The 32-bit integers, by their bits.
pub trait Word: Copy {
    /// Its bits.
    fn bits(self) -> u32;
    /// The number with these bits.
    fn from_bits(bits: u32) -> Self;
    /// Moved down so many bits, less than 32, with what the type has above.
    #[must_use]
    fn down(self, by: u32) -> Self;
    /// The upper half of the product.
    #[must_use]
    fn mul_high(self, other: Self) -> Self;
}

impl Word for u32 {
    fn bits(self) -> u32 {
        self
    }
    fn from_bits(bits: u32) -> Self {
        bits
    }
    fn down(self, by: u32) -> Self {
        self >> by
    }
    fn mul_high(self, other: Self) -> Self {
        ((u64::from(self) * u64::from(other)) >> 32) as u32
    }
}

impl Word for i32 {
    fn bits(self) -> u32 {
        self.cast_unsigned()
    }
    fn from_bits(bits: u32) -> Self {
        bits.cast_signed()
    }
    fn down(self, by: u32) -> Self {
        self >> by
    }
    fn mul_high(self, other: Self) -> Self {
        ((i64::from(self) * i64::from(other)) >> 32) as i32
    }
}

/// Offset and count as far as there are bits.
fn field(offset: u32, count: u32) -> (u32, u32) {
    let offset = offset.min(32);
    (offset, count.min(32 - offset))
}

/// [`crate::ir::MathFunction::ExtractBits`]
pub fn extract_bits<W: Word>(x: W, offset: u32, count: u32) -> W {
    let (offset, count) = field(offset, count);
    if count == 0 { W::from_bits(0) } else { W::from_bits(x.bits() << (32 - count - offset)).down(32 - count) }
}

/// [`crate::ir::MathFunction::InsertBits`]
pub fn insert_bits<W: Word>(x: W, new: W, offset: u32, count: u32) -> W {
    let (offset, count) = field(offset, count);
    let mask = if count == 0 { 0 } else { (u32::MAX >> (32 - count)) << offset };
    W::from_bits((x.bits() & !mask) | (new.bits().checked_shl(offset).unwrap_or(0) & mask))
}

/// [`crate::ir::MathFunction::Dot4I8`]
pub fn dot4_i8(a: u32, b: u32, c: i32) -> i32 {
    let bytes = |word: u32| word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()));
    bytes(a).iter().zip(bytes(b)).fold(c, |sum, (a, b)| sum.wrapping_add(a * b))
}

/// [`crate::ir::MathFunction::Dot4U8`]
pub fn dot4_u8(a: u32, b: u32, c: u32) -> u32 {
    a.to_le_bytes().iter().zip(b.to_le_bytes()).fold(c, |sum, (a, b)| sum.wrapping_add(u32::from(*a) * u32::from(b)))
}

/// A number as an integer that stands for `x / most`, with a sign or without; `low` is -1 or 0.
fn quantised(x: f32, low: f32, most: f32) -> i32 {
    (x.max(low).min(1.0) * most).round_ties_even() as i32
}

/// [`crate::ir::MathFunction::Pack4x8Snorm`]
pub fn pack4x8snorm(lanes: [f32; 4]) -> u32 {
    pack4xi8(lanes.map(|x| quantised(x, -1.0, 127.0)))
}

/// [`crate::ir::MathFunction::Pack4x8Unorm`]
pub fn pack4x8unorm(lanes: [f32; 4]) -> u32 {
    pack4xi8(lanes.map(|x| quantised(x, 0.0, 255.0)))
}

/// [`crate::ir::MathFunction::Pack4xI8`]
pub fn pack4xi8(lanes: [i32; 4]) -> u32 {
    u32::from_le_bytes(lanes.map(|lane| lane as u8))
}

/// [`crate::ir::MathFunction::Pack4xU8`]
pub fn pack4xu8(lanes: [u32; 4]) -> u32 {
    u32::from_le_bytes(lanes.map(|lane| lane as u8))
}

fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// [`crate::ir::MathFunction::Pack2x16Float`]
pub fn pack2x16float(lanes: [f32; 2]) -> u32 {
    let [low, high] = lanes.map(|x| f16::from_f32(x).to_bits());
    pair(low, high)
}

/// [`crate::ir::MathFunction::Pack2x16Snorm`]
pub fn pack2x16snorm(lanes: [f32; 2]) -> u32 {
    let [low, high] = lanes.map(|x| quantised(x, -1.0, 32767.0) as u16);
    pair(low, high)
}

/// [`crate::ir::MathFunction::Pack2x16Unorm`]
pub fn pack2x16unorm(lanes: [f32; 2]) -> u32 {
    let [low, high] = lanes.map(|x| quantised(x, 0.0, 65535.0) as u16);
    pair(low, high)
}

fn halves(word: u32) -> [u16; 2] {
    [word as u16, (word >> 16) as u16]
}

/// [`crate::ir::MathFunction::Unpack4x8Snorm`]
pub fn unpack4x8snorm(word: u32) -> [f32; 4] {
    unpack4xi8(word).map(|byte| (byte as f32 / 127.0).max(-1.0))
}

/// [`crate::ir::MathFunction::Unpack4x8Unorm`]
pub fn unpack4x8unorm(word: u32) -> [f32; 4] {
    word.to_le_bytes().map(|byte| f32::from(byte) / 255.0)
}

/// [`crate::ir::MathFunction::Unpack4xI8`]
pub fn unpack4xi8(word: u32) -> [i32; 4] {
    word.to_le_bytes().map(|byte| i32::from(byte.cast_signed()))
}

/// [`crate::ir::MathFunction::Unpack4xU8`]
pub fn unpack4xu8(word: u32) -> [u32; 4] {
    word.to_le_bytes().map(u32::from)
}

/// [`crate::ir::MathFunction::Unpack2x16Float`]
pub fn unpack2x16float(word: u32) -> [f32; 2] {
    halves(word).map(|half| f16::from_bits(half).to_f32())
}

/// [`crate::ir::MathFunction::Unpack2x16Snorm`]
pub fn unpack2x16snorm(word: u32) -> [f32; 2] {
    halves(word).map(|half| (f32::from(half.cast_signed()) / 32767.0).max(-1.0))
}

/// [`crate::ir::MathFunction::Unpack2x16Unorm`]
pub fn unpack2x16unorm(word: u32) -> [f32; 2] {
    halves(word).map(|half| f32::from(half) / 65535.0)
}

/// [`crate::ir::MathFunction::Mix`]
pub fn mix(a: f32, b: f32, t: f32) -> f32 {
    a * (1.0 - t) + b * t
}

/// [`crate::ir::MathFunction::Step`]
pub fn step(edge: f32, x: f32) -> f32 {
    if edge <= x { 1.0 } else { 0.0 }
}

/// [`crate::ir::MathFunction::Smoothstep`]
pub fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// [`crate::ir::MathFunction::Dot`]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut products = a.iter().zip(b).map(|(a, b)| a * b);
    let first = products.next().unwrap_or(0.0);
    products.fold(first, |sum, product| sum + product)
}

/// [`crate::ir::MathFunction::Cross`]
pub fn cross(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Inverse hyperbolic sine, by a logarithm that is exact where the result is small.
pub fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let value = if size > 1e8 {
        // The root is the number itself.
        size.ln() + std::f64::consts::LN_2
    } else {
        (size + size * size / (1.0 + size.mul_add(size, 1.0).sqrt())).ln_1p()
    };
    if x.is_nan() { x } else { value.copysign(x) }
}

/// Inverse hyperbolic cosine, by a logarithm that is exact where the result is small; NaN below 1.
pub fn acosh(x: f64) -> f64 {
    let above = x - 1.0;
    if above < 0.0 {
        f64::NAN
    } else if x > 1e8 {
        x.ln() + std::f64::consts::LN_2
    } else {
        (above + (above * (above + 2.0)).sqrt()).ln_1p()
    }
}

/// Inverse hyperbolic tangent, by a logarithm of its size, which does not cancel at -1.
pub fn atanh(x: f64) -> f64 {
    let size = x.abs();
    (0.5 * (2.0 * size / (1.0 - size)).ln_1p()).copysign(x)
}

/// The error function: by its power series where that does not cancel, else by the continued fraction of what it lacks of 1.
pub fn erf(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 1.0 {
        // 2 / sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)), the smallest first.
        let square = size * size;
        let mut sum = 0.0;
        for n in (1..20).rev() {
            let n = f64::from(n);
            // What stands in brackets is the sum from n on, over the power and the factorial of n - 1.
            sum = -square / n * (1.0 / (2.0 * n + 1.0) + sum);
        }
        size.mul_add(SHARE_OF_TWO_ROOTS, size + size * sum * std::f64::consts::FRAC_2_SQRT_PI)
    } else if size < 6.0 {
        // exp(-x^2) / sqrt(pi) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ..)))), the slower the smaller x is.
        let mut denominator = size;
        for n in (1..=(150.0 / (size * size)) as u32 + 40).rev() {
            denominator = size + f64::from(n) / 2.0 / denominator;
        }
        1.0 - (-size * size).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / denominator
    } else {
        1.0
    };
    if x.is_nan() { x } else { value.copysign(x) }
}

/// What 2 / sqrt(pi) is above 1.
const SHARE_OF_TWO_ROOTS: f64 = std::f64::consts::FRAC_2_SQRT_PI - 1.0;
