//! The methods of [`Graph`] that add maps.

use super::{Binary, BinaryFunction, Cast, Contiguous, Unary, UnaryFunction, Where};
use crate::graph::{Graph, GraphError, Tensor};
use crate::types::ElementType;

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident = $variant:ident;)*) => {
        /// Functions of one tensor, element by element.
        impl Graph {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The function does not take elements of this type.
                pub fn $name(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
                    let element = self.type_of(x)?.element;
                    self.add_one(Unary { function: UnaryFunction::$variant, element }, &[x])
                }
            )*
        }
    };
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident = $variant:ident;)*) => {
        /// Functions of two tensors, element by element, broadcast to each other.
        impl Graph {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The types differ, the function does not take them, or the shapes do not broadcast.
                pub fn $name(&mut self, a: Tensor, b: Tensor) -> Result<Tensor, GraphError> {
                    let element = self.type_of(a)?.element;
                    self.add_one(Binary { function: BinaryFunction::$variant, element }, &[a, b])
                }
            )*
        }
    };
}

unary_methods! {
    /// `-x`
    neg = Neg;
    /// The absolute value.
    abs = Abs;
    /// 1, 0 or -1 with the sign of x.
    sign = Sign;
    /// `x * x`
    sqr = Sqr;
    /// `max(x, 0)`
    relu = Relu;
    /// e^x
    exp = Exp;
    /// 2^x
    exp2 = Exp2;
    /// Natural logarithm.
    log = Log;
    /// Logarithm to base 2.
    log2 = Log2;
    /// Square root.
    sqrt = Sqrt;
    /// `1 / sqrt(x)`
    rsqrt = Rsqrt;
    /// `1 / x`
    recip = Recip;
    /// Hyperbolic tangent.
    tanh = Tanh;
    /// The error function.
    erf = Erf;
    /// `x * (1 + erf(x / sqrt(2))) / 2`
    gelu = Gelu;
    /// The approximation of gelu by tanh.
    gelu_tanh = GeluTanh;
    /// `1 / (1 + e^-x)`
    sigmoid = Sigmoid;
    /// `x / (1 + e^-x)`
    silu = Silu;
    /// Sine of radians.
    sin = Sin;
    /// Cosine of radians.
    cos = Cos;
    /// The largest integer not above.
    floor = Floor;
    /// The smallest integer not below.
    ceil = Ceil;
    /// The nearest integer, ties to even.
    round = Round;
    /// The integer part.
    trunc = Trunc;
    /// `!x`
    logical_not = LogicalNot;
}

binary_methods! {
    /// `a + b`
    add = Add;
    /// `a - b`
    sub = Sub;
    /// `a * b`
    mul = Mul;
    /// `a / b`; integers toward zero, and x / 0 is 0.
    div = Div;
    /// The remainder of `a / b`, with the sign of `a`.
    rem = Rem;
    /// The smaller; NaN if one is NaN.
    minimum = Min;
    /// The larger; NaN if one is NaN.
    maximum = Max;
    /// `a` to the power of `b`.
    pow = Pow;
    /// `a == b`
    eq = Eq;
    /// `a != b`
    ne = Ne;
    /// `a < b`
    lt = Lt;
    /// `a <= b`
    le = Le;
    /// `a > b`
    gt = Gt;
    /// `a >= b`
    ge = Ge;
    /// `a && b`
    logical_and = LogicalAnd;
    /// `a || b`
    logical_or = LogicalOr;
    /// `a != b`, of bools.
    logical_xor = LogicalXor;
}

impl Graph {
    /// `accept` where the condition holds, else `reject`.
    ///
    /// # Errors
    /// The condition is not bool, the others' types differ, or the shapes do not broadcast.
    pub fn where_(&mut self, condition: Tensor, accept: Tensor, reject: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(Where, &[condition, accept, reject])
    }

    /// Elements converted to another type, as [`Cast`] says.
    ///
    /// # Errors
    /// The tensor is of another graph.
    pub fn cast(&mut self, x: Tensor, to: ElementType) -> Result<Tensor, GraphError> {
        let from = self.type_of(x)?.element;
        self.add_one(Cast { from, to }, &[x])
    }

    /// The same elements, one after the other in memory.
    ///
    /// # Errors
    /// The tensor is of another graph.
    pub fn contiguous(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(Contiguous, &[x])
    }
}
