//! The bodies of maps in IR.

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{BinaryOperator, Handle, Literal, Local, MathFunction, Scalar, UnaryOperator};

use super::{BinaryFunction, UnaryFunction, Value};
use crate::types::ElementType;

/// Makes the expressions of a body, on scalars or lane by lane on vectors.
pub(super) struct Body<'b, 'm> {
    pub(super) builder: &'b mut FunctionBuilder<'m>,
}

impl Body<'_, '_> {
    pub(super) fn get(&mut self, local: Handle<Local>) -> Value {
        self.builder.local(local)
    }

    /// A constant of the type of `local`, or of a vector of it.
    pub(super) fn like(&mut self, local: Handle<Local>, value: f64) -> Value {
        let of = self.builder.local(local);
        let (scalar, lanes) = (self.builder.type_of(of).scalar(), self.builder.type_of(of).lanes());
        let literal = match scalar {
            Some(Scalar::Bool) => Literal::Bool(value != 0.0),
            Some(scalar) if scalar.is_integer() => {
                Literal::exact_integer(scalar, value as i128).unwrap_or(Literal::U32(0))
            }
            Some(scalar) => Literal::float(scalar, value).unwrap_or(Literal::F32(value as f32)),
            None => Literal::F32(value as f32),
        };
        let literal = self.builder.literal(literal);
        match lanes {
            Some(lanes @ 2..) => self.builder.splat(literal, lanes),
            _ => literal,
        }
    }

    pub(super) fn op(&mut self, operator: BinaryOperator, left: Value, right: Value) -> Value {
        self.builder.binary(operator, left, right)
    }

    pub(super) fn math(&mut self, function: MathFunction, of: Value) -> Value {
        self.builder.math(function, vec![of])
    }

    pub(super) fn is_float(&mut self, local: Handle<Local>) -> bool {
        let of = self.builder.local(local);
        self.builder.type_of(of).scalar().is_some_and(Scalar::is_float)
    }

    /// 1 / (1 + exp(-x))
    pub(super) fn sigmoid(&mut self, x: Handle<Local>) -> Value {
        let (value, one, numerator) = (self.get(x), self.like(x, 1.0), self.like(x, 1.0));
        let negative = self.builder.unary(UnaryOperator::Negate, value);
        let power = self.math(MathFunction::Exp, negative);
        let sum = self.op(BinaryOperator::Add, one, power);
        self.op(BinaryOperator::Divide, numerator, sum)
    }

    /// `0.5 * x * (1 + inner)`
    pub(super) fn half_gate(&mut self, x: Handle<Local>, inner: Value) -> Value {
        let (value, half, one) = (self.get(x), self.like(x, 0.5), self.like(x, 1.0));
        let scaled = self.op(BinaryOperator::Multiply, half, value);
        let sum = self.op(BinaryOperator::Add, one, inner);
        self.op(BinaryOperator::Multiply, scaled, sum)
    }

