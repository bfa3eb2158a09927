//! What the functions ask of scalars: lanes, order, signs, bits, and the rounding that all floats have.

use half::{bf16, f16};
use trefoil_codegen::meaning;

/// Scalars and vectors, seen as one or more lanes.
pub trait Lanes: Copy {
    /// What a lane is.
    type Scalar: Copy;
    /// `f` of every lane.
    #[must_use]
    fn map(self, f: impl Fn(Self::Scalar) -> Self::Scalar) -> Self;
    /// `f` of the lanes of two.
    #[must_use]
    fn zip(self, b: Self, f: impl Fn(Self::Scalar, Self::Scalar) -> Self::Scalar) -> Self;
    /// `f` of the lanes of three.
    #[must_use]
    fn zip3(self, b: Self, c: Self, f: impl Fn(Self::Scalar, Self::Scalar, Self::Scalar) -> Self::Scalar) -> Self;
}

/// Scalars with an order: with a smaller and a larger one of two, and with what lies between two bounds.
pub trait Ordered: Copy {
    /// The smaller; if one is NaN, the other.
    #[doc(hidden)]
    fn smaller(self, other: Self) -> Self;
    /// The larger; if one is NaN, the other.
    #[doc(hidden)]
    fn larger(self, other: Self) -> Self;
    /// `high` above it, else `low` below it. No comparison holds with a NaN: it stays, and is no bound.
    #[doc(hidden)]
    fn between(self, low: Self, high: Self) -> Self;
}

/// Scalars with a sign.
pub trait Signed: Copy {
    /// Without its sign; integers wrap.
    #[doc(hidden)]
    fn without_sign(self) -> Self;
    /// Its sign as a number.
    #[doc(hidden)]
    fn sign(self) -> Self;
}

impl Signed for f64 {
    fn without_sign(self) -> f64 {
        self.abs()
    }
    fn sign(self) -> f64 {
        self.signum()
    }
}

macro_rules! halves {
    ($($ty:ty),*) => {
        $(
            impl Signed for $ty {
                fn without_sign(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().abs())
                }
                fn sign(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().signum())
                }
            }

            impl Real for $ty {
                fn nan(self) -> bool {
                    self.is_nan()
                }
                fn infinite(self) -> bool {
                    self.is_infinite()
                }
                fn whole_below(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().floor())
                }
                fn whole_above(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().ceil())
                }
                fn nearest_whole(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().round_ties_even())
                }
                fn whole_part(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().trunc())
                }
                fn square_root(self) -> $ty {
                    <$ty>::from_f32(self.to_f32().sqrt())
                }
                fn times_plus(self, y: $ty, z: $ty) -> $ty {
                    <$ty>::from_f32(self.to_f32().mul_add(y.to_f32(), z.to_f32()))
                }
            }
        )*
    };
}

halves!(f16, bf16);

/// Floats, as far as every target computes with them alike.
pub trait Real: Copy {
    /// Whether it is a NaN.
    #[doc(hidden)]
    fn nan(self) -> bool;
    /// Whether it is infinite.
    #[doc(hidden)]
    fn infinite(self) -> bool;
    #[doc(hidden)]
    fn whole_below(self) -> Self;
    #[doc(hidden)]
    fn whole_above(self) -> Self;
    #[doc(hidden)]
    fn nearest_whole(self) -> Self;
    #[doc(hidden)]
    fn whole_part(self) -> Self;
    #[doc(hidden)]
    fn square_root(self) -> Self;
    #[doc(hidden)]
    fn times_plus(self, y: Self, z: Self) -> Self;
}

macro_rules! reals {
    ($($ty:ty),*) => {
        $(impl Real for $ty {
            fn nan(self) -> bool {
                self.is_nan()
            }
            fn infinite(self) -> bool {
                self.is_infinite()
            }
            fn whole_below(self) -> $ty {
                self.floor()
            }
            fn whole_above(self) -> $ty {
                self.ceil()
            }
            fn nearest_whole(self) -> $ty {
                self.round_ties_even()
            }
            fn whole_part(self) -> $ty {
                self.trunc()
            }
            fn square_root(self) -> $ty {
                self.sqrt()
            }
            fn times_plus(self, y: $ty, z: $ty) -> $ty {
                self.mul_add(y, z)
            }
        })*
    };
}

