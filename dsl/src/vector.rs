//! Vectors of 2, 3 and 4 lanes.
//!
//! Their memory is that of the same numbers one after the other. [`Vec2`] and [`Vec4`] are aligned to their size, [`Vec3`] to its
//! scalar, on the host and on every device, which the assertions at the end of this file hold.

use std::fmt;
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Index, IndexMut,
    Mul, MulAssign, Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

use half::{bf16, f16};

use crate::element::{Element, Float};
use crate::math::Lanes;

/// A type that vectors can have as lanes. It knows how vectors of it are aligned.
pub trait Lane: Copy + 'static {
    /// Aligned as two lanes are.
    #[doc(hidden)]
    type Pair: Alignment;
    /// Aligned as four lanes are.
    #[doc(hidden)]
    type Quad: Alignment;
}

/// A type of no bytes that has an alignment.
#[doc(hidden)]
pub trait Alignment: Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {}

macro_rules! alignments {
    ($($name:ident = $bytes:literal;)*) => {
        $(
            #[doc(hidden)]
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            #[repr(align($bytes))]
            pub struct $name;
            impl Alignment for $name {}
        )*
    };
}

alignments! {
    Align1 = 1;
    Align2 = 2;
    Align4 = 4;
    Align8 = 8;
    Align16 = 16;
    Align32 = 32;
}

macro_rules! lanes {
    ($($ty:ty: $pair:ident, $quad:ident;)*) => {
        $(impl Lane for $ty {
            type Pair = $pair;
            type Quad = $quad;
        })*
    };
}

lanes! {
    f32: Align8, Align16;
    i32: Align8, Align16;
    u32: Align8, Align16;
    f16: Align4, Align8;
    bf16: Align4, Align8;
    i16: Align4, Align8;
    u16: Align4, Align8;
    i8: Align2, Align4;
    u8: Align2, Align4;
    f64: Align16, Align32;
    i64: Align16, Align32;
    u64: Align16, Align32;
    usize: Align16, Align32;
}

/// No alignment beyond a scalar's: what [`Vec3`] has.
type ScalarAligned<T> = std::marker::PhantomData<T>;
/// Aligned to two lanes.
type PairAligned<T> = [<T as Lane>::Pair; 0];
/// Aligned to four lanes.
type QuadAligned<T> = [<T as Lane>::Quad; 0];

macro_rules! scalar_on_the_left {
    ($Vector:ident $scalar:ty: $($Operator:ident $method:ident,)*) => {
        $(impl $Operator<$Vector<$scalar>> for $scalar {
            type Output = $Vector<$scalar>;
            fn $method(self, other: $Vector<$scalar>) -> $Vector<$scalar> {
                Lanes::map(other, |lane| $Operator::$method(self, lane))
            }
        })*
    };
}

macro_rules! operators {
    ($Vector:ident $($Operator:ident $method:ident $Assign:ident $assign:ident,)*) => {
        $(
            impl<T: Lane + $Operator<Output = T>> $Operator for $Vector<T> {
                type Output = Self;
                fn $method(self, other: Self) -> Self {
                    Lanes::zip(self, other, $Operator::$method)
                }
            }

            impl<T: Lane + $Operator<Output = T>> $Operator<T> for $Vector<T> {
                type Output = Self;
                fn $method(self, other: T) -> Self {
                    Lanes::map(self, |lane| $Operator::$method(lane, other))
                }
            }

            impl<T: Lane + $Operator<Output = T>> $Assign for $Vector<T> {
                fn $assign(&mut self, other: Self) {
                    *self = $Operator::$method(*self, other);
                }
            }

            impl<T: Lane + $Operator<Output = T>> $Assign<T> for $Vector<T> {
                fn $assign(&mut self, other: T) {
                    *self = $Operator::$method(*self, other);
                }
            }
        )*
    };
}

