//! What an op is: one definition, from which everything about it is derived.
//!
//! An op is a value of a type that implements [`Op`]; its fields are its attributes. The library's ops and a user's own are alike: the
//! scheduler knows ops only through this trait. What an op does on a device is the work of its [`Candidate`]s; a *map* (one output element from the input
//! elements at the same position) has none, but a body in IR, from which fusion builds kernels; a *pull* ([`crate::pull`]; elements at computed positions) has an expression, from which a
//! kernel and a function of the host are built; a *view* (the same elements, otherwise arranged) has a layout rule
//! instead and no kernel at all.
//!
//! What ops and candidates answer with, and the scheduler alone takes apart, is not exhaustive: there will be more kinds of ops, more that a kernel binds, and more reasons.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{Expression, Handle, Local};
use trefoil_dsl::device::Properties;
use trefoil_dsl::product::LibraryProduct;

use crate::dim::{Dim, DimError, Symbol};
use crate::ops::state::Update;
use crate::pull::{ELEMENT_BY_ELEMENT, Pull};
use crate::types::{Layout, TensorType};

/// A tensor's values on the host, for references and tests: every element type as `f64`. 64-bit integers are exact up to 2^53 here, and rounded
/// beyond; [`crate::Outputs::get`] gives all of their bits.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Elements, the last axis fastest.
    pub values: Vec<f64>,
}

/// The definition of an op. `examples/own_op.rs` is a program with a kernel of its own as one.
pub trait Op: fmt::Debug + Send + Sync + Any {
    /// Its name in the op table, such as `softmax`.
    fn name(&self) -> &'static str;

