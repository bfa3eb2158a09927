//! Functions of the mathematical library: numbers, vectors and bits, each with its name and signature, stated once.
//!
//! Front end, verifier, builder and emitters read the signature here. What a function means is said at its variant; the evaluator and the host
//! share the plain Rust of [`crate::meaning`] for those that Rust lacks.

use serde::{Deserialize, Serialize};

use super::types::{Scalar, Type};

/// What the first argument of a function may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// `f32`, or a vector of it.
    Float,
    /// `f32` or a signed integer, or a vector.
    Signed,
    /// A number, or a vector of numbers.
    Number,
    /// An integer of 32 bits, or a vector of them.
    Integer,
    /// `u32` or `i32`, or a vector: integers that are 32 bits wide on the host too.
    Word,
    /// A vector of `f32`, as a whole.
    Vector,
    /// A vector of three `f32`, as a whole.
    Vector3,
    /// This scalar or vector alone.
    Only(u8, Scalar),
}

impl Domain {
    /// Whether a type of 32-bit lanes belongs to it.
    fn holds(self, ty: &Type) -> bool {
        let (Some(scalar), Some(lanes)) = (ty.scalar(), ty.lanes()) else { return false };
        match self {
            Self::Float => scalar == Scalar::F32,
            Self::Signed => matches!(scalar, Scalar::F32 | Scalar::I32),
            Self::Number => scalar == Scalar::F32 || scalar.is_integer(),
            Self::Integer => scalar.is_integer(),
            Self::Word => matches!(scalar, Scalar::U32 | Scalar::I32),
            Self::Vector => scalar == Scalar::F32 && lanes > 1,
            Self::Vector3 => scalar == Scalar::F32 && lanes == 3,
            Self::Only(count, only) => (lanes, scalar) == (count, only),
        }
    }

    /// What it holds, in the author's words.
    pub fn words(self) -> String {
        let lane_by_lane = |what: &str| format!("{what} (and vectors of them, lane by lane)");
        match self {
            Self::Float => lane_by_lane("f32"),
            Self::Signed => lane_by_lane("f32 and signed integers"),
            Self::Number => lane_by_lane("numbers"),
            Self::Integer => lane_by_lane("integers of 32 bits"),
            Self::Word => lane_by_lane("u32 and i32"),
            Self::Vector => "vectors of f32".to_owned(),
            Self::Vector3 => "Vec3<f32>".to_owned(),
            Self::Only(1, scalar) => scalar.rust_name().to_owned(),
            Self::Only(lanes, scalar) => format!("Vec{lanes}<{}>", scalar.rust_name()),
        }
    }
}

/// A further argument, or the result, by the type of the first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandType {
    /// The same type.
    Same,
    /// Its scalar.
    Lane,
    /// As many lanes of this scalar.
    Lanes(Scalar),
    /// This scalar.
    One(Scalar),
    /// This vector.
    Vector(u8, Scalar),
}

impl OperandType {
    /// Its type, if the first argument has type `first`.
    pub fn of(self, first: &Type) -> Type {
        let lanes = first.lanes().unwrap_or(1);
        let with = |lanes: u8, scalar| if lanes == 1 { Type::Scalar(scalar) } else { Type::vector(lanes, scalar) };
        match self {
            Self::Same => first.clone(),
            Self::Lane => Type::Scalar(first.scalar().unwrap_or(Scalar::F32)),
            Self::Lanes(scalar) => with(lanes, scalar),
            Self::One(scalar) => Type::Scalar(scalar),
            Self::Vector(lanes, scalar) => with(lanes, scalar),
        }
    }
}

