//! Pulls: ops whose output element is an expression of its coordinates and of input elements at computed coordinates.
//!
//! Such an op says once, in [`Moves::element`] or [`Computes::element`], how an element is made, on a [`Machine`] of which it knows nothing: one machine writes a kernel in IR
//! (`compile::pull::emit`), another is the processor itself (`compile::pull::host`). Everything that depends on shapes comes as a number of its [`Frame`], so that tensors
//! of other extents share a kernel.
//!
//! * [`Moves`]: elements are passed on as they are, or are constants. What is moved may be wider than an element: axes behind those that the op works on pass through, and as
//!   many neighbours are moved at once as divide the run and are aligned, up to 16 bytes, whatever the element type.
//! * [`Computes`]: elements are computed with, in what their type is computed in.
//!
//! ```
//! use trefoil_graph::TensorType;
//! use trefoil_graph::pull::{Frame, Given, Machine, Moves};
//!
//! /// The first axis backwards.
//! #[derive(Debug)]
//! struct Backwards;
//!
//! impl Moves for Backwards {
//!     fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
//!         Frame { tail: output.rank() - 1, numbers: vec![inputs[0].shape[0].clone()], ..Frame::default() }
//!     }
//!
//!     fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
//!         let last = given.numbers[0] - machine.constant(1);
//!         machine.read(0, &[last - given.at[0]])
//!     }
//! }
//! ```

use std::fmt;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Not, Rem, Sub};

use trefoil_codegen::ir::MathFunction;

use crate::compile::pull::emit::{Emit, Term};
use crate::compile::pull::host::coordinates::Whole;
use crate::compile::pull::host::lanes::Lanes;
use crate::compile::pull::host::sources::Sources;
use crate::compile::pull::host::{Position, calculator};
use crate::dim::Dim;
use crate::op::Candidate;
use crate::types::{ElementType, TensorType};

/// A coordinate or a distance: 32 bits with a sign, which wrap. Division is toward zero, and by 0 gives 0.
pub trait Index:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Rem<Output = Self>
{
}

/// Whether something holds. Both sides of `&` and `|` are evaluated.
pub trait Truth: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}

/// Elements as they are computed with.
pub trait Number: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {}

/// What an op works on and needs to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// So many axes in front pass through: element and source have the same coordinates there.
    pub lead: usize,
    /// So many axes at the end pass through.
    pub tail: usize,
    /// So many inputs, the last ones, hold indices: they are read by [`Machine::index`], with all of their coordinates.
    pub indices: usize,
    /// Extents and distances along the last axis that does not pass through.
    pub distances: Vec<Dim>,
    /// Whether elements along that axis may be moved in blocks: as long as a block divides the axis and all of `distances`, a block's elements lie one after the other
    /// where they are read too. Then coordinates and distances along this axis count blocks.
    pub in_blocks: bool,
    /// Other numbers.
    pub numbers: Vec<Dim>,
    /// Numbers for [`Calculator::real`].
    pub reals: Vec<f64>,
}

/// What an element's expression is made of.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a, I> {
    /// The element's coordinates along the axes that do not pass through.
    pub at: &'a [I],
    /// [`Frame::distances`].
    pub distances: &'a [I],
    /// [`Frame::numbers`].
    pub numbers: &'a [I],
}

/// What evaluates an op's expression.
pub trait Machine: Copy {
    /// Coordinates.
    type Index: Index;
    /// Conditions.
    type Truth: Truth;
    /// An element, or several that are moved together.
    type Value: Copy;

    /// A number.
    fn constant(self, value: i32) -> Self::Index;

    /// An element of an input that holds integers, at all of its coordinates; -1 for one that has more than 32 bits or is above 2^31 - 1.
    fn index(self, input: usize, at: &[Self::Index]) -> Self::Index;

    /// An element of an input, at its coordinates along the axes that do not pass through; they must be within the input.
    fn read(self, input: usize, at: &[Self::Index]) -> Self::Value;

    /// An element by its bits in memory.
    fn bits(self, bits: u64) -> Self::Value;

    /// One of two elements; only the one that is wanted is read.
    fn choose(
        self,
        condition: Self::Truth,
        accept: impl FnOnce() -> Self::Value,
        reject: impl FnOnce() -> Self::Value,
    ) -> Self::Value;

    /// One of two coordinates.
    fn select(self, condition: Self::Truth, accept: Self::Index, reject: Self::Index) -> Self::Index;

    /// `left < right`
    fn less(self, left: Self::Index, right: Self::Index) -> Self::Truth;

