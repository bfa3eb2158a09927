//! Mathematical functions, as free functions of scalars and vectors, and as methods.
//!
//! On the host they are those of Rust's standard library; on devices they are what the IR's essay says
//! ([`trefoil_codegen::ir`]). The methods of `f32` and of integers are Rust's own; those that Rust lacks are in [`MathExt`]. Each
//! function works on vectors lane by lane.
//!
//! A function whose documentation says how exact it is keeps to that on every device, for `f32`; what devices really give was measured (`docs/src/accuracy.md`). Of `f64` those that take it are exact, or within 4 ulp. The others are exact, or as exact as the few
//! operations that their documentation names.

mod bits;
mod scalar;
mod vectors;

pub use self::scalar::{Elementary, Integer, Lanes, Ordered, Real, Signed};
pub use bits::{
    BitsExt, count_ones, dot4_i8, dot4_u8, extract_bits, insert_bits, leading_zeros, mul_high, pack2x16float,
    pack2x16snorm, pack2x16unorm, pack4x8snorm, pack4x8unorm, pack4xi8, pack4xu8, reverse_bits, rotate_left,
    rotate_right, trailing_zeros, unpack2x16float, unpack2x16snorm, unpack2x16unorm, unpack4x8snorm, unpack4x8unorm,
    unpack4xi8, unpack4xu8,
};
pub use vectors::{Vector, cross, distance, dot, length, normalize, reflect};

use crate::vector::{Lane, Vec2, Vec3, Vec4};
use trefoil_codegen::meaning;

