//! Formulas over the elements of a map, written with Rust's operators and turned into IR.
//!
//! A [`Term`] is a node of a [`Sketch`], which holds a formula until it is complete: then it is known which values are wanted twice, and those become locals,
//! while the others stay within the expression that wants them. Numbers take the type of the sketch's elements, so that one formula serves every
//! type, and vectors of it lane by lane.

use std::cell::RefCell;
use std::ops;

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{
    BinaryOperator, Handle, Literal, Local, MathFunction, Precision, Scalar, Type, UnaryOperator,
};

use super::Value;
use crate::types::ElementType;

/// A formula on its way.
pub(super) struct Sketch {
    /// What numbers are made like.
    scalar: Option<Scalar>,
    /// What elements are in memory: 16-bit floats are computed as `f32`.
    element: ElementType,
    nodes: RefCell<Vec<Node>>,
}

#[derive(Clone)]
enum Node {
    Element(Handle<Local>),
    Number(f64),
    Word(u32),
    Unary(UnaryOperator, usize),
    Binary(BinaryOperator, usize, usize),
    Math(MathFunction, Vec<usize>),
    Cheaply(MathFunction, usize),
    Select(usize, usize, usize),
    Convert(Scalar, usize),
    Bits(Scalar, usize),
}

impl Node {
    fn operands(&self) -> Vec<usize> {
        match self {
            Self::Element(_) | Self::Number(_) | Self::Word(_) => Vec::new(),
            Self::Unary(_, of) | Self::Cheaply(_, of) | Self::Convert(_, of) | Self::Bits(_, of) => vec![*of],
            Self::Binary(_, left, right) => vec![*left, *right],
            Self::Math(_, of) => of.clone(),
            Self::Select(condition, accept, reject) => vec![*condition, *accept, *reject],
        }
    }
}

/// A value of a formula.
#[derive(Clone, Copy)]
pub(super) struct Term<'s> {
    sketch: &'s Sketch,
    node: usize,
}

/// What may stand beside a term: another, or a number.
pub(super) trait Operand<'s> {
    fn term(self, sketch: &'s Sketch) -> Term<'s>;
}

impl<'s> Operand<'s> for Term<'s> {
    fn term(self, _: &'s Sketch) -> Self {
        self
    }
}

impl<'s> Operand<'s> for f64 {
    fn term(self, sketch: &'s Sketch) -> Term<'s> {
        sketch.add(Node::Number(self))
    }
}

impl Sketch {
    /// A formula over elements that are computed as that scalar.
    pub(super) fn new(scalar: Option<Scalar>, element: ElementType) -> Self {
        Self { scalar, element, nodes: RefCell::default() }
    }

    fn add(&self, node: Node) -> Term<'_> {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(node);
        Term { sketch: self, node: nodes.len() - 1 }
    }

    /// An element of an input.
    pub(super) fn element(&self, local: Handle<Local>) -> Term<'_> {
        self.add(Node::Element(local))
    }

    /// Writes the formula whose result is `root`; numbers are made like `like`.
    pub(super) fn write(&self, root: Term<'_>, like: Handle<Local>, builder: &mut FunctionBuilder<'_>) -> Value {
        let nodes = self.nodes.borrow();
        let mut uses = vec![0usize; nodes.len()];
        let mut open = vec![root.node];
        while let Some(node) = open.pop() {
            uses[node] += 1;
            if uses[node] == 1 {
                open.extend(nodes[node].operands());
            }
        }
        let bound = vec![None; nodes.len()];
        Writer { nodes: &nodes, uses, bound, like, builder }.value(root.node)
    }
}

struct Writer<'w, 'm> {
    nodes: &'w [Node],
    /// How often each node is wanted.
    uses: Vec<usize>,
    bound: Vec<Option<Handle<Local>>>,
    like: Handle<Local>,
    builder: &'w mut FunctionBuilder<'m>,
}