    /// Its attributes as text, in declaration order: equal texts mean equal ops.
    fn attributes(&self) -> Vec<(&'static str, String)>;

    /// The symbols in its attributes; those that are in the types of its inputs and outputs too may be left out. A run may give values to symbols that a type or an op of its graph has, or that a kernel is given: one
    /// that is nowhere else and that no op tells is refused there as unknown, rather than left out of account.
    fn symbols(&self) -> Vec<Symbol> {
        Vec::new()
    }

    /// The types of its outputs.
    ///
    /// # Errors
    /// The inputs do not fit; the message names the input and says what was expected.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError>;

    /// Its outputs for given inputs, computed in `f64` by the plainest means, without any kernel's code: one for each of the shapes `outputs`. An empty list says that there is no reference for these:
    /// [`crate::reference::evaluate`] answers it with an error, and a debugging run has nothing to compare with.
    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor>;

    /// Floating-point operations of one run.
    fn flops(&self, inputs: &[TensorType], outputs: &[TensorType]) -> Dim;

    /// What the scheduler does with it.
    fn kind(&self) -> OpKind<'_>;
}

/// How the scheduler treats an op.
#[non_exhaustive]
pub enum OpKind<'a> {
    /// A tensor that somebody gives: an input, a param, a state.
    Leaf,
    /// A tensor of one value given by the graph: the bits of an element in memory.
    Fill(u64),
    /// Element by element.
    Map(&'a dyn Map),
    /// The same elements, otherwise arranged.
    View(&'a dyn View),
    /// A version of a state, made in the state's own memory.
    Update(&'a Update),
    /// An expression of coordinates and of elements at computed coordinates.
    Pull(Pull<'a>),
    /// Work of its own, by one of several candidates, best first.
    Kernels(Vec<Box<dyn Candidate + 'a>>),
}

impl OpKind<'_> {
    /// The names of the ways among which the scheduler chooses, for forcing and forbidding; none where there is nothing to choose.
    pub fn ways(&self) -> Vec<&'static str> {
        match self {
            Self::Kernels(candidates) => candidates.iter().map(|known| known.name()).collect(),
            Self::Pull(pull) if !pull.candidates.is_empty() => {
                pull.candidates.iter().map(|known| known.name()).chain([ELEMENT_BY_ELEMENT]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The body of a map.
pub trait Map {
    /// Adds code that computes the output element from the input elements, which are immutable locals of the types that maps compute with
    /// ([`crate::ElementType::computed`]: 16-bit floats already converted to `f32`, bools as `Bool`). It may use each local any number of times through
    /// [`FunctionBuilder::local`]. The value must be of the type that the output's element type is computed with.
    fn body(&self, body: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Handle<Expression>;

    /// Whether [`Map::body`] also works when the elements are vectors of such elements, lane by lane, and then gives a vector. Generated code
    /// is shorter so; otherwise the body is repeated for each lane.
    fn lanewise(&self) -> bool {
        false
    }
}

/// The rule of a view.
pub trait View {
    /// Where the output's elements lie if the input's lie as `layout` says; `None` if strides cannot say it, so that the elements must be copied first.
    fn layout(&self, input: &TensorType, layout: &Layout, output: &TensorType) -> Option<Layout>;
}

/// One way to compute an op.
pub trait Candidate: fmt::Debug + Send + Sync {
    /// Names it in `explain`, and for forcing and forbidding.
    fn name(&self) -> &'static str;

    /// How it would do the work.
    ///
    /// # Errors
    /// It cannot, and why, in words for `explain`.
    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible>;

    /// How often its kernels read an element of that input at most, where it can do what is asked for: so often a region of maps is computed that goes into them. `None` if that is not known, or often; then none does, and none goes behind kernels that say so of all inputs (`compile::fuse::attach`).
    fn passes(&self, request: &Request<'_>, input: usize) -> Option<u32> {
        let _ = (request, input);
        None
    }
}

/// What a candidate is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The op's inputs.
    pub inputs: &'a [Operand],
    /// The op's outputs, contiguous.
    pub outputs: &'a [TensorType],
    /// The device.
    pub device: &'a Properties,
    /// Whether sums may depend on the order of execution.
    pub deterministic: bool,
}

/// A tensor that a candidate reads.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its type.
    pub ty: TensorType,
    /// How it lies in memory. A candidate that needs it to lie otherwise says so ([`Ineligible::NeedsContiguous`], [`Ineligible::NeedsAlong`]), and gets asked again after a copy.
    pub layout: Layout,
    /// Whether it is a param: the same in every run, so that packing pays.
    pub is_param: bool,
    /// Why its memory must stay as it is; `None` where nobody looks at it after this op, so that it may be written over ([`Slot::Over`]).
    pub kept: Option<String>,
}

/// Why a candidate cannot do it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ineligible {
    /// These inputs must be contiguous first.
    #[error("inputs {0:?} must be contiguous")]
    NeedsContiguous(Vec<usize>),
    /// The elements of an input along one axis must be neighbours in memory: it is copied with that axis behind the others.
    #[error("input {input} must be contiguous along axis {axis}")]
    NeedsAlong {
        /// The input.
        input: usize,
        /// The axis, from the first.
        axis: usize,
    },
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

/// How a candidate does the work.
#[derive(Clone, Debug)]
pub struct Implementation {
    /// One after the other.
    pub steps: Vec<Step>,
    /// Bytes of each piece of scratch memory, alive from the first step to the last.
    pub scratch: Vec<Dim>,
    /// A guess of its time in microseconds at the upper bounds of the symbols, to compare candidates.
    pub cost: f64,
}

impl Implementation {
    /// All that its steps bind, read and write.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.steps.iter().flat_map(|step| match step {
            Step::Kernel(step) => step.bindings.iter().chain(&[]),
            Step::Call(call) => call.reads.iter().chain(&call.writes),
        })
    }

    /// How many numbers a kernel of it counts in ([`Slot::Counters`]), if one does.
    ///
    /// # Errors
    /// They are none in number, or bound more than once: a node has counters of one kernel.
    pub(crate) fn counters(&self) -> Result<Option<u64>, String> {
        let mut counts = self.slots().filter_map(|slot| match slot {
            Slot::Counters(count) => Some(*count),
            Slot::Input(_) | Slot::Output(_) | Slot::Over { .. } | Slot::Scratch(_) | Slot::Empty => None,
        });
        match (counts.next(), counts.next()) {
            (Some(first), Some(second)) => {
                Err(format!("it binds counters twice, {first} and {second} of them; expected once at most"))
            }
            (Some(0), None) => Err("it binds 0 counters; expected 1 or more".to_owned()),
            (count, _) => Ok(count),
        }
    }
}

/// A piece of work on the device or the host.
#[derive(Clone, Debug)]
pub enum Step {
    /// A kernel.
    Kernel(KernelStep),
    /// A call of something that is no kernel.
    Call(CallStep),
}

/// A kernel with symbolic arguments.
#[derive(Clone, Debug)]
pub struct KernelStep {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// One for each of its bindings. What it reads and writes follows from the kernel's signature.
    pub bindings: Vec<Slot>,
    /// One for each of the author's parameters; lengths, offsets and the group count are filled in by the scheduler.
    pub params: Vec<ParamValue>,
    /// Its grid.
    pub grid: Grid,
}

/// What is called that is no kernel.
#[derive(Clone)]
#[non_exhaustive]
pub enum Callee {
    /// A function on the host, which gets the bytes of what is read and written in order, and the values of the numbers; only on the CPU device.
    Host(Arc<HostFunction>),
    /// A product by the library that the device names ([`Properties::matrix_library`]); there are no numbers.
    Product(LibraryProduct),
}

impl fmt::Debug for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(_) => f.write_str("Host"),
            Self::Product(product) => product.fmt(f),
        }
    }
}

/// A call with symbolic arguments.
#[derive(Clone, Debug)]
pub struct CallStep {
    /// Names it.
    pub name: &'static str,
    /// What is called.
    pub callee: Callee,
    /// What it reads.
    pub reads: Vec<Slot>,
    /// What it writes.
    pub writes: Vec<Slot>,
    /// Numbers, evaluated for each run.
    pub params: Vec<Dim>,
}

/// The code of a host step: bytes read, bytes written, numbers.
pub type HostFunction = dyn Fn(&[&[u8]], &mut [&mut [u8]], &[i64]) -> Result<(), String> + Send + Sync;

/// A tensor, scratch memory or counters of an op.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slot {
    /// The memory of that input, from its layout's offset on.
    Input(usize),
    /// That output.
    Output(usize),
    /// That output, which takes over the memory of an input that is not [`Operand::kept`]: kernels find there what the input was, and what they do not write stays.
    Over {
        /// The output.
        output: usize,
        /// The input, of the same type.
        input: usize,
    },
    /// That piece of scratch memory.
    Scratch(usize),
    /// So many counters, at the upper bounds of the symbols and at least one, for a binding of `&[Atomic<u32>]`, by which workgroups of one launch find out which of them is the last. One binding of an op has them. A kernel that binds them finds zeros and leaves zeros: they lie in memory that nothing else shares,
    /// which is cleared once, when it is made, and runs that use it never overlap. A kernel is done as a whole, or the device is lost.
    Counters(u64),
    /// An empty slice, for an optional operand that is not there.
    Empty,
}