/// The table of functions of `f32`: for each a free function, and a method of vectors.
macro_rules! float_functions {
    ($($(#[$doc:meta])* $name:ident($($other:ident),*) by $lanes:ident = $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<V: Lanes<Scalar = f32>>(x: V, $($other: V),*) -> V {
                x.$lanes($($other,)* $body)
            }
        )*

        float_methods! { Vec2 $($(#[$doc])* $name($($other),*);)* }
        float_methods! { Vec3 $($(#[$doc])* $name($($other),*);)* }
        float_methods! { Vec4 $($(#[$doc])* $name($($other),*);)* }

        #[cfg(test)]
        const FLOAT_FUNCTIONS: &[&str] = &[$(stringify!($name)),*];
    };
}

macro_rules! float_methods {
    ($Vector:ident $($(#[$doc:meta])* $name:ident($($other:ident),*);)*) => {
        impl $Vector<f32> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($other: Self),*) -> Self {
                    $name(self, $($other),*)
                }
            )*
        }
    };
}

float_functions! {
    /// 1 / square root; within 3 ulp on GPUs.
    inverse_sqrt() by map = |x: f32| 1.0 / x.sqrt();
    /// The nearest integer, ties away from zero.
    round() by map = f32::round;
    /// `x - trunc(x)`, with the sign of x: Rust's `fract`, not WGSL's.
    fract() by map = f32::fract;
    /// The size of x with the sign of y.
    copysign(y) by zip = f32::copysign;
    /// Cube root; within 3 ulp.
    cbrt() by map = f32::cbrt;
    /// `sqrt(x * x + y * y)`, which does not overflow on the way; infinite if one is. Within 8 ulp on GPUs.
    hypot(y) by zip = f32::hypot;
    /// From a to b as t goes from 0 to 1: `a * (1 - t) + b * t`.
    mix(b, t) by zip3 = meaning::mix;
    /// 1 where `edge <= x`, else 0; the edge comes first.
    step(x) by zip = meaning::step;
    /// From 0 below `low` to 1 above `high`, smoothly: `t * t * (3 - 2 * t)` with `t = clamp((x - low) / (high - low), 0, 1)`.
    smoothstep(high, x) by zip3 = meaning::smoothstep;
}

/// A table of functions that other floats have too, those of a trait: for each a free function, and a method of vectors.
macro_rules! real_functions {
    ($Scalar:ident, $NAMES:ident; $($(#[$doc:meta])* $name:ident($($other:ident),*) by $lanes:ident = $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<V: Lanes>(x: V, $($other: V),*) -> V
            where
                V::Scalar: $Scalar,
            {
                x.$lanes($($other,)* $body)
            }
        )*

        real_methods! { $Scalar Vec2 $($(#[$doc])* $name($($other),*);)* }
        real_methods! { $Scalar Vec3 $($(#[$doc])* $name($($other),*);)* }
        real_methods! { $Scalar Vec4 $($(#[$doc])* $name($($other),*);)* }

        #[cfg(test)]
        const $NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

macro_rules! real_methods {
    ($Scalar:ident $Vector:ident $($(#[$doc:meta])* $name:ident($($other:ident),*);)*) => {
        impl<T: Lane + $Scalar> $Vector<T> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self, $($other: Self),*) -> Self {
                    $name(self, $($other),*)
                }
            )*
        }
    };
}

real_functions! {
    Real, REAL_FUNCTIONS;
    /// The largest integer not above.
    floor() by map = Real::whole_below;
    /// The smallest integer not below.
    ceil() by map = Real::whole_above;
    /// The nearest integer, ties to even.
    round_ties_even() by map = Real::nearest_whole;
    /// The integer part.
    trunc() by map = Real::whole_part;
    /// Square root; of `f32` within 3 ulp on GPUs.
    sqrt() by map = Real::square_root;
    /// `x * y + z`, rounded once where the target does that.
    mul_add(y, z) by zip3 = Real::times_plus;
}

real_functions! {
    Elementary, ELEMENTARY_FUNCTIONS;
    /// e to the power of x; within `3 + 2 * abs(x)` ulp on GPUs, 2 on the CPU.
    exp() by map = Elementary::exp;
    /// 2 to the power of x; within `3 + 2 * abs(x)` ulp on GPUs, 2 on the CPU.
    exp2() by map = Elementary::exp2;
    /// Natural logarithm; within 3 ulp, on GPUs between 0.5 and 2 within `2^-21` instead.
    ln() by map = Elementary::ln;
    /// Logarithm to base 2; within 3 ulp, on GPUs between 0.5 and 2 within `2^-21` instead.
    log2() by map = Elementary::log2;
    /// Hyperbolic tangent; within 5 ulp.
    tanh() by map = Elementary::tanh;
    /// Hyperbolic sine; within 5 ulp.
    sinh() by map = Elementary::sinh;
    /// Hyperbolic cosine; within 5 ulp.
    cosh() by map = Elementary::cosh;
    /// Inverse hyperbolic sine; within 5 ulp.
    asinh() by map = Elementary::asinh;
    /// Inverse hyperbolic cosine, NaN below 1; within 5 ulp.
    acosh() by map = Elementary::acosh;
    /// Inverse hyperbolic tangent, infinite at 1 and -1, NaN beyond; within 5 ulp.
    atanh() by map = Elementary::atanh;
    /// `exp(x) - 1`, also where x is small; within 4 ulp.
    exp_m1() by map = Elementary::exp_m1;
    /// `ln(1 + x)`, also where x is small; within 4 ulp.
    ln_1p() by map = Elementary::ln_1p;
    /// Logarithm to base 10; within 4 ulp.
    log10() by map = Elementary::log10;
    /// x to the power of y; on GPUs as exact as `exp2(y * log2(x))`.
    powf(y) by zip = Elementary::powf;
    /// Sine of radians; on GPUs within `2^-11` between -π and π, and in practice within a few ulp; within 4 ulp on the CPU.
    sin() by map = Elementary::sin;
    /// Cosine of radians; on GPUs within `2^-11` between -π and π, and in practice within a few ulp; within 4 ulp on the CPU.
    cos() by map = Elementary::cos;
    /// Tangent of radians; as exact as the sine over the cosine.
    tan() by map = Elementary::tan;
    /// Arc tangent; within 4096 ulp on GPUs, 4 on the CPU.
    atan() by map = Elementary::atan;
    /// Arc tangent of the first over the second, in the right quadrant; within 4096 ulp on GPUs, 4 on the CPU. Of two zeros of `f32` it is what the device says.
    atan2(y) by zip = Elementary::atan2;
    /// The error function; within 4 ulp.
    erf() by map = Elementary::erf;
    /// Arc sine; within 4 ulp.
    asin() by map = Elementary::asin;
    /// Arc cosine; within 4 ulp.
    acos() by map = Elementary::acos;
}

/// The smaller; if one is NaN, the other.
pub fn min<V: Lanes>(x: V, y: V) -> V
where
    V::Scalar: Ordered,
{
    x.zip(y, Ordered::smaller)
}

/// The larger; if one is NaN, the other.
pub fn max<V: Lanes>(x: V, y: V) -> V
where
    V::Scalar: Ordered,
{
    x.zip(y, Ordered::larger)
}

/// `min(max(x, low), high)`, and of floats x if x is a NaN, as Rust's method has it. Where that would panic, bounds out of order give `high`, and a NaN is no bound.
pub fn clamp<V: Lanes>(x: V, low: V, high: V) -> V
where
    V::Scalar: Ordered,
{
    x.zip3(low, high, Ordered::between)
}

/// Absolute value, of floats and signed integers; wraps.
pub fn abs<V: Lanes>(x: V) -> V
where
    V::Scalar: Signed,
{
    x.map(Signed::without_sign)
}

/// 1 or -1 with the sign bit of x, NaN for NaN; of signed integers also 0. Kernels have it for `f32` and integers.
pub fn signum<V: Lanes>(x: V) -> V
where
    V::Scalar: Signed,
{
    x.map(Signed::sign)
}

/// Numbers that divide with a remainder.
pub trait Euclid: Copy {
    /// The remainder that is not negative.
    #[doc(hidden)]
    fn remainder(self, other: Self) -> Self;
}

impl Euclid for f32 {
    fn remainder(self, other: f32) -> f32 {
        self.rem_euclid(other)
    }
}

macro_rules! euclid {
    ($($ty:ty),*) => {
        $(impl Euclid for $ty {
            fn remainder(self, other: $ty) -> $ty {
                if other == 0 { 0 } else { self.wrapping_rem_euclid(other) }
            }
        })*
    };
}

euclid!(i32, u32, usize);

/// The remainder that is not negative, as Rust's `rem_euclid`; of integers, by 0 it is 0.
pub fn rem_euclid<V: Lanes>(x: V, y: V) -> V
where
    V::Scalar: Euclid,
{
    x.zip(y, Euclid::remainder)
}

macro_rules! ordered_methods {
    ($($Vector:ident),*) => {
        $(
            impl<T: Lane + Ordered> $Vector<T> {
                /// The smaller of each lane; if one is NaN, the other.
                #[must_use]
                pub fn min(self, other: Self) -> Self {
                    min(self, other)
                }

                /// The larger of each lane; if one is NaN, the other.
                #[must_use]
                pub fn max(self, other: Self) -> Self {
                    max(self, other)
                }

                /// `min(max(x, low), high)` of each lane; a NaN stays.
                #[must_use]
                pub fn clamp(self, low: Self, high: Self) -> Self {
                    clamp(self, low, high)
                }
            }

            impl<T: Lane + Euclid> $Vector<T> {
                /// The remainder that is not negative, of each lane.
                #[must_use]
                pub fn rem_euclid(self, other: Self) -> Self {
                    rem_euclid(self, other)
                }
            }

            impl<T: Lane + Signed> $Vector<T> {
                /// Absolute value of each lane.
                #[must_use]
                pub fn abs(self) -> Self {
                    abs(self)
                }

                /// The sign of each lane.
                #[must_use]
                pub fn signum(self) -> Self {
                    signum(self)
                }
            }
        )*
    };
}

ordered_methods!(Vec2, Vec3, Vec4);

/// Whether x is a NaN, by its bits.
pub fn is_nan<T: Real>(x: T) -> bool {
    x.nan()
}

/// Whether x is infinite, by its bits.
pub fn is_infinite<T: Real>(x: T) -> bool {
    x.infinite()
}

/// Methods that Rust's `f32` lacks.
pub trait MathExt {
    /// 1 / square root.
    #[must_use]
    fn inverse_sqrt(self) -> Self;
    /// [`mix`]
    #[must_use]
    fn mix(self, b: Self, t: Self) -> Self;
    /// [`step`] at this edge.
    #[must_use]
    fn step(self, x: Self) -> Self;
    /// [`smoothstep`] from this number on.
    #[must_use]
    fn smoothstep(self, high: Self, x: Self) -> Self;
}

impl MathExt for f32 {
    fn inverse_sqrt(self) -> f32 {
        inverse_sqrt(self)
    }

    fn mix(self, b: f32, t: f32) -> f32 {
        meaning::mix(self, b, t)
    }

    fn step(self, x: f32) -> f32 {
        meaning::step(self, x)
    }

    fn smoothstep(self, high: f32, x: f32) -> f32 {
        meaning::smoothstep(self, high, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};
    use trefoil_codegen::ir::MathFunction;

    /// The functions that are written out by hand above.
    const OTHERS: &[&str] = &[
        "min",
        "max",
        "clamp",
        "abs",
        "signum",
        "dot",
        "is_nan",
        "is_infinite",
        "count_ones",
        "leading_zeros",
        "trailing_zeros",
        "rem_euclid",
        "length",
        "distance",
        "normalize",
        "cross",
        "reflect",
        "reverse_bits",
        "rotate_left",
        "rotate_right",
        "extract_bits",
        "insert_bits",
        "mul_high",
        "dot4_i8",
        "dot4_u8",
    ];

    #[test]
    fn every_function_of_the_ir_is_here_and_no_other() {
        let mut here: Vec<&str> = FLOAT_FUNCTIONS
            .iter()
            .chain(REAL_FUNCTIONS)
            .chain(ELEMENTARY_FUNCTIONS)
            .chain(OTHERS)
            .chain(bits::PACKS)
            .copied()
            .collect();
        let mut there: Vec<&str> = MathFunction::ALL.iter().map(|f| f.name()).collect();
        // What lowering alone uses has a name that nobody can write.
        there.retain(|name| !name.contains(' '));
        here.sort_unstable();
        there.sort_unstable();
        assert_eq!(here, there);
    }

    #[test]
    fn erf_has_its_known_values() {
        // Abramowitz and Stegun, table 7.1.
        for (x, y) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_8),
            (1.0, 0.842_700_792_9),
            (2.0, 0.995_322_265_0),
            (2.9, 0.999_958_902_1),
            (3.1, 0.999_988_351_3),
        ] {
            assert!((f64::from(erf(x as f32)) - y).abs() < 1e-7, "erf({x})");
            assert_eq!(erf(-x as f32), -erf(x as f32));
        }
        assert_eq!(Elementary::erf(f32::INFINITY), 1.0);
        assert!(Elementary::erf(f32::NAN).is_nan());
    }

    #[test]
    fn scalars_and_vectors_take_the_same_functions() {
        assert_eq!(max(f32::NAN, 1.0), 1.0);
        assert_eq!(clamp(5u32, 1, 3), 3);
        assert_eq!(clamp(5u32, 3, 1), 1);
        assert_eq!(max(Vec2::new(1, 5), Vec2::new(3, 2)), Vec2::new(3, 5));
        assert_eq!(abs(i32::MIN), i32::MIN);
        assert_eq!(sqrt(Vec2::new(4.0, 9.0)), Vec2::new(2.0, 3.0));
        assert_eq!(Vec2::new(4.0f32, 16.0).inverse_sqrt(), Vec2::new(0.5, 0.25));
        assert_eq!(dot(Vec2::new(1u32, 2), Vec2::new(3, 4)), 11);
        assert_eq!(leading_zeros(0usize), 32);
    }

    #[test]
    fn clamp_keeps_a_nan_and_takes_any_bounds() {
        assert!(clamp(f32::NAN, 0.0, 1.0).is_nan());
        assert!(clamp(f64::NAN, f64::NAN, 1.0).is_nan());
        assert!(clamp(f16::NAN, f16::ZERO, f16::ONE).is_nan());
        assert!(clamp(bf16::NAN, bf16::ZERO, bf16::ONE).is_nan());
        let lanes = Vec3::new(f32::NAN, -1.0, 7.0).clamp(Vec3::splat(0.0), Vec3::splat(5.0));
        assert!(lanes.x.is_nan());
        assert_eq!((lanes.y, lanes.z), (0.0, 5.0));
        assert_eq!(clamp(-2.0f32, f32::NAN, 1.0), -2.0);
        assert_eq!(clamp(7.0f32, 0.0, f32::NAN), 7.0);
        assert_eq!(clamp(2.0f32, 3.0, 1.0), 1.0);
    }
}