    /// `left == right`
    fn equal(self, left: Self::Index, right: Self::Index) -> Self::Truth;

    /// Whether a coordinate is within an axis.
    fn within(self, at: Self::Index, extent: Self::Index) -> Self::Truth {
        !self.less(at, self.constant(0)) & self.less(at, extent)
    }

    /// The smaller.
    fn minimum(self, left: Self::Index, right: Self::Index) -> Self::Index {
        self.select(self.less(left, right), left, right)
    }

    /// The larger.
    fn maximum(self, left: Self::Index, right: Self::Index) -> Self::Index {
        self.select(self.less(left, right), right, left)
    }

    /// The remainder that is not negative.
    fn modulo(self, value: Self::Index, divisor: Self::Index) -> Self::Index {
        let rest = value % divisor;
        self.select(self.less(rest, self.constant(0)), rest + divisor, rest)
    }

    /// An element of an input where a condition holds, elsewhere 0.
    fn read_if(self, condition: Self::Truth, input: usize, at: &[Self::Index]) -> Self::Value {
        self.choose(condition, || self.read(input, at), || self.bits(0))
    }
}

/// A machine that computes with elements.
pub trait Calculator: Machine<Value: Number> {
    /// A number of the elements' type.
    fn value(self, value: f64) -> Self::Value;

    /// What no number is below: minus infinity, or the least integer.
    fn lowest(self) -> Self::Value;

    /// What no number is above: infinity, or the largest integer.
    fn highest(self) -> Self::Value;

    /// That one of [`Frame::reals`].
    fn real(self, position: usize) -> Self::Value;

    /// A coordinate as an element.
    fn of_index(self, index: Self::Index) -> Self::Value;

    /// The largest integer not above a float, as a coordinate.
    fn floor(self, value: Self::Value) -> Self::Index;

    /// `left < right`; false with a NaN.
    fn below(self, left: Self::Value, right: Self::Value) -> Self::Truth;

    /// Whether a float is a NaN; false for integers.
    fn is_nan(self, value: Self::Value) -> Self::Truth;

    /// One of two elements, both evaluated.
    fn pick(self, condition: Self::Truth, accept: Self::Value, reject: Self::Value) -> Self::Value;

    /// A function of one or two floats.
    fn math(self, function: Function, of: Self::Value, with: Self::Value) -> Self::Value;

    /// What becomes of values and indices when `step` is done for 0, 1 and so on below `count`.
    fn repeat<const V: usize, const I: usize>(
        self,
        count: Self::Index,
        values: [Self::Value; V],
        indices: [Self::Index; I],
        step: impl FnMut(Self::Index, [Self::Value; V], [Self::Index; I]) -> ([Self::Value; V], [Self::Index; I]),
    ) -> ([Self::Value; V], [Self::Index; I]);
}

/// Functions of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The absolute value, of integers too.
    Abs,
    /// The square root.
    Sqrt,
    /// The nearest integer, ties to even.
    Round,
    /// The first to the power of the second.
    Pow,
    /// e to the power.
    Exp,
    /// The hyperbolic tangent.
    Tanh,
    /// The error function.
    Erf,
}

impl Function {
    pub(crate) fn in_ir(self) -> MathFunction {
        match self {
            Self::Abs => MathFunction::Abs,
            Self::Sqrt => MathFunction::Sqrt,
            Self::Round => MathFunction::RoundTiesEven,
            Self::Pow => MathFunction::Powf,
            Self::Exp => MathFunction::Exp,
            Self::Tanh => MathFunction::Tanh,
            Self::Erf => MathFunction::Erf,
        }
    }

    pub(crate) fn arguments(self) -> usize {
        if self == Self::Pow { 2 } else { 1 }
    }
}

/// An op that passes elements on.
pub trait Moves: fmt::Debug + Sync {
    /// What it works on.
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame;

    /// The element at given coordinates.
    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value;

    /// The axis along which the op's results for some inputs, one after the other, are its result for all: so a device that binds fewer buffers does it in parts.
    fn joins(&self) -> Option<usize> {
        None
    }
}

/// An op that computes with elements.
pub trait Computes: fmt::Debug + Sync {
    /// What it works on.
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame;

    /// The type that elements are computed in: inputs are converted to what that type is computed with.
    fn computes_in(&self, inputs: &[TensorType], output: &TensorType) -> ElementType;

    /// The element at given coordinates.
    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C>;
}

/// What an element is made as.
#[derive(Clone, Copy, Debug)]
pub enum Made<C: Calculator> {
    /// A value.
    Value(C::Value),
    /// A coordinate.
    Index(C::Index),
}