/// The value of a kernel parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamValue {
    /// An integer that may depend on symbols, for `u32`, `i32` and `usize` parameters.
    Dim(Dim),
    /// A vector or an array of such integers.
    Dims(Vec<Dim>),
    /// A float.
    F32(f32),
    /// A vector or an array of floats.
    F32s(Vec<f32>),
    /// A bool.
    Bool(bool),
    /// An enum's discriminant.
    Enum(u32),
}

/// The grid of a kernel step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grid {
    /// At least this many invocations, in a linear grid.
    Invocations(Dim),
    /// This many workgroups, in a linear grid.
    Workgroups(Dim),
    /// This many workgroups along x, y, z.
    Volume([Dim; 3]),
}

/// What can be wrong when a node is added to a graph.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpError {
    /// The number of inputs.
    #[error("{given} inputs given, {expected} expected")]
    InputCount {
        /// How many were given.
        given: usize,
        /// How many are right.
        expected: usize,
    },
    /// An input has the wrong element type.
    #[error("input `{input}` is {given}; expected {expected}")]
    ElementType {
        /// The input's name in the op's definition.
        input: &'static str,
        /// What was given.
        given: crate::types::ElementType,
        /// What is right, in words; it names the cast that would help.
        expected: String,
    },
    /// An input has the wrong shape.
    #[error("input `{input}` is {given}; expected {expected}")]
    Shape {
        /// The input's name in the op's definition.
        input: &'static str,
        /// What was given.
        given: String,
        /// What is right.
        expected: String,
    },
    /// An attribute has an impossible value.
    #[error("attribute `{attribute}` is {given}; expected {expected}")]
    Attribute {
        /// The attribute.
        attribute: &'static str,
        /// What was given.
        given: String,
        /// What is right.
        expected: String,
    },
    /// A dimension makes no sense.
    #[error(transparent)]
    Dim(#[from] DimError),
}

impl fmt::Debug for OpError {
    /// As it is displayed: that is what a program prints whose `main` gives it back, and what `unwrap` says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