reals!(f32, f64);

macro_rules! elementary {
    ($($name:ident($($other:ident)?))*) => {
        /// Floats with powers, exponentials, logarithms, functions of angles and hyperbolic functions: `f32` and `f64`.
        pub trait Elementary: Copy {
            $(
                #[doc(hidden)]
                #[must_use]
                fn $name(self $(, $other: Self)?) -> Self;
            )*
            /// The error function.
            #[must_use]
            fn erf(self) -> Self;
        }

        impl Elementary for f32 {
            $(
                fn $name(self $(, $other: f32)?) -> f32 {
                    self.$name($($other)?)
                }
            )*
            fn erf(self) -> f32 {
                meaning::erf(f64::from(self)) as f32
            }
        }

        impl Elementary for f64 {
            $(
                fn $name(self $(, $other: f64)?) -> f64 {
                    self.$name($($other)?)
                }
            )*
            fn erf(self) -> f64 {
                meaning::erf(self)
            }
        }
    };
}

elementary! {
    exp() exp2() exp_m1() ln() log2() log10() ln_1p() sinh() cosh() tanh() asinh() acosh() atanh()
    powf(y) sin() cos() tan() asin() acos() atan() atan2(x)
}

/// Integers, as bits.
pub trait Integer: Copy {
    /// How many are set, how many before the highest set one, and how many below the lowest.
    #[doc(hidden)]
    fn bits(self) -> [u32; 3];
}

macro_rules! scalars {
    ($($ty:ty),*) => {
        $(impl Lanes for $ty {
            type Scalar = $ty;
            fn map(self, f: impl Fn($ty) -> $ty) -> $ty {
                f(self)
            }
            fn zip(self, b: $ty, f: impl Fn($ty, $ty) -> $ty) -> $ty {
                f(self, b)
            }
            fn zip3(self, b: $ty, c: $ty, f: impl Fn($ty, $ty, $ty) -> $ty) -> $ty {
                f(self, b, c)
            }
        })*
    };
}

scalars!(f32, i32, u32, usize, f16, bf16, i8, u8, i16, u16, f64, i64, u64);

macro_rules! ordered {
    ($($ty:ty),*) => {
        $(impl Ordered for $ty {
            fn smaller(self, other: $ty) -> $ty {
                self.min(other)
            }
            fn larger(self, other: $ty) -> $ty {
                self.max(other)
            }
            fn between(self, low: $ty, high: $ty) -> $ty {
                let above = if self < low { low } else { self };
                if above > high { high } else { above }
            }
        })*
    };
}

ordered!(f32, i32, u32, usize, f16, bf16, i8, u8, i16, u16, f64, i64, u64);

impl Signed for f32 {
    fn without_sign(self) -> f32 {
        self.abs()
    }
    fn sign(self) -> f32 {
        self.signum()
    }
}

macro_rules! signed_integers {
    ($($ty:ty),*) => {
        $(impl Signed for $ty {
            fn without_sign(self) -> $ty {
                self.wrapping_abs()
            }
            fn sign(self) -> $ty {
                self.signum()
            }
        })*
    };
}

signed_integers!(i8, i16, i32, i64);

macro_rules! integers {
    ($($ty:ty => $bits:ty),*) => {
        $(impl Integer for $ty {
            fn bits(self) -> [u32; 3] {
                let bits = self as $bits;
                [bits.count_ones(), bits.leading_zeros(), bits.trailing_zeros()]
            }
        })*
    };
}

// Kernels hold a usize in 32 bits, but for those that say otherwise, which the host does not hear of.
integers!(i8 => u8, u8 => u8, i16 => u16, u16 => u16, i32 => u32, u32 => u32, i64 => u64, u64 => u64, usize => u32);