macro_rules! vector {
    ($(#[$doc:meta])* $Vector:ident, $count:literal, $Aligned:ident, { $($lane:ident = $index:literal),+ }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Default, PartialEq)]
        pub struct $Vector<T: Lane> {
            aligned: $Aligned<T>,
            $(
                #[doc = concat!("Lane ", stringify!($index), ".")]
                pub $lane: T,
            )+
        }

        impl<T: Lane + fmt::Debug> fmt::Debug for $Vector<T> {
            /// The lanes: `Vec2(1.0, 2.0)`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($Vector))$(.field(&self.$lane))+.finish()
            }
        }

        impl<T: Lane> $Vector<T> {
            /// A vector of these lanes.
            // A constructor that names each lane takes as many arguments as there are lanes.
            pub const fn new($($lane: T),+) -> Self {
                Self { aligned: $Aligned::<T>::NONE, $($lane),+ }
            }

            /// A vector whose lanes are all `value`.
            pub const fn splat(value: T) -> Self {
                Self { aligned: $Aligned::<T>::NONE, $($lane: value),+ }
            }

            /// The lanes as an array.
            pub const fn to_array(self) -> [T; $count] {
                [$(self.$lane),+]
            }

            /// A vector of an array's elements.
            pub const fn from_array(lanes: [T; $count]) -> Self {
                Self { aligned: $Aligned::<T>::NONE, $($lane: lanes[$index]),+ }
            }

            /// The sum of the products of lanes.
            pub fn dot(self, other: Self) -> T
            where
                T: Mul<Output = T> + Add<Output = T>,
            {
                let products = [$(self.$lane * other.$lane),+];
                let mut sum = products[0];
                for product in &products[1..] {
                    sum = sum + *product;
                }
                sum
            }
        }

        impl<T: Float> $Vector<T> {
            /// Every lane as `f32`.
            pub fn to_f32(self) -> $Vector<f32> {
                $Vector::new($(self.$lane.to_f32()),+)
            }

            /// Every lane converted from `f32`.
            pub fn from_f32(value: $Vector<f32>) -> Self {
                Self::new($(T::from_f32(value.$lane)),+)
            }
        }

        impl<T: Lane> crate::math::Lanes for $Vector<T> {
            type Scalar = T;
            fn map(self, f: impl Fn(T) -> T) -> Self {
                Self::new($(f(self.$lane)),+)
            }
            fn zip(self, b: Self, f: impl Fn(T, T) -> T) -> Self {
                Self::new($(f(self.$lane, b.$lane)),+)
            }
            fn zip3(self, b: Self, c: Self, f: impl Fn(T, T, T) -> T) -> Self {
                Self::new($(f(self.$lane, b.$lane, c.$lane)),+)
            }
        }

        impl<T: Lane> From<[T; $count]> for $Vector<T> {
            fn from(lanes: [T; $count]) -> Self {
                Self::from_array(lanes)
            }
        }

        impl<T: Lane> From<$Vector<T>> for [T; $count] {
            fn from(vector: $Vector<T>) -> Self {
                vector.to_array()
            }
        }

        impl<T: Lane> Index<usize> for $Vector<T> {
            type Output = T;
            fn index(&self, index: usize) -> &T {
                [$(&self.$lane),+][index]
            }
        }

        impl<T: Lane> IndexMut<usize> for $Vector<T> {
            fn index_mut(&mut self, index: usize) -> &mut T {
                match index {
                    $($index => &mut self.$lane,)+
                    _ => panic!("lane {index} of a vector of {}", $count),
                }
            }
        }

        operators! { $Vector
            Add add AddAssign add_assign,
            Sub sub SubAssign sub_assign,
            Mul mul MulAssign mul_assign,
            Div div DivAssign div_assign,
            Rem rem RemAssign rem_assign,
            BitAnd bitand BitAndAssign bitand_assign,
            BitOr bitor BitOrAssign bitor_assign,
            BitXor bitxor BitXorAssign bitxor_assign,
        }

        scalar_on_the_left! { $Vector f32: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector i32: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector u32: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector usize: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector f16: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector bf16: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector i8: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector u8: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector i16: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector u16: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector f64: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector i64: Add add, Sub sub, Mul mul, Div div, Rem rem, }
        scalar_on_the_left! { $Vector u64: Add add, Sub sub, Mul mul, Div div, Rem rem, }

        impl<T: Lane + Shl<u32, Output = T>> Shl<u32> for $Vector<T> {
            type Output = Self;
            fn shl(self, amount: u32) -> Self {
                Self::new($(self.$lane << amount),+)
            }
        }

        impl<T: Lane + Shr<u32, Output = T>> Shr<u32> for $Vector<T> {
            type Output = Self;
            fn shr(self, amount: u32) -> Self {
                Self::new($(self.$lane >> amount),+)
            }
        }

        impl<T: Lane + Shl<u32, Output = T>> Shl<$Vector<u32>> for $Vector<T> {
            type Output = Self;
            fn shl(self, amounts: $Vector<u32>) -> Self {
                Self::new($(self.$lane << amounts.$lane),+)
            }
        }

        impl<T: Lane + Shr<u32, Output = T>> Shr<$Vector<u32>> for $Vector<T> {
            type Output = Self;
            fn shr(self, amounts: $Vector<u32>) -> Self {
                Self::new($(self.$lane >> amounts.$lane),+)
            }
        }

        impl<T: Lane + Shl<u32, Output = T>> ShlAssign<$Vector<u32>> for $Vector<T> {
            fn shl_assign(&mut self, amounts: $Vector<u32>) {
                *self = *self << amounts;
            }
        }

        impl<T: Lane + Shr<u32, Output = T>> ShrAssign<$Vector<u32>> for $Vector<T> {
            fn shr_assign(&mut self, amounts: $Vector<u32>) {
                *self = *self >> amounts;
            }
        }

        impl<T: Lane + Shl<u32, Output = T>> ShlAssign<u32> for $Vector<T> {
            fn shl_assign(&mut self, amount: u32) {
                *self = *self << amount;
            }
        }

        impl<T: Lane + Shr<u32, Output = T>> ShrAssign<u32> for $Vector<T> {
            fn shr_assign(&mut self, amount: u32) {
                *self = *self >> amount;
            }
        }

        impl<T: Lane + Neg<Output = T>> Neg for $Vector<T> {
            type Output = Self;
            fn neg(self) -> Self {
                Self::new($(-self.$lane),+)
            }
        }

        impl<T: Lane + Not<Output = T>> Not for $Vector<T> {
            type Output = Self;
            fn not(self) -> Self {
                Self::new($(!self.$lane),+)
            }
        }

        impl<T: Lane> Lane for $Vector<T> {
            type Pair = Align1;
            type Quad = Align1;
        }

        // SAFETY: all lanes zero is a value, since it is one of `T`; the alignment field has no bytes.
        unsafe impl<T: Lane + bytemuck::Zeroable> bytemuck::Zeroable for $Vector<T> {}
    };
}

