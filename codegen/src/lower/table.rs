//! Which operations mean on each target what the IR's essay says when they are printed in the target's plain form: the one table.
//!
//! What is not native is replaced: mathematical functions, integer division and conversions by calls of functions of the
//! [`super::library`], shifts by ones whose amount is masked.

use crate::ir::{MathFunction, Scalar, SubgroupOperator};
use crate::target::{Feature, Profile, Target};

/// Whether a function of the mathematical library, applied to values of that scalar, is native where there is what `profile` has.
pub const fn math(profile: &Profile, function: MathFunction, scalar: Scalar) -> bool {
    use MathFunction as M;
    let target = profile.target;
    if matches!(scalar, Scalar::F64) && function.is_elementary_of_doubles() {
        // CUDA C alone has them, but for Rust, whose call the system's library.
        return matches!(target, Target::Cuda);
    }
    match function {
        // WGSL's and GLSL's may overflow where the result is 1.
        M::Tanh => matches!(target, Target::Cuda),
        // WGSL's and GLSL's is undefined for negative x.
        M::Powf => matches!(target, Target::Cuda | Target::Cpu),
        // Rust's call the system's library, which cannot become vectors.
        M::Exp | M::Exp2 => !matches!(target, Target::Cpu),
        // WGSL's and GLSL's err by up to a fixed distance, which is as large as the result where that is small.
        M::Ln | M::Log2 | M::Sin | M::Cos | M::Tan => matches!(target, Target::Cuda),
        // CUDA has good ones; WGSL's and GLSL's overflow, or err by more than ours.
        M::Round
        | M::Copysign
        | M::Asin
        | M::Acos
        | M::Sinh
        | M::Cosh
        | M::Asinh
        | M::Acosh
        | M::Atanh
        | M::ExpM1
        | M::Ln1p
        | M::Log10
        | M::Cbrt
        | M::Hypot => matches!(target, Target::Cuda),
        M::RotateLeft | M::RotateRight => matches!(target, Target::Cpu),
        M::MulHigh => matches!(target, Target::Cuda | Target::Cpu),
        M::Dot4I8 | M::Dot4U8 => match target {
            Target::Wgsl | Target::Cuda => true,
            Target::Spirv => profile.features.has(Feature::IntegerDot),
            Target::Cpu => false,
        },
        // Made of others everywhere, so that every target gives the same; CUDA's error function takes half as long again as ours.
        M::Erf
        | M::Fract
        | M::RemEuclid
        | M::Mix
        | M::Step
        | M::Smoothstep
        | M::Length
        | M::Distance
        | M::Normalize
        | M::Cross
        | M::Reflect
        | M::ExtractBits
        | M::InsertBits
        | M::Pack4x8Snorm
        | M::Pack4x8Unorm
        | M::Pack4xI8
        | M::Pack4xU8
        | M::Pack2x16Float
        | M::Pack2x16Snorm
        | M::Pack2x16Unorm
        | M::Unpack4x8Snorm
        | M::Unpack4x8Unorm
        | M::Unpack4xI8
        | M::Unpack4xU8
        | M::Unpack2x16Float
        | M::Unpack2x16Snorm
        | M::Unpack2x16Unorm => false,
        // WGSL's may give either with a NaN; SPIR-V has NMin and NMax, CUDA C fminf and fmaxf.
        M::Min | M::Max => !matches!((target, scalar), (Target::Wgsl, Scalar::F32 | Scalar::F64)),
        // No target's own keeps a NaN and takes bounds in any order; of integers emitters print it as a `max` and a `min`.
        M::Clamp => scalar.is_integer(),
        // A driver that sees a value narrowed and widened again may take the value itself, and may narrow toward zero.
        M::NearestHalf => false,
        M::NearestBrain => matches!(target, Target::Cuda),
        // A Vulkan driver for processors rounds doubles right only where the processor rounds eight of them at once: elsewhere 1.5 becomes 1, and 2^31 - 0.1 stays as it is.
        M::RoundTiesEven | M::Trunc | M::Floor | M::Ceil => {
            !matches!((target, scalar), (Target::Wgsl | Target::Spirv, Scalar::F64))
        }
        M::PackHalf => narrowing(target),
        // A Vulkan driver takes what GLSL's gives for never negative, which the least number's is.
        M::Abs => !(scalar.is_signed() && scalar.is_integer() && matches!(target, Target::Wgsl | Target::Spirv)),
        // A Vulkan driver ends at `sign` of a difference in a kernel with many doubles.
        M::Signum => !(matches!(scalar, Scalar::I32) && matches!(target, Target::Wgsl | Target::Spirv)),
        _ => true,
    }
}

