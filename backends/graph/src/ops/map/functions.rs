//! The functions of one and of two elements: their names, and the element types that they take.

use trefoil_codegen::ir::Scalar;

use crate::types::ElementType;

/// Which element types a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Floats that are computed in 32 bits: what is approximated is so for these alone.
    Floats,
    /// Every float.
    AllFloats,
    Signed,
    Numbers,
    Bools,
    All,
}

impl Takes {
    pub(super) fn allows(self, element: ElementType) -> bool {
        let scalar = element.scalar();
        match self {
            Self::Floats => element.computed() == Scalar::F32,
            Self::AllFloats => element.is_float(),
            Self::Signed => element.is_float() || scalar.is_signed(),
            Self::Numbers => scalar.is_number(),
            Self::Bools => element == ElementType::Bool,
            Self::All => true,
        }
    }

    pub(super) fn words(self) -> String {
        let list = ElementType::list(|element| self.allows(element));
        match self {
            Self::Floats | Self::AllFloats => format!("a float ({list}); `cast` converts"),
            Self::Signed => format!("a number with a sign ({list}); `cast` converts"),
            Self::Numbers => format!("a number ({list}); `cast` converts"),
            Self::Bools => format!("{list}; a comparison or `cast` gives that"),
            Self::All => "any type".to_owned(),
        }
    }
}

macro_rules! functions {
    ($(#[$doc:meta])* $enum:ident, $op:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:ident, $takes:ident;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $enum {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name, which is also that of the method that adds it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name)),* }
            }

            pub(super) fn takes(self) -> Takes {
                match self { $(Self::$variant => Takes::$takes),* }
            }
        }
    };
}

functions! {
    /// Functions of one element.
    UnaryFunction, Unary {
        /// `-x`
        Neg = neg, Signed;
        /// The absolute value.
        Abs = abs, Signed;
        /// 1, 0 or -1 with the sign of x; NaN for NaN.
        Sign = sign, Signed;
        /// x * x
        Sqr = sqr, Numbers;
        /// max(x, 0); NaN for NaN.
        Relu = relu, Signed;
        /// e^x
        Exp = exp, Floats;
        /// 2^x
        Exp2 = exp2, Floats;
        /// Natural logarithm.
        Log = log, Floats;
        /// Logarithm to base 2.
        Log2 = log2, Floats;
        /// Square root.
        Sqrt = sqrt, AllFloats;
        /// 1 / sqrt(x)
        Rsqrt = rsqrt, AllFloats;
        /// 1 / x
        Recip = recip, AllFloats;
        /// Hyperbolic tangent.
        Tanh = tanh, Floats;
        /// The error function.
        Erf = erf, Floats;
        /// x * (1 + erf(x / sqrt(2))) / 2
        Gelu = gelu, Floats;
        /// The approximation of gelu by tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
        GeluTanh = gelu_tanh, Floats;
        /// 1 / (1 + e^-x)
        Sigmoid = sigmoid, Floats;
        /// x / (1 + e^-x)
        Silu = silu, Floats;
        /// Sine of radians.
        Sin = sin, Floats;
        /// Cosine of radians.
        Cos = cos, Floats;
        /// The largest integer not above.
        Floor = floor, AllFloats;
        /// The smallest integer not below.
        Ceil = ceil, AllFloats;
        /// The nearest integer, ties to even.
        Round = round, AllFloats;
        /// The integer part.
        Trunc = trunc, AllFloats;
        /// `!x`
        LogicalNot = logical_not, Bools;
    }
}

functions! {
    /// Functions of two elements.
    BinaryFunction, Binary {
        /// a + b; integers wrap.
        Add = add, Numbers;
        /// a - b; integers wrap.
        Sub = sub, Numbers;
        /// a * b; integers wrap.
        Mul = mul, Numbers;
        /// a / b; integers toward zero, and x / 0 is 0.
        Div = div, Numbers;
        /// The remainder of a / b with the sign of a; of integers x % 0 is 0.
        Rem = rem, Numbers;
        /// The smaller; NaN if one is NaN.
        Min = minimum, Numbers;
        /// The larger; NaN if one is NaN.
        Max = maximum, Numbers;
        /// a to the power of b.
        Pow = pow, Floats;
        /// a == b
        Eq = eq, All;
        /// a != b
        Ne = ne, All;
        /// a < b
        Lt = lt, Numbers;
        /// a <= b
        Le = le, Numbers;
        /// a > b
        Gt = gt, Numbers;
        /// a >= b
        Ge = ge, Numbers;
        /// a && b
        LogicalAnd = logical_and, Bools;
        /// a || b
        LogicalOr = logical_or, Bools;
        /// a != b, of bools.
        LogicalXor = logical_xor, Bools;
    }
}