/// The value of an alignment field.
trait Nothing {
    /// It.
    const NONE: Self;
}

impl<T> Nothing for std::marker::PhantomData<T> {
    const NONE: Self = Self;
}

impl<A: Alignment> Nothing for [A; 0] {
    const NONE: Self = [];
}

vector! {
    /// Two lanes, aligned to their size.
    Vec2, 2, PairAligned, { x = 0, y = 1 }
}
vector! {
    /// Three lanes, aligned to one lane: 12 bytes for 32-bit lanes.
    Vec3, 3, ScalarAligned, { x = 0, y = 1, z = 2 }
}
vector! {
    /// Four lanes, aligned to their size.
    Vec4, 4, QuadAligned, { x = 0, y = 1, z = 2, w = 3 }
}

macro_rules! elements {
    ($($scalar:ty),*) => {
        $(
            // SAFETY: the lanes are plain data without bytes between or after them, as the assertions below hold.
            unsafe impl bytemuck::Pod for Vec2<$scalar> {}
            // SAFETY: as above.
            unsafe impl bytemuck::Pod for Vec3<$scalar> {}
            // SAFETY: as above.
            unsafe impl bytemuck::Pod for Vec4<$scalar> {}
            impl Element for Vec2<$scalar> {}
            impl Element for Vec3<$scalar> {}
            impl Element for Vec4<$scalar> {}

            const _: () = {
                assert!(size_of::<Vec2<$scalar>>() == 2 * size_of::<$scalar>());
                assert!(size_of::<Vec3<$scalar>>() == 3 * size_of::<$scalar>());
                assert!(size_of::<Vec4<$scalar>>() == 4 * size_of::<$scalar>());
                assert!(align_of::<Vec2<$scalar>>() == 2 * size_of::<$scalar>());
                assert!(align_of::<Vec3<$scalar>>() == size_of::<$scalar>());
                assert!(align_of::<Vec4<$scalar>>() == 4 * size_of::<$scalar>());
            };
        )*
    };
}

elements!(f32, i32, u32, f16, bf16, i8, u8, i16, u16, f64, i64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_work_lane_by_lane_and_with_scalars_on_either_side() {
        let v = Vec3::new(1.0f32, 2.0, 4.0);
        assert_eq!(v + v, Vec3::new(2.0, 4.0, 8.0));
        assert_eq!(8.0 / v, Vec3::new(8.0, 4.0, 2.0));
        assert_eq!(v * 0.5, Vec3::new(0.5, 1.0, 2.0));
        assert_eq!(-v, Vec3::new(-1.0, -2.0, -4.0));
        assert_eq!(v.dot(v), 21.0);
        let mut w = Vec4::new(1u32, 2, 3, 4);
        w <<= 1;
        w |= 1;
        w[3] = 0;
        assert_eq!(w.to_array(), [3, 5, 7, 0]);
        assert_eq!(!Vec2::splat(0u32), Vec2::splat(u32::MAX));
        w.y += 10;
        assert_eq!(w[1], 15);
    }

    #[test]
    fn halves_convert_both_ways() {
        let v = Vec2::<f16>::from_f32(Vec2::new(0.5, 65536.0));
        assert_eq!(v.to_f32(), Vec2::new(0.5, f32::INFINITY));
        assert_eq!(Vec4::from_f32(Vec4::splat(1.5f32)), Vec4::splat(1.5f32));
    }

    #[test]
    fn memory_is_that_of_the_numbers() {
        let data = [Vec3::new(1.0f32, 2.0, 3.0), Vec3::new(4.0, 5.0, 6.0)];
        assert_eq!(bytemuck::cast_slice::<_, f32>(&data), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