/// What a function that may be less accurate has in the place of a mathematical function of `f32`.
pub enum Cheaper {
    /// The target's own, which emitters print in its cheap form.
    Native,
    /// A function of the library.
    Library(&'static str),
}

/// The cheaper form of a function of `f32` where it may be less accurate; none where there is none.
pub const fn cheaper(target: Target, function: MathFunction) -> Option<Cheaper> {
    use MathFunction as M;
    Some(match (function, target) {
        (M::Tanh, _) => Cheaper::Library("fast_tanh"),
        (M::Powf, Target::Cpu) => Cheaper::Library("fast_powf"),
        (M::Ln | M::Log2 | M::Sin | M::Cos | M::Tan, Target::Wgsl | Target::Spirv) => Cheaper::Native,
        // A NaN, and a negative base, are not looked at.
        (M::Powf, _) | (M::Min | M::Max | M::Clamp, Target::Wgsl) => Cheaper::Native,
        (M::Log10, Target::Wgsl | Target::Spirv | Target::Cpu) => Cheaper::Library("fast_log10"),
        _ => return None,
    })
}

/// Whether narrowing to a half rounds to the nearest, ties to even.
pub const fn narrowing(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether narrowing to a half that goes to memory does, without another use: SPIR-V has a decoration for it where that is a binding, and a mode of the module. Values that are used as well would not be rounded: drivers that see one
/// narrowed and widened again take the value itself, whatever the mode and the decorations.
pub const fn narrowing_to_memory(target: Target) -> bool {
    narrowing(target) || matches!(target, Target::Spirv)
}

/// Whether both scans of a subgroup with an operator are native.
pub const fn scan(target: Target, operator: SubgroupOperator) -> bool {
    match target {
        Target::Spirv | Target::Cpu => true,
        Target::Wgsl => matches!(operator, SubgroupOperator::Add | SubgroupOperator::Multiply),
        // A warp has shuffles alone.
        Target::Cuda => false,
    }
}

/// Whether integer division and remainder by any number are native: the divisor 0 and `MIN / -1` included. The CPU emitter prints helpers.
pub const fn division(target: Target) -> bool {
    matches!(target, Target::Cpu)
}

/// Whether the remainder of a negative number is native. Vulkan leaves OpSRem open there, which is also what WGSL becomes.
pub const fn signed_remainder(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether the remainder of floats is native: exact, and of what is finite by what is infinite the left side. WGSL and Vulkan leave both open: drivers compute `x - y * trunc(x / y)`, which may be off by one y.
pub const fn remainder_of_floats(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether integers of 64 bits are divided natively by what is not 0 and not known. A Vulkan driver takes one such quotient for another that stands in the same kernel.
pub const fn division_of_longs(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether the order of signed numbers of 64 bits is native. A Vulkan driver takes `x << 2 <= -8` for an order of unsigned ones, where a division stands in the same kernel.
pub const fn order_of_longs(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether a shift by any amount is native.
pub const fn shift(target: Target) -> bool {
    matches!(target, Target::Cpu)
}

/// Whether the negative of an integer is native. A Vulkan driver takes that of what is 0 or 1 for a number which is never below 0, so that the least of it and of another is wrong. (CUDA C has the same compiler
/// behind it, from which its emitter hides the negative.)
pub const fn negation(target: Target) -> bool {
    matches!(target, Target::Cpu | Target::Cuda)
}

/// Whether conversion of floats to integers is native: toward zero, saturating, NaN to 0. PTX's `cvt.rzi` is, between 32 bits.
pub const fn float_to_integer(target: Target, from: Scalar, to: Scalar) -> bool {
    match target {
        Target::Cpu => true,
        Target::Cuda => !from.is_wide() && !to.is_wide(),
        Target::Wgsl | Target::Spirv => false,
    }
}