impl Writer<'_, '_> {
    fn value(&mut self, node: usize) -> Value {
        if let Some(local) = self.bound[node] {
            return self.builder.local(local);
        }
        let value = match &self.nodes[node] {
            Node::Element(local) => return self.builder.local(*local),
            Node::Number(number) => return number_like(self.builder, self.like, *number),
            Node::Word(word) => return word_like(self.builder, self.like, *word),
            Node::Unary(operator, of) => {
                let of = self.value(*of);
                self.builder.unary(*operator, of)
            }
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.value(*left), self.value(*right));
                self.builder.binary(*operator, left, right)
            }
            Node::Math(function, of) => {
                let of = of.iter().map(|of| self.value(*of)).collect();
                self.builder.math(*function, of)
            }
            Node::Cheaply(function, of) => {
                let of = self.value(*of);
                cheaply(self.builder, *function, of)
            }
            Node::Select(condition, accept, reject) => {
                let (condition, accept) = (self.value(*condition), self.value(*accept));
                let reject = self.value(*reject);
                self.builder.select(condition, accept, reject)
            }
            Node::Convert(scalar, of) => {
                let of = self.value(*of);
                if self.builder.type_of(of).scalar() == Some(*scalar) { of } else { self.builder.convert(of, *scalar) }
            }
            Node::Bits(scalar, of) => {
                let of = self.value(*of);
                self.builder.bitcast(of, *scalar)
            }
        };
        if self.uses[node] == 1 {
            return value;
        }
        let local = self.builder.bind("t", value);
        self.bound[node] = Some(local);
        self.builder.local(local)
    }
}

/// A function of the IR in the device's cheapest form: as a function of its own, since a precision is a whole function's.
fn cheaply(builder: &mut FunctionBuilder<'_>, function: MathFunction, of: Value) -> Value {
    let ty = builder.type_of(of).clone();
    let name = format!("{}_of_{}", function.name(), ty.lanes().unwrap_or(1));
    let known = builder.module().functions.iter().find(|(_, known)| known.name == name).map(|(handle, _)| handle);
    let callee = known.unwrap_or_else(|| {
        let ty = builder.module().intern(ty.clone());
        let mut body = FunctionBuilder::new(builder.module(), &name);
        body.precision(Precision::Fast);
        body.result(ty);
        let x = body.argument("x", ty);
        let x = body.get_argument(x);
        let value = body.math(function, vec![x]);
        body.return_value(Some(value));
        body.finish()
    });
    builder.call(callee, vec![of], ty)
}

/// A constant of the type of `local`, or of a vector of it: the nearest of a float, the integer, not 0 for true.
pub(super) fn number_like(builder: &mut FunctionBuilder<'_>, local: Handle<Local>, value: f64) -> Value {
    let of = builder.local(local);
    let (scalar, lanes) = (builder.type_of(of).scalar(), builder.type_of(of).lanes());
    let literal = match scalar {
        Some(Scalar::Bool) => Some(Literal::Bool(value != 0.0)),
        Some(scalar) if scalar.is_integer() => Literal::exact_integer(scalar, value as i128),
        Some(scalar) => Literal::float(scalar, value),
        None => None,
    };
    let literal = builder.literal(literal.unwrap_or(Literal::F32(value as f32)));
    in_lanes(builder, literal, lanes)
}

/// A word, or a vector of it where `local` is a vector.
fn word_like(builder: &mut FunctionBuilder<'_>, local: Handle<Local>, word: u32) -> Value {
    let of = builder.local(local);
    let lanes = builder.type_of(of).lanes();
    let word = builder.u32(word);
    in_lanes(builder, word, lanes)
}

/// A scalar in every lane, if there is more than one.
fn in_lanes(builder: &mut FunctionBuilder<'_>, scalar: Value, lanes: Option<u8>) -> Value {
    match lanes {
        Some(lanes @ 2..) => builder.splat(scalar, lanes),
        _ => scalar,
    }
}

impl<'s> Term<'s> {
    /// Whether elements are floats; the host's knowledge, so that a formula may differ by type.
    pub(super) fn is_float(self) -> bool {
        self.sketch.scalar.is_some_and(|scalar| !scalar.is_integer() && scalar != Scalar::Bool)
    }

    /// Whether elements are doubles.
    pub(super) fn is_double(self) -> bool {
        self.sketch.scalar == Some(Scalar::F64)
    }

    /// Whether elements are 16-bit floats.
    pub(super) fn is_half(self) -> bool {
        self.sketch.element.is_half()
    }

    /// Whether elements are `bf16`, which are as large as `f32`.
    pub(super) fn is_bf16(self) -> bool {
        self.sketch.element == ElementType::BF16
    }

    /// Whether a function of the IR takes elements like these.
    pub(super) fn takes(self, function: MathFunction) -> bool {
        self.sketch.scalar.is_some_and(|scalar| function.takes(&Type::Scalar(scalar)))
    }

    fn unary(self, operator: UnaryOperator) -> Self {
        self.sketch.add(Node::Unary(operator, self.node))
    }

    /// An operation of the IR.
    pub(super) fn binary(self, operator: BinaryOperator, other: impl Operand<'s>) -> Self {
        let other = other.term(self.sketch);
        self.sketch.add(Node::Binary(operator, self.node, other.node))
    }

