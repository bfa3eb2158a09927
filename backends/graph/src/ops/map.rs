//! Maps: one output element from the input elements at the same position, with NumPy's broadcasting.
//!
//! A map's body works on scalars and, lane by lane, on vectors alike: constants are made like the values that they meet.

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{BinaryOperator, Expression, Handle, Literal, Local, MathFunction, Scalar, UnaryOperator};

use super::real;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Map, Op, OpError, OpKind};
use crate::types::{ElementType, Shape, TensorType, broadcast};

type Value = Handle<Expression>;

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unary {
    /// Which.
    pub function: UnaryFunction,
}

/// A function of two elements of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// Which.
    pub function: BinaryFunction,
    /// The type of both, which decides how integers divide.
    pub element: ElementType,
}

/// `accept` where the condition holds, else `reject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Where;

/// Elements converted to another type: floats to integers toward zero and saturating, integers to each other by their bits, to bool by comparison
/// with zero, from bool to 0 and 1, to halves to the nearest, ties to even.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// What they are.
    pub from: ElementType,
    /// What they become.
    pub to: ElementType,
}

/// The same elements, one after the other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contiguous;

/// Which element types a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Floats,
    Signed,
    Numbers,
    Bools,
    All,
}

impl Takes {
    fn allows(self, element: ElementType) -> bool {
        match self {
            Self::Floats => element.is_float(),
            Self::Signed => element.is_float() || element == ElementType::I32,
            Self::Numbers => element != ElementType::Bool,
            Self::Bools => element == ElementType::Bool,
            Self::All => true,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Floats => "f32 or f16; `cast` converts",
            Self::Signed => "f32, f16 or i32; `cast` converts",
            Self::Numbers => "f32, f16, i32 or u32; `cast` converts",
            Self::Bools => "bool; a comparison or `cast` gives that",
            Self::All => "any type",
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

            fn takes(self) -> Takes {
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
        Sqrt = sqrt, Floats;
        /// 1 / sqrt(x)
        Rsqrt = rsqrt, Floats;
        /// 1 / x
        Recip = recip, Floats;
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
        Floor = floor, Floats;
        /// The smallest integer not below.
        Ceil = ceil, Floats;
        /// The nearest integer, ties to even.
        Round = round, Floats;
        /// The integer part.
        Trunc = trunc, Floats;
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

/// Makes the expressions of a body, on scalars or lane by lane on vectors.
struct Body<'b, 'm> {
    builder: &'b mut FunctionBuilder<'m>,
}

impl Body<'_, '_> {
    fn get(&mut self, local: Handle<Local>) -> Value {
        self.builder.local(local)
    }

    /// A constant of the type of `local`, or of a vector of it.
    fn like(&mut self, local: Handle<Local>, value: f64) -> Value {
        let of = self.builder.local(local);
        let (scalar, lanes) = (self.builder.type_of(of).scalar(), self.builder.type_of(of).lanes());
        let literal = match scalar {
            Some(Scalar::I32) => Literal::I32(value as i32),
            Some(Scalar::U32) => Literal::U32(value as u32),
            Some(Scalar::Bool) => Literal::Bool(value != 0.0),
            _ => Literal::F32(value as f32),
        };
        let literal = self.builder.literal(literal);
        match lanes {
            Some(lanes @ 2..) => self.builder.splat(literal, lanes),
            _ => literal,
        }
    }

    fn op(&mut self, operator: BinaryOperator, left: Value, right: Value) -> Value {
        self.builder.binary(operator, left, right)
    }

    fn math(&mut self, function: MathFunction, of: Value) -> Value {
        self.builder.math(function, vec![of])
    }

    fn is_float(&mut self, local: Handle<Local>) -> bool {
        let of = self.builder.local(local);
        self.builder.type_of(of).scalar() == Some(Scalar::F32)
    }

    /// 1 / (1 + exp(-x))
    fn sigmoid(&mut self, x: Handle<Local>) -> Value {
        let (value, one, numerator) = (self.get(x), self.like(x, 1.0), self.like(x, 1.0));
        let negative = self.builder.unary(UnaryOperator::Negate, value);
        let power = self.math(MathFunction::Exp, negative);
        let sum = self.op(BinaryOperator::Add, one, power);
        self.op(BinaryOperator::Divide, numerator, sum)
    }

    /// `0.5 * x * (1 + inner)`
    fn half_gate(&mut self, x: Handle<Local>, inner: Value) -> Value {
        let (value, half, one) = (self.get(x), self.like(x, 0.5), self.like(x, 1.0));
        let scaled = self.op(BinaryOperator::Multiply, half, value);
        let sum = self.op(BinaryOperator::Add, one, inner);
        self.op(BinaryOperator::Multiply, scaled, sum)
    }

    fn unary(&mut self, function: UnaryFunction, x: Handle<Local>) -> Value {
        use BinaryOperator::{Add, Divide, Less, Multiply, NotEqual};
        use UnaryFunction as F;
        let simple = match function {
            F::Abs => Some(MathFunction::Abs),
            F::Exp => Some(MathFunction::Exp),
            F::Exp2 => Some(MathFunction::Exp2),
            F::Log => Some(MathFunction::Ln),
            F::Log2 => Some(MathFunction::Log2),
            F::Sqrt => Some(MathFunction::Sqrt),
            F::Rsqrt => Some(MathFunction::InverseSqrt),
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
        let value = self.get(x);
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
            F::Relu => {
                // A NaN is not below zero, and stays.
                let (zero, other, again) = (self.like(x, 0.0), self.like(x, 0.0), self.get(x));
                let below = self.op(Less, value, zero);
                self.builder.select(below, other, again)
            }
            F::Sign => {
                // The builtin gives 1 for +0 and -1 for -0; a zero stays a zero here.
                let (zero, again, other) = (self.like(x, 0.0), self.get(x), self.get(x));
                let is_not_zero = self.op(NotEqual, value, zero);
                let sign = self.math(MathFunction::Signum, again);
                self.builder.select(is_not_zero, sign, other)
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
            | F::Rsqrt
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

    fn binary(&mut self, function: BinaryFunction, a: Handle<Local>, b: Handle<Local>) -> Value {
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
    fn extreme(&mut self, function: MathFunction, a: Handle<Local>, b: Handle<Local>) -> Value {
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

    fn cast(&mut self, to: ElementType, x: Handle<Local>) -> Value {
        let value = self.get(x);
        match (self.builder.type_of(value).scalar(), to) {
            (Some(Scalar::F32), ElementType::F32 | ElementType::F16)
            | (Some(Scalar::I32), ElementType::I32)
            | (Some(Scalar::U32), ElementType::U32)
            | (Some(Scalar::Bool), ElementType::Bool) => value,
            (_, ElementType::Bool) => {
                let zero = self.like(x, 0.0);
                self.op(BinaryOperator::NotEqual, value, zero)
            }
            // The value of a half map is an `f32`; who stores it rounds it.
            (_, ElementType::F32 | ElementType::F16) => self.builder.convert(value, Scalar::F32),
            (_, ElementType::I32) => self.builder.convert(value, Scalar::I32),
            (_, ElementType::U32) => self.builder.convert(value, Scalar::U32),
        }
    }
}

fn count(inputs: &[TensorType], expected: usize) -> Result<(), OpError> {
    if inputs.len() == expected {
        return Ok(());
    }
    Err(OpError::InputCount { given: inputs.len(), expected })
}

/// The shape of a map of these inputs.
fn map_shape(names: &[&'static str], inputs: &[TensorType]) -> Result<Shape, OpError> {
    broadcast(inputs.iter().map(|input| input.shape.as_slice())).map_err(|(axis, known, extent)| {
        // The input at fault is the first that does not fit those before it.
        let at = (1..inputs.len())
            .find(|end| broadcast(inputs[..=*end].iter().map(|input| input.shape.as_slice())).is_err())
            .unwrap_or(0);
        OpError::Shape {
            input: names[at],
            given: inputs[at].to_string(),
            expected: format!("an extent that broadcasts with {known}, not {extent}, on axis -{}", axis + 1),
        }
    })
}

fn element_error(input: &'static str, given: ElementType, expected: impl Into<String>) -> OpError {
    OpError::ElementType { input, given, expected: expected.into() }
}

fn elements(outputs: &[TensorType]) -> Dim {
    outputs.iter().map(TensorType::elements).fold(Dim::from(0i64), |sum, count| sum + count)
}

/// The reference of a map: `f` at each position, with broadcasting worked out by division.
fn each(inputs: &[HostTensor], shape: &[usize], mut f: impl FnMut(&[f64]) -> f64) -> Vec<HostTensor> {
    let total: usize = shape.iter().product();
    let mut arguments = vec![0.0; inputs.len()];
    let values = (0..total)
        .map(|linear| {
            for (argument, input) in arguments.iter_mut().zip(inputs) {
                let (mut rest, mut at, mut stride) = (linear, 0, 1);
                for back in 1..=shape.len() {
                    let coordinate = rest % shape[shape.len() - back];
                    rest /= shape[shape.len() - back];
                    if back <= input.shape.len() {
                        let extent = input.shape[input.shape.len() - back];
                        at += if extent == 1 { 0 } else { coordinate } * stride;
                        stride *= extent;
                    }
                }
                *argument = input.values[at];
            }
            f(&arguments)
        })
        .collect();
    vec![HostTensor { shape: shape.to_vec(), values }]
}

impl Op for Unary {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        count(inputs, 1)?;
        if !self.function.takes().allows(inputs[0].element) {
            return Err(element_error("x", inputs[0].element, self.function.takes().words()));
        }
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        use UnaryFunction as F;
        each(inputs, &outputs[0], |arguments| {
            let x = arguments[0];
            match self.function {
                F::Neg => -x,
                F::Abs => x.abs(),
                F::Sign if x == 0.0 || x.is_nan() => x,
                F::Sign => x.signum(),
                F::Sqr => x * x,
                F::Relu => {
                    if x < 0.0 {
                        0.0
                    } else {
                        x
                    }
                }
                F::Exp => x.exp(),
                F::Exp2 => x.exp2(),
                F::Log => x.ln(),
                F::Log2 => x.log2(),
                F::Sqrt => x.sqrt(),
                F::Rsqrt => 1.0 / x.sqrt(),
                F::Recip => 1.0 / x,
                F::Tanh => x.tanh(),
                F::Erf => real::erf(x),
                F::Gelu => 0.5 * x * (1.0 + real::erf(x / 2f64.sqrt())),
                F::GeluTanh => {
                    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
                }
                F::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                F::Silu => x / (1.0 + (-x).exp()),
                F::Sin => x.sin(),
                F::Cos => x.cos(),
                F::Floor => x.floor(),
                F::Ceil => x.ceil(),
                F::Round => real::round_ties_even(x),
                F::Trunc => x.trunc(),
                F::LogicalNot => f64::from(u8::from(x == 0.0)),
            }
        })
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> Dim {
        elements(outputs)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }

    fn in_place(&self) -> &'static [(usize, usize)] {
        &[(0, 0)]
    }
}

impl Map for Unary {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        Body { builder }.unary(self.function, elements[0])
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Binary {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("element", self.element.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        use BinaryFunction as F;
        count(inputs, 2)?;
        if !self.function.takes().allows(inputs[0].element) {
            return Err(element_error("a", inputs[0].element, self.function.takes().words()));
        }
        if inputs[0].element != self.element {
            return Err(element_error("a", inputs[0].element, format!("{}, as the op says", self.element)));
        }
        if inputs[1].element != self.element {
            let expected = format!("{0}, as `a` is; `cast` to {0} converts", self.element);
            return Err(element_error("b", inputs[1].element, expected));
        }
        let shape = map_shape(&["a", "b"], inputs)?;
        let compares = matches!(self.function, F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge);
        let element = if compares { ElementType::Bool } else { self.element };
        Ok(vec![TensorType { element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        use BinaryFunction as F;
        let truth = |value: bool| f64::from(u8::from(value));
        // Integers wrap modulo 2^32 into their range; their values are exact in `f64`, but for products, which go through `i128`.
        let wrap = |value: i128| match self.element {
            ElementType::I32 => f64::from(value as i32),
            _ => f64::from(value as u32),
        };
        let whole = matches!(self.element, ElementType::I32 | ElementType::U32);
        each(inputs, &outputs[0], |arguments| {
            let (a, b) = (arguments[0], arguments[1]);
            let (m, n) = (a as i128, b as i128);
            match self.function {
                F::Add if whole => wrap(m + n),
                F::Sub if whole => wrap(m - n),
                F::Mul if whole => wrap(m * n),
                F::Div if whole => wrap(if n == 0 { 0 } else { m / n }),
                F::Rem if whole => wrap(if n == 0 { 0 } else { m % n }),
                F::Add => a + b,
                F::Sub => a - b,
                F::Mul => a * b,
                F::Div => a / b,
                F::Rem => a % b,
                F::Min | F::Max if a.is_nan() || b.is_nan() => f64::NAN,
                F::Min => a.min(b),
                F::Max => a.max(b),
                F::Pow => a.powf(b),
                F::Eq => truth(a == b),
                F::Ne | F::LogicalXor => truth(a != b),
                F::Lt => truth(a < b),
                F::Le => truth(a <= b),
                F::Gt => truth(a > b),
                F::Ge => truth(a >= b),
                F::LogicalAnd => truth(a != 0.0 && b != 0.0),
                F::LogicalOr => truth(a != 0.0 || b != 0.0),
            }
        })
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> Dim {
        elements(outputs)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Binary {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        Body { builder }.binary(self.function, elements[0], elements[1])
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        count(inputs, 3)?;
        if inputs[0].element != ElementType::Bool {
            return Err(element_error("condition", inputs[0].element, Takes::Bools.words()));
        }
        if inputs[2].element != inputs[1].element {
            let expected = format!("{0}, as `accept` is; `cast` to {0} converts", inputs[1].element);
            return Err(element_error("reject", inputs[2].element, expected));
        }
        let shape = map_shape(&["condition", "accept", "reject"], inputs)?;
        Ok(vec![TensorType { element: inputs[1].element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(inputs, &outputs[0], |arguments| if arguments[0] != 0.0 { arguments[1] } else { arguments[2] })
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Where {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        let (condition, accept, reject) =
            (builder.local(elements[0]), builder.local(elements[1]), builder.local(elements[2]));
        builder.select(condition, accept, reject)
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("from", self.from.to_string()), ("to", self.to.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        count(inputs, 1)?;
        if inputs[0].element != self.from {
            return Err(element_error("x", inputs[0].element, format!("{}, as the op says", self.from)));
        }
        Ok(vec![TensorType { element: self.to, shape: inputs[0].shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let whole = !self.from.is_float();
        each(inputs, &outputs[0], |arguments| {
            let x = arguments[0];
            match self.to {
                ElementType::F32 => f64::from(x as f32),
                ElementType::F16 => half::f16::from_f64(x).to_f64(),
                ElementType::Bool => f64::from(u8::from(x != 0.0)),
                ElementType::I32 if whole => f64::from(x as i64 as i32),
                ElementType::U32 if whole => f64::from(x as i64 as u32),
                ElementType::I32 => f64::from(x as i32),
                ElementType::U32 => f64::from(x as u32),
            }
        })
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Cast {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        Body { builder }.cast(self.to, elements[0])
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Contiguous {
    fn name(&self) -> &'static str {
        "contiguous"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        count(inputs, 1)?;
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        inputs.to_vec()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Contiguous {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        builder.local(elements[0])
    }

    fn lanewise(&self) -> bool {
        true
    }
}

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
                    self.add_one(Unary { function: UnaryFunction::$variant }, &[x])
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