/// What the way of a pull is called where an op has others too.
pub const ELEMENT_BY_ELEMENT: &str = "element by element";

/// A pull, whatever its expression.
pub struct Pull<'a> {
    pub(crate) expression: Box<dyn Expression + 'a>,
    /// Better ways, where they can do it.
    pub(crate) candidates: Vec<Box<dyn Candidate + 'a>>,
}

impl<'a> Pull<'a> {
    /// One that passes elements on.
    pub fn moves<T: Moves>(op: &'a T) -> Self {
        Self { expression: Box::new(Moving(op)), candidates: Vec::new() }
    }

    /// One that computes with elements.
    pub fn computes<T: Computes>(op: &'a T) -> Self {
        Self { expression: Box::new(Computing(op)), candidates: Vec::new() }
    }

    /// With candidates of its own kernels: the cheapest that can do it does it, and if none can, the expression is evaluated.
    pub fn unless(self, candidates: Vec<Box<dyn Candidate + 'a>>) -> Self {
        Self { candidates, ..self }
    }
}

impl fmt::Debug for Pull<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pull")
    }
}

/// An expression on every machine that there is.
pub(crate) trait Expression: Sync {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame;

    /// What elements are computed in, if they are not only moved.
    fn computes_in(&self, inputs: &[TensorType], output: &TensorType) -> Option<ElementType>;

    /// Writes the expression; gives the locals that hold the result.
    fn emit<'e, 'm>(&self, emit: &'e Emit<'m>, given: Given<'_, Term<'e, 'm>>) -> Vec<Term<'e, 'm>>;

    /// Where the elements lie.
    fn find(&self, at: &Position<'_>, given: Given<'_, Whole>) -> Sources;

    /// The elements in `f64`.
    fn real(&self, at: &calculator::Calculation<'_, f64>, given: Given<'_, Whole>) -> Lanes<f64>;

    /// The elements as integers.
    fn whole(&self, at: &calculator::Calculation<'_, i64>, given: Given<'_, Whole>) -> Lanes<i64>;

    fn joins(&self) -> Option<usize>;
}

struct Moving<'a, T>(&'a T);
struct Computing<'a, T>(&'a T);

impl<T: Moves> Expression for Moving<'_, T> {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        self.0.frame(inputs, output)
    }

    fn computes_in(&self, _: &[TensorType], _: &TensorType) -> Option<ElementType> {
        None
    }

    fn emit<'e, 'm>(&self, emit: &'e Emit<'m>, given: Given<'_, Term<'e, 'm>>) -> Vec<Term<'e, 'm>> {
        emit.lanes(self.0.element(emit, given))
    }

    fn find(&self, at: &Position<'_>, given: Given<'_, Whole>) -> Sources {
        self.0.element(at, given)
    }

    fn real(&self, _: &calculator::Calculation<'_, f64>, _: Given<'_, Whole>) -> Lanes<f64> {
        Lanes::Same(f64::NAN)
    }

    fn whole(&self, _: &calculator::Calculation<'_, i64>, _: Given<'_, Whole>) -> Lanes<i64> {
        Lanes::Same(0)
    }

    fn joins(&self) -> Option<usize> {
        self.0.joins()
    }
}

impl<T: Computes> Expression for Computing<'_, T> {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        self.0.frame(inputs, output)
    }

    fn computes_in(&self, inputs: &[TensorType], output: &TensorType) -> Option<ElementType> {
        Some(self.0.computes_in(inputs, output))
    }

    fn emit<'e, 'm>(&self, emit: &'e Emit<'m>, given: Given<'_, Term<'e, 'm>>) -> Vec<Term<'e, 'm>> {
        match self.0.element(emit, given) {
            Made::Value(value) => emit.lanes(value),
            Made::Index(index) => vec![index],
        }
    }

    fn find(&self, _: &Position<'_>, _: Given<'_, Whole>) -> Sources {
        Sources::Bits(0)
    }

    fn real(&self, at: &calculator::Calculation<'_, f64>, given: Given<'_, Whole>) -> Lanes<f64> {
        match self.0.element(at, given) {
            Made::Value(value) => value.0,
            Made::Index(index) => index.lanes().map(|index| index as f64),
        }
    }

    fn whole(&self, at: &calculator::Calculation<'_, i64>, given: Given<'_, Whole>) -> Lanes<i64> {
        match self.0.element(at, given) {
            Made::Value(value) => value.0,
            Made::Index(index) => index.lanes(),
        }
    }

    fn joins(&self) -> Option<usize> {
        None
    }
}