    /// A number of the elements' type.
    pub(super) fn number(self, value: f64) -> Self {
        value.term(self.sketch)
    }

    /// A word of 32 bits, beside others.
    pub(super) fn word(self, word: u32) -> Self {
        self.sketch.add(Node::Word(word))
    }

    /// The bits of an `f32`, as a word.
    pub(super) fn bits(self) -> Self {
        self.sketch.add(Node::Bits(Scalar::U32, self.node))
    }

    /// The `f32` whose bits this word is.
    pub(super) fn float(self) -> Self {
        self.sketch.add(Node::Bits(Scalar::F32, self.node))
    }

    /// A function of the IR.
    pub(super) fn math(self, function: MathFunction) -> Self {
        self.sketch.add(Node::Math(function, vec![self.node]))
    }

    /// A function of the IR of floats of 32 bits in the device's cheapest form ([`Precision::Fast`]).
    pub(super) fn cheaply(self, function: MathFunction) -> Self {
        self.sketch.add(Node::Cheaply(function, self.node))
    }

    /// A function of the IR that takes more than this.
    pub(super) fn math_with<const N: usize>(self, function: MathFunction, others: [Self; N]) -> Self {
        let mut of = vec![self.node];
        of.extend(others.map(|other| other.node));
        self.sketch.add(Node::Math(function, of))
    }

    /// `accept` where this holds, else `reject`.
    pub(super) fn select(self, accept: impl Operand<'s>, reject: impl Operand<'s>) -> Self {
        let (accept, reject) = (accept.term(self.sketch), reject.term(self.sketch));
        self.sketch.add(Node::Select(self.node, accept.node, reject.node))
    }

    /// `value`, but this if it is a NaN: by its bits, which no driver takes for something that cannot be.
    pub(super) fn unless_nan(self, value: Self) -> Self {
        if !self.is_float() {
            return value;
        }
        self.math(MathFunction::IsNan).select(self, value)
    }

    /// `self == other`
    pub(super) fn equal(self, other: impl Operand<'s>) -> Self {
        self.binary(BinaryOperator::Equal, other)
    }

    /// Whether this float is an odd integer.
    pub(super) fn is_odd(self) -> Self {
        let rest = self - 2.0 * (self * 0.5).math(MathFunction::Trunc);
        rest.math(MathFunction::Abs).equal(1.0)
    }

    /// Whether its sign is a minus, that of a zero or of a NaN too.
    pub(super) fn has_minus(self) -> Self {
        self.number(1.0).math_with(MathFunction::Copysign, [self]).below(0.0)
    }

    /// `self < other`
    pub(super) fn below(self, other: impl Operand<'s>) -> Self {
        self.binary(BinaryOperator::Less, other)
    }

    /// `self > other`
    pub(super) fn above(self, other: impl Operand<'s>) -> Self {
        self.binary(BinaryOperator::Greater, other)
    }

    /// The bits moved up or down; the amount is an integer of any type, of which the IR takes as much as the value has bits.
    pub(super) fn shifted(self, operator: BinaryOperator, amount: Self) -> Self {
        let amount = self.sketch.add(Node::Convert(Scalar::U32, amount.node));
        self.binary(operator, amount)
    }

    /// The larger of this and a number that is no NaN; that number for NaN.
    pub(super) fn at_least(self, low: f64) -> Self {
        self.math_with(MathFunction::Max, [self.number(low)])
    }

    /// The smaller of this and a number that is no NaN; that number for NaN.
    pub(super) fn at_most(self, high: f64) -> Self {
        self.math_with(MathFunction::Min, [self.number(high)])
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident = $operator:ident;)*) => {$(
        impl<'s, R: Operand<'s>> ops::$trait<R> for Term<'s> {
            type Output = Term<'s>;
            fn $method(self, other: R) -> Term<'s> {
                self.binary(BinaryOperator::$operator, other)
            }
        }

        impl<'s> ops::$trait<Term<'s>> for f64 {
            type Output = Term<'s>;
            fn $method(self, other: Term<'s>) -> Term<'s> {
                self.term(other.sketch).binary(BinaryOperator::$operator, other)
            }
        }
    )*};
}

operators! {
    Add add = Add;
    Sub sub = Subtract;
    Mul mul = Multiply;
    Div div = Divide;
    Rem rem = Remainder;
    BitAnd bitand = And;
    BitOr bitor = Or;
    BitXor bitxor = Xor;
}

impl ops::Neg for Term<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.unary(UnaryOperator::Negate)
    }
}

impl ops::Not for Term<'_> {
    type Output = Self;
    fn not(self) -> Self {
        self.unary(UnaryOperator::Not)
    }
}