macro_rules! math_functions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $domain:expr, [$($operand:expr),*] => $gives:expr;)*) => {
        /// Functions of the mathematical library. They work lane by lane, unless they say otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum MathFunction {
            $($(#[$doc])* $variant,)*
        }

        impl MathFunction {
            /// Every function.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name by which kernels call it, as a function or as a method of its first argument.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What its first argument may be.
            pub const fn domain(self) -> Domain {
                use Domain::*;
                match self { $(Self::$variant => $domain,)* }
            }

            /// Its arguments behind the first.
            pub const fn operands(self) -> &'static [OperandType] {
                use OperandType::*;
                match self { $(Self::$variant => const { &[$($operand),*] },)* }
            }

            /// What it gives.
            pub const fn gives(self) -> OperandType {
                use OperandType::*;
                match self { $(Self::$variant => $gives,)* }
            }

            /// The function of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

math_functions! {
    /// Absolute value; of `i32` wrapping.
    Abs = "abs", Signed, [] => Same;
    /// The smaller; if one is NaN, the other.
    Min = "min", Number, [Same] => Same;
    /// The larger; if one is NaN, the other.
    Max = "max", Number, [Same] => Same;
    /// `min(max(x, low), high)`; of floats x if x is a NaN.
    Clamp = "clamp", Number, [Same, Same] => Same;
    /// 1 or -1 with the sign bit of x, NaN for NaN (Rust's `signum`); of `i32` also 0.
    Signum = "signum", Signed, [] => Same;
    /// The largest integer not above.
    Floor = "floor", Float, [] => Same;
    /// The smallest integer not below.
    Ceil = "ceil", Float, [] => Same;
    /// The nearest integer, ties to even.
    RoundTiesEven = "round_ties_even", Float, [] => Same;
    /// The integer part.
    Trunc = "trunc", Float, [] => Same;
    /// Square root.
    Sqrt = "sqrt", Float, [] => Same;
    /// 1 / square root.
    InverseSqrt = "inverse_sqrt", Float, [] => Same;
    /// e to the power of x.
    Exp = "exp", Float, [] => Same;
    /// 2 to the power of x.
    Exp2 = "exp2", Float, [] => Same;
    /// Natural logarithm.
    Ln = "ln", Float, [] => Same;
    /// Logarithm to base 2.
    Log2 = "log2", Float, [] => Same;
    /// x to the power of y.
    Powf = "powf", Float, [Same] => Same;
    /// Sine of radians.
    Sin = "sin", Float, [] => Same;
    /// Cosine of radians.
    Cos = "cos", Float, [] => Same;
    /// Tangent of radians.
    Tan = "tan", Float, [] => Same;
    /// Hyperbolic tangent.
    Tanh = "tanh", Float, [] => Same;
    /// Arc tangent.
    Atan = "atan", Float, [] => Same;
    /// Arc tangent of y / x in the right quadrant; the first argument is y.
    Atan2 = "atan2", Float, [Same] => Same;
    /// The error function.
    Erf = "erf", Float, [] => Same;
    /// `x * y + z`, rounded once where the target does that.
    MulAdd = "mul_add", Float, [Same, Same] => Same;
    /// Scalar product of two vectors; gives a scalar.
    Dot = "dot", Vector, [Same] => Lane;
    /// Whether x is a NaN; by bits.
    IsNan = "is_nan", Float, [] => Lanes(Scalar::Bool);
    /// Whether x is infinite; by bits.
    IsInfinite = "is_infinite", Float, [] => Lanes(Scalar::Bool);
    /// Bits set.
    CountOnes = "count_ones", Integer, [] => Lanes(Scalar::U32);
    /// Zeros above the highest set bit; 32 for 0.
    LeadingZeros = "leading_zeros", Integer, [] => Lanes(Scalar::U32);
    /// Zeros below the lowest set bit; 32 for 0.
    TrailingZeros = "trailing_zeros", Integer, [] => Lanes(Scalar::U32);
    /// The `f32` of the half whose bits are the low 16 of a `U32`. Made by lowering alone: its name is no identifier.
    UnpackHalf = "unpack half", Word, [] => Lanes(Scalar::F32);
    /// The `f32` that equals the `bf16` nearest to x, ties to even; a NaN stays one. Made by lowering alone.
    NearestBrain = "nearest brain", Float, [] => Same;
    /// The `f32` that equals the half nearest to x, ties to even. Made by lowering alone.
    NearestHalf = "nearest half", Float, [] => Same;
    /// A `U32` whose low 16 bits are those of the half nearest to x, and whose high 16 bits are 0. Made by lowering alone.
    PackHalf = "pack half", Float, [] => Lanes(Scalar::U32);

    /// The nearest integer, ties away from zero.
    Round = "round", Float, [] => Same;
    /// `x - trunc(x)`, with the sign of x.
    Fract = "fract", Float, [] => Same;
    /// The size of x with the sign of y; by bits.
    Copysign = "copysign", Float, [Same] => Same;
    /// The remainder that is not negative: Rust's `rem_euclid`. Of integers, by 0 it is 0.
    RemEuclid = "rem_euclid", Number, [Same] => Same;
    /// Arc sine.
    Asin = "asin", Float, [] => Same;
    /// Arc cosine.
    Acos = "acos", Float, [] => Same;
    /// Hyperbolic sine.
    Sinh = "sinh", Float, [] => Same;
    /// Hyperbolic cosine.
    Cosh = "cosh", Float, [] => Same;
    /// Inverse hyperbolic sine.
    Asinh = "asinh", Float, [] => Same;
    /// Inverse hyperbolic cosine; NaN below 1.
    Acosh = "acosh", Float, [] => Same;
    /// Inverse hyperbolic tangent; NaN beyond 1 and -1.
    Atanh = "atanh", Float, [] => Same;
    /// `exp(x) - 1`, exact near 0.
    ExpM1 = "exp_m1", Float, [] => Same;
    /// `ln(1 + x)`, exact near 0.
    Ln1p = "ln_1p", Float, [] => Same;
    /// Logarithm to base 10.
    Log10 = "log10", Float, [] => Same;
    /// Cube root.
    Cbrt = "cbrt", Float, [] => Same;
    /// `sqrt(x * x + y * y)`, which does not overflow on the way; infinite if one is.
    Hypot = "hypot", Float, [Same] => Same;
    /// `a * (1 - t) + b * t`.
    Mix = "mix", Float, [Same, Same] => Same;
    /// 1 where `edge <= x`, else 0; the edge comes first.
    Step = "step", Float, [Same] => Same;
    /// `t * t * (3 - 2 * t)` with `t = clamp((x - low) / (high - low), 0, 1)`; x comes last.
    Smoothstep = "smoothstep", Float, [Same, Same] => Same;
    /// `sqrt(dot(v, v))`.
    Length = "length", Vector, [] => Lane;
    /// `length(a - b)`.
    Distance = "distance", Vector, [Same] => Lane;
    /// `v * inverse_sqrt(dot(v, v))`; the zero vector has none, and gives NaN.
    Normalize = "normalize", Vector, [] => Same;
    /// Vector product.
    Cross = "cross", Vector3, [Same] => Same;
    /// `v - n * (2 * dot(n, v))`: v mirrored at the plane whose normal of length 1 is n.
    Reflect = "reflect", Vector, [Same] => Same;

    /// The bits in the opposite order.
    ReverseBits = "reverse_bits", Word, [] => Same;
    /// Bits moved up, those that leave come in below; the amount, one for all lanes, counts modulo 32.
    RotateLeft = "rotate_left", Word, [One(Scalar::U32)] => Same;
    /// Bits moved down, those that leave come in above; the amount, one for all lanes, counts modulo 32.
    RotateRight = "rotate_right", Word, [One(Scalar::U32)] => Same;
    /// `count` bits from `offset` on, of `i32` with the highest as the sign. What would lie past the highest bit is not counted: offset is taken as
    /// `min(offset, 32)` and count as `min(count, 32 - offset)`; no bits are 0.
    ExtractBits = "extract_bits", Word, [One(Scalar::U32), One(Scalar::U32)] => Same;
    /// x with `count` bits from `offset` on replaced by the low bits of the second argument; offset and count are taken as in `extract_bits`.
    InsertBits = "insert_bits", Word, [Same, One(Scalar::U32), One(Scalar::U32)] => Same;
    /// The upper 32 bits of the product of 64.
    MulHigh = "mul_high", Word, [Same] => Same;
    /// The sum of c and the products of the four signed bytes of a and b; wraps.
    Dot4I8 = "dot4_i8", Only(1, Scalar::U32), [One(Scalar::U32), One(Scalar::I32)] => One(Scalar::I32);
    /// The sum of c and the products of the four bytes of a and b; wraps.
    Dot4U8 = "dot4_u8", Only(1, Scalar::U32), [One(Scalar::U32), One(Scalar::U32)] => One(Scalar::U32);
    /// Lane 0 in the lowest byte: `round_ties_even(min(max(x, -1), 1) * 127)` of each. A NaN is -127.
    Pack4x8Snorm = "pack4x8snorm", Only(4, Scalar::F32), [] => One(Scalar::U32);
    /// Lane 0 in the lowest byte: `round_ties_even(min(max(x, 0), 1) * 255)` of each. A NaN is 0.
    Pack4x8Unorm = "pack4x8unorm", Only(4, Scalar::F32), [] => One(Scalar::U32);
    /// The low bytes of four lanes, lane 0 lowest.
    Pack4xI8 = "pack4xi8", Only(4, Scalar::I32), [] => One(Scalar::U32);
    /// The low bytes of four lanes, lane 0 lowest.
    Pack4xU8 = "pack4xu8", Only(4, Scalar::U32), [] => One(Scalar::U32);
    /// The halves nearest to two lanes, lane 0 in the low 16 bits.
    Pack2x16Float = "pack2x16float", Only(2, Scalar::F32), [] => One(Scalar::U32);
    /// Lane 0 in the low 16 bits: `round_ties_even(min(max(x, -1), 1) * 32767)` of each. A NaN is -32767.
    Pack2x16Snorm = "pack2x16snorm", Only(2, Scalar::F32), [] => One(Scalar::U32);
    /// Lane 0 in the low 16 bits: `round_ties_even(min(max(x, 0), 1) * 65535)` of each. A NaN is 0.
    Pack2x16Unorm = "pack2x16unorm", Only(2, Scalar::F32), [] => One(Scalar::U32);
    /// `max(b / 127, -1)` of each signed byte b.
    Unpack4x8Snorm = "unpack4x8snorm", Only(1, Scalar::U32), [] => Vector(4, Scalar::F32);
    /// `b / 255` of each byte b.
    Unpack4x8Unorm = "unpack4x8unorm", Only(1, Scalar::U32), [] => Vector(4, Scalar::F32);
    /// The four bytes with their sign, the lowest in lane 0.
    Unpack4xI8 = "unpack4xi8", Only(1, Scalar::U32), [] => Vector(4, Scalar::I32);
    /// The four bytes, the lowest in lane 0.
    Unpack4xU8 = "unpack4xu8", Only(1, Scalar::U32), [] => Vector(4, Scalar::U32);
    /// The two halves, the lower in lane 0; exact.
    Unpack2x16Float = "unpack2x16float", Only(1, Scalar::U32), [] => Vector(2, Scalar::F32);
    /// `max(b / 32767, -1)` of each signed half word b.
    Unpack2x16Snorm = "unpack2x16snorm", Only(1, Scalar::U32), [] => Vector(2, Scalar::F32);
    /// `b / 65535` of each half word b.
    Unpack2x16Unorm = "unpack2x16unorm", Only(1, Scalar::U32), [] => Vector(2, Scalar::F32);
}

impl MathFunction {
    /// Whether its first argument may have that type: one of its domain, or one of another width where the function's result is exact for it.
    pub fn takes(self, ty: &Type) -> bool {
        let (Some(scalar), Some(lanes)) = (ty.scalar(), ty.lanes()) else { return false };
        let integers = matches!(self.domain(), Domain::Signed | Domain::Number) && self != Self::RemEuclid;
        let like = match scalar {
            Scalar::F16 | Scalar::BF16 if self.is_exact() => Scalar::F32,
            Scalar::F64 if self.is_of_doubles() => Scalar::F32,
            Scalar::I8 | Scalar::I16 | Scalar::I64 if integers => Scalar::I32,
            Scalar::U8 | Scalar::U16 | Scalar::U64 if integers => Scalar::U32,
            scalar if scalar.bits() != 32 => return false,
            scalar => scalar,
        };
        self.domain().holds(&if lanes == 1 { Type::Scalar(like) } else { Type::vector(lanes, like) })
    }

    /// Whether its result is exact or correctly rounded on every target that has `f64`, so that it is there for halves too.
    pub const fn is_exact(self) -> bool {
        matches!(
            self,
            Self::Abs
                | Self::Min
                | Self::Max
                | Self::Clamp
                | Self::Floor
                | Self::Ceil
                | Self::RoundTiesEven
                | Self::Trunc
                | Self::Sqrt
                | Self::MulAdd
                | Self::Dot
                | Self::IsNan
                | Self::IsInfinite
        )
    }

    /// Whether it takes `f64`, of the functions that take `f32`.
    pub const fn is_of_doubles(self) -> bool {
        self.is_exact() || self.is_elementary_of_doubles()
    }

    /// Whether it takes `f64` and is rounded more than once there; it looks at the bits then, which are a `u64`.
    pub const fn is_elementary_of_doubles(self) -> bool {
        matches!(
            self,
            Self::Exp
                | Self::Exp2
                | Self::ExpM1
                | Self::Ln
                | Self::Log2
                | Self::Log10
                | Self::Ln1p
                | Self::Sinh
                | Self::Cosh
                | Self::Tanh
                | Self::Asinh
                | Self::Acosh
                | Self::Atanh
                | Self::Powf
                | Self::Sin
                | Self::Cos
                | Self::Tan
                | Self::Asin
                | Self::Acos
                | Self::Atan
                | Self::Atan2
                | Self::Erf
        )
    }

    /// How many arguments it takes.
    pub const fn arguments(self) -> usize {
        1 + self.operands().len()
    }

    /// Whether it works lane by lane, so that a vector's results are those of its lanes.
    pub const fn is_lanewise(self) -> bool {
        matches!(self.gives(), OperandType::Same | OperandType::Lanes(_))
            && !matches!(self.domain(), Domain::Vector | Domain::Vector3 | Domain::Only(..))
    }
}