    pub(super) fn unary(&mut self, function: UnaryFunction, x: Handle<Local>) -> Value {
        use BinaryOperator::{Add, Divide, Less, Multiply};
        use UnaryFunction as F;
        let value = self.get(x);
        let simple = match function {
            F::Abs => Some(MathFunction::Abs),
            F::Exp => Some(MathFunction::Exp),
            F::Exp2 => Some(MathFunction::Exp2),
            F::Log => Some(MathFunction::Ln),
            F::Log2 => Some(MathFunction::Log2),
            F::Sqrt => Some(MathFunction::Sqrt),
            // Doubles have no such function; theirs is made of two.
            F::Rsqrt if self.builder.type_of(value).scalar() != Some(Scalar::F64) => Some(MathFunction::InverseSqrt),
            F::Tanh => Some(MathFunction::Tanh),
            F::Erf => Some(MathFunction::Erf),
            F::Sin => Some(MathFunction::Sin),
            F::Cos => Some(MathFunction::Cos),
            F::Floor => Some(MathFunction::Floor),
            F::Ceil => Some(MathFunction::Ceil),
            F::Round => Some(MathFunction::RoundTiesEven),
            F::Trunc => Some(MathFunction::Trunc),
            _ => None,
        };
        if let Some(function) = simple {
            return self.math(function, value);
        }
        match function {
            F::Neg => self.builder.unary(UnaryOperator::Negate, value),
            F::LogicalNot => self.builder.unary(UnaryOperator::Not, value),
            F::Sqr => {
                let again = self.get(x);
                self.op(Multiply, value, again)
            }
            F::Recip => {
                let one = self.like(x, 1.0);
                self.op(Divide, one, value)
            }
            F::Rsqrt => {
                let (one, root) = (self.like(x, 1.0), self.math(MathFunction::Sqrt, value));
                self.op(Divide, one, root)
            }
            F::Relu => {
                // A NaN is not below zero, and stays.
                let (zero, other, again) = (self.like(x, 0.0), self.like(x, 0.0), self.get(x));
                let below = self.op(Less, value, zero);
                self.builder.select(below, other, again)
            }
            F::Sign => {
                // A zero keeps its sign, and a NaN stays.
                let (zero, one, other) = (self.like(x, 0.0), self.like(x, 1.0), self.get(x));
                let above = self.op(BinaryOperator::Greater, value, zero);
                let rest = self.builder.select(above, one, other);
                let (again, zero, minus) = (self.get(x), self.like(x, 0.0), self.like(x, -1.0));
                let below = self.op(Less, again, zero);
                self.builder.select(below, minus, rest)
            }
            F::Gelu => {
                let factor = self.like(x, std::f64::consts::FRAC_1_SQRT_2);
                let scaled = self.op(Multiply, value, factor);
                let erf = self.math(MathFunction::Erf, scaled);
                self.half_gate(x, erf)
            }
            F::GeluTanh => {
                let (again, third) = (self.get(x), self.get(x));
                let square = self.op(Multiply, value, again);
                let cube = self.op(Multiply, square, third);
                let factor = self.like(x, 0.044_715);
                let bent = self.op(Multiply, factor, cube);
                let straight = self.get(x);
                let sum = self.op(Add, straight, bent);
                let factor = self.like(x, (2.0 / std::f64::consts::PI).sqrt());
                let scaled = self.op(Multiply, factor, sum);
                let tanh = self.math(MathFunction::Tanh, scaled);
                self.half_gate(x, tanh)
            }
            F::Sigmoid => self.sigmoid(x),
            F::Silu => {
                let gate = self.sigmoid(x);
                self.op(Multiply, value, gate)
            }
            // These are one function of the IR, and done above.
            F::Abs
            | F::Exp
            | F::Exp2
            | F::Log
            | F::Log2
            | F::Sqrt
            | F::Tanh
            | F::Erf
            | F::Sin
            | F::Cos
            | F::Floor
            | F::Ceil
            | F::Round
            | F::Trunc => value,
        }
    }

    pub(super) fn binary(&mut self, function: BinaryFunction, a: Handle<Local>, b: Handle<Local>) -> Value {
        use BinaryFunction as F;
        use BinaryOperator as O;
        let operator = match function {
            F::Add => O::Add,
            F::Sub => O::Subtract,
            F::Mul => O::Multiply,
            F::Div => O::Divide,
            F::Rem => O::Remainder,
            F::Eq => O::Equal,
            F::Ne | F::LogicalXor => O::NotEqual,
            F::Lt => O::Less,
            F::Le => O::LessEqual,
            F::Gt => O::Greater,
            F::Ge => O::GreaterEqual,
            F::LogicalAnd => O::And,
            F::LogicalOr => O::Or,
            F::Pow => {
                let (a, b) = (self.get(a), self.get(b));
                return self.builder.math(MathFunction::Powf, vec![a, b]);
            }
            F::Min => return self.extreme(MathFunction::Min, a, b),
            F::Max => return self.extreme(MathFunction::Max, a, b),
        };
        let (a, b) = (self.get(a), self.get(b));
        self.op(operator, a, b)
    }

    /// The IR's `min` and `max` prefer the number to the NaN; NumPy's, which ops follow, prefer the NaN.
    pub(super) fn extreme(&mut self, function: MathFunction, a: Handle<Local>, b: Handle<Local>) -> Value {
        let (left, right) = (self.get(a), self.get(b));
        let number = self.builder.math(function, vec![left, right]);
        if !self.is_float(a) {
            return number;
        }
        let (value, other) = (self.get(b), self.get(b));
        let is_nan = self.math(MathFunction::IsNan, value);
        let right = self.builder.select(is_nan, other, number);
        let (value, other) = (self.get(a), self.get(a));
        let is_nan = self.math(MathFunction::IsNan, value);
        self.builder.select(is_nan, other, right)
    }

    pub(super) fn cast(&mut self, to: ElementType, x: Handle<Local>) -> Value {
        let value = self.get(x);
        // The value of a map of 16-bit floats is an `f32`; who stores it rounds it.
        let (from, into) = (self.builder.type_of(value).scalar(), to.computed());
        if from == Some(into) {
            return value;
        }
        if into == Scalar::Bool {
            let zero = self.like(x, 0.0);
            return self.op(BinaryOperator::NotEqual, value, zero);
        }
        if from == Some(Scalar::Bool) && into.is_wide() {
            // By way of a word, which a device without 64-bit arithmetic extends too.
            let word = self.builder.convert(value, Scalar::U32);
            return self.builder.convert(word, into);
        }
        self.builder.convert(value, into)
    }
}
