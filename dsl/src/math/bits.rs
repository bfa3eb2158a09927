//! Integers as bits: fields, rotations, wide products, and several small numbers in a word.

use super::{Integer, Lanes};
use crate::vector::{Lane, Vec2, Vec3, Vec4};
use trefoil_codegen::meaning::{self, Word};

/// Bits set.
///
/// The counts of a `usize` are of 32 bits, and of 64 in kernels whose indices have as many; on the host they are of 32.
pub fn count_ones<I: Integer>(x: I) -> u32 {
    x.bits()[0]
}

/// Zeros above the highest set bit; 32 for 0. Of a `usize` as [`count_ones`] says.
pub fn leading_zeros<I: Integer>(x: I) -> u32 {
    x.bits()[1]
}

/// Zeros below the lowest set bit; 32 for 0. Of a `usize` as [`count_ones`] says.
pub fn trailing_zeros<I: Integer>(x: I) -> u32 {
    x.bits()[2]
}

macro_rules! word_functions {
    ($($(#[$doc:meta])* $name:ident($($other:ident: $ty:ident),*) = $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<V: Lanes>(x: V, $($other: word_functions!(@free $ty)),*) -> V
            where
                V::Scalar: Word,
            {
                $body(x, $($other),*)
            }
        )*

        word_functions! { @methods Vec2 $($(#[$doc])* $name($($other: $ty),*);)* }
        word_functions! { @methods Vec3 $($(#[$doc])* $name($($other: $ty),*);)* }
        word_functions! { @methods Vec4 $($(#[$doc])* $name($($other: $ty),*);)* }
    };
    (@free same) => { V };
    (@free amount) => { u32 };
    (@method same) => { Self };
    (@method amount) => { u32 };
    (@methods $Vector:ident $($(#[$doc:meta])* $name:ident($($other:ident: $ty:ident),*);)*) => {
        impl<T: Lane + Word> $Vector<T> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($other: word_functions!(@method $ty)),*) -> Self {
                    $name(self, $($other),*)
                }
            )*
        }
    };
}

word_functions! {
    /// The bits in the opposite order, of `u32` and `i32`.
    reverse_bits() = |x: V| x.map(|lane| V::Scalar::from_bits(lane.bits().reverse_bits()));
    /// Bits moved up by `amount` modulo 32; those that leave come in below.
    rotate_left(amount: amount) = |x: V, amount: u32| x.map(|lane| V::Scalar::from_bits(lane.bits().rotate_left(amount % 32)));
    /// Bits moved down by `amount` modulo 32; those that leave come in above.
    rotate_right(amount: amount) = |x: V, amount: u32| x.map(|lane| V::Scalar::from_bits(lane.bits().rotate_right(amount % 32)));
    /// `count` bits of x from bit `offset` on; of `i32` the highest of them is the sign. Offset and count are taken as far as there are bits, and no bits
    /// are 0.
    ///
    /// ```
    /// use trefoil_dsl::prelude::*;
    /// assert_eq!(extract_bits(0xabcd_1234u32, 16, 8), 0xcd);
    /// assert_eq!(extract_bits(0xf0, 4, 4), -1);
    /// ```
    extract_bits(offset: amount, count: amount) = |x: V, offset: u32, count: u32| x.map(|lane| meaning::extract_bits(lane, offset, count));
    /// x with `count` bits from bit `offset` on replaced by the low bits of `new`.
    ///
    /// ```
    /// use trefoil_dsl::prelude::*;
    /// assert_eq!(insert_bits(0xffff_ffffu32, 0x12, 8, 8), 0xffff_12ff);
    /// ```
    insert_bits(new: same, offset: amount, count: amount) = |x: V, new: V, offset: u32, count: u32| x.zip(new, |x, new| meaning::insert_bits(x, new, offset, count));
    /// The upper 32 bits of the product of 64.
    mul_high(other: same) = |x: V, other: V| x.zip(other, Word::mul_high);
}

/// Methods that Rust's `u32` and `i32` lack.
pub trait BitsExt {
    /// [`extract_bits`]
    #[must_use]
    fn extract_bits(self, offset: u32, count: u32) -> Self;
    /// [`insert_bits`]
    #[must_use]
    fn insert_bits(self, new: Self, offset: u32, count: u32) -> Self;
    /// [`mul_high`]
    #[must_use]
    fn mul_high(self, other: Self) -> Self;
}

macro_rules! bits_ext {
    ($($ty:ty),*) => {
        $(impl BitsExt for $ty {
            fn extract_bits(self, offset: u32, count: u32) -> Self {
                meaning::extract_bits(self, offset, count)
            }
            fn insert_bits(self, new: Self, offset: u32, count: u32) -> Self {
                meaning::insert_bits(self, new, offset, count)
            }
            fn mul_high(self, other: Self) -> Self {
                Word::mul_high(self, other)
            }
        })*
    };
}

bits_ext!(u32, i32);

/// The sum of c and the products of the four signed bytes of a and b; wraps.
///
/// ```
/// use trefoil_dsl::prelude::*;
/// let a = pack4xi8(Vec4::new(1, -2, 3, 4));
/// let b = pack4xi8(Vec4::new(10, 10, -10, 1));
/// assert_eq!(dot4_i8(a, b, 100), 100 + 10 - 20 - 30 + 4);
/// ```
pub fn dot4_i8(a: u32, b: u32, c: i32) -> i32 {
    meaning::dot4_i8(a, b, c)
}

/// The sum of c and the products of the four bytes of a and b; wraps.
pub fn dot4_u8(a: u32, b: u32, c: u32) -> u32 {
    meaning::dot4_u8(a, b, c)
}

macro_rules! packs {
    ($($(#[$doc:meta])* $pack:ident $(#[$back:meta])* $unpack:ident of $Vector:ident<$ty:ty>;)*) => {
        $(
            $(#[$doc])*
            pub fn $pack(lanes: $Vector<$ty>) -> u32 {
                meaning::$pack(lanes.to_array())
            }

            $(#[$back])*
            pub fn $unpack(word: u32) -> $Vector<$ty> {
                $Vector::from_array(meaning::$unpack(word))
            }
        )*

        #[cfg(test)]
        pub(super) const PACKS: &[&str] = &[$(stringify!($pack), stringify!($unpack)),*];
    };
}

packs! {
    /// Four numbers from -1 to 1 as signed bytes, lane 0 lowest: `round_ties_even(min(max(x, -1), 1) * 127)`. A NaN is -127.
    pack4x8snorm
    /// `max(b / 127, -1)` of each signed byte, within 3 ulp on GPUs.
    unpack4x8snorm of Vec4<f32>;
    /// Four numbers from 0 to 1 as bytes, lane 0 lowest: `round_ties_even(min(max(x, 0), 1) * 255)`. A NaN is 0.
    pack4x8unorm
    /// `b / 255` of each byte, within 3 ulp on GPUs.
    unpack4x8unorm of Vec4<f32>;
    /// The low bytes of four lanes, lane 0 lowest.
    pack4xi8
    /// The four bytes with their sign, the lowest in lane 0.
    unpack4xi8 of Vec4<i32>;
    /// The low bytes of four lanes, lane 0 lowest.
    pack4xu8
    /// The four bytes, the lowest in lane 0.
    unpack4xu8 of Vec4<u32>;
    /// The halves nearest to two numbers, lane 0 in the low 16 bits.
    pack2x16float
    /// The two halves of a word, exactly.
    unpack2x16float of Vec2<f32>;
    /// Two numbers from -1 to 1 as signed integers of 16 bits: `round_ties_even(min(max(x, -1), 1) * 32767)`. A NaN is -32767.
    pack2x16snorm
    /// `max(b / 32767, -1)` of each signed half word, within 3 ulp on GPUs.
    unpack2x16snorm of Vec2<f32>;
    /// Two numbers from 0 to 1 as integers of 16 bits: `round_ties_even(min(max(x, 0), 1) * 65535)`. A NaN is 0.
    pack2x16unorm
    /// `b / 65535` of each half word, within 3 ulp on GPUs.
    unpack2x16unorm of Vec2<f32>;
}
