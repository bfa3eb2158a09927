//! A body between inference and IR: the author's expressions, resolved, with types that may still be variables.
//!
//! Building IR needs every type and the effects of every function called, which are known only when the body's inference is done.

use std::rc::Rc;

use super::callables::Callable;
use super::infer::{Length, Ty};
use crate::ir::{
    AtomicFunction, BinaryOperator, BindingKind, Builtin, Handle, Literal, LogicalOperator, MathFunction, MatrixOrder,
    Ordering, Piece, Scope, Size, Span, SubgroupFunction, UnaryOperator, WorkgroupVariable,
};
use crate::target::Feature;

/// An expression.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub ty: Ty,
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Something wrong, which was reported.
    Error,
    /// `()`
    Unit,
    /// A literal of a known type.
    Literal(Literal),
    /// An integer literal; the type says which.
    Integer(u64),
    /// A float literal, or `T::lit(value)`: as `f32` and as `f64`.
    Float(f32, f64),
    /// A const generic or a length, of the node's integer type or `bool`.
    Constant(Size),
    /// The value of a constant, computed while compiling as far as that is possible.
    Fixed(Box<Node>),
    Param(u32),
    Argument(u32),
    Builtin(Builtin),
    Length(Origin),
    ViewExtent(u32, u32),
    ViewStride(u32, u32),
    /// What a place holds.
    Load(Place),
    Member(Box<Node>, u32),
    Element(Box<Node>, Box<Node>),
    /// An array or vector of these.
    Compose(Vec<Node>),
    /// A struct: fields by number, in the order in which they are written.
    Struct(Vec<(usize, Node)>),
    Splat(Box<Node>),
    Unary(UnaryOperator, Box<Node>),
    Binary(BinaryOperator, Box<Node>, Box<Node>),
    Logical(LogicalOperator, Box<Node>, Box<Node>),
    Math(MathFunction, Vec<Node>),
    /// `a / b`, rounded up.
    DivideUp(Box<Node>, Box<Node>),
    Select(Box<[Node; 3]>),
    Convert(Box<Node>),
    Bitcast(Box<Node>),
    TargetHas(Feature),
    Call(Rc<Callee>, Vec<Argument>),
    /// `condition, accept, reject, constant`
    If(Box<Node>, Box<Block>, Box<Block>, bool),
    Match(Box<Node>, Vec<Arm>),
    Block(Box<Block>),
    For(Box<For>),
    While(Box<Node>, Box<Block>),
    Loop(Box<Block>),
    Break,
    Continue,
    Return(Option<Box<Node>>),
    /// `place = value`, or `place operator= value`.
    Assign(Place, Option<Update>, Box<Node>),
    /// `slice.set_vec4(index, value)`, `view.set(index, value)`: an assignment whose place is evaluated first.
    Set(Place, Box<Node>),
    Barrier,
    UniformLoad(Place),
    /// `function, place, value, compare`
    Atomic(AtomicFunction, Ordering, Place, Option<Box<Node>>, Option<Box<Node>>),
    /// `device_fence()`, `workgroup_fence()`
    Fence(Scope),
    /// `copy_async(..)`, `async_commit()`, `async_wait(n)`
    Asynchronous(Box<Asynchronous>),
    Subgroup(SubgroupFunction, Box<Node>, Option<Box<Node>>),
    /// How many parts of a matrix of that type an invocation holds.
    MatrixLength(Ty),
    Matrix(Box<MatrixNode>),
    /// `copy_tile_async(..)`, `multiply_tiles(..)`
    Tile(Box<TileNode>),
    /// `assert!(..)`, `println!(..)`
    Report(Box<ReportNode>),
}

/// What `operator=` makes of what a place holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub operator: BinaryOperator,
    /// Whether the type is a type parameter where that is written, so that the operator is a call in Rust.
    pub is_of_parameter: bool,
}

/// What is told of if the condition does not hold, or in any case.
#[derive(Clone, Debug)]
pub(super) struct ReportNode {
    pub condition: Option<Node>,
    pub text: Vec<Piece>,
    pub values: Vec<Node>,
}

/// An operation on tiles, with its numbers in the order in which they are written.
#[derive(Clone, Debug)]
pub(super) enum TileNode {
    Copy(Handle<WorkgroupVariable>, Origin, [Node; 4]),
    Multiply(Place, [Handle<WorkgroupVariable>; 2], [Node; 3]),
}

/// An operation on matrices.
#[derive(Clone, Debug)]
pub(super) enum MatrixNode {
    Load(Place, Node, MatrixOrder),
    Store(Place, Node, MatrixOrder, Node),
    MultiplyAdd([Node; 3]),
}

/// Statements and a value.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub statements: Vec<Statement>,
    pub tail: Option<Node>,
    pub ty: Ty,
}

#[derive(Clone, Debug)]
pub(super) enum Statement {
    Let { local: usize, value: Option<Node>, span: Span },
    Evaluate(Node),
}

/// A local variable.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub name: String,
    pub ty: Ty,
    pub span: Span,
    /// Whether it is written after its declaration.
    pub assigned: bool,
}

/// What is done with copies that go on by themselves.
#[derive(Clone, Debug)]
pub(super) enum Asynchronous {
    Copy { to: Place, from: Place, count: Node },
    Commit,
    Wait(Node),
}

/// A `for` loop over a range.
#[derive(Clone, Debug)]
pub(super) struct For {
    pub local: usize,
    pub start: Node,
    pub end: Node,
    pub step: Option<Node>,
    pub inclusive: bool,
    pub reversed: bool,
    pub unroll: bool,
    pub body: Block,
}

/// An arm of a `match`.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub pattern: Pattern,
    pub body: Node,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Values from and to; an open end is the type's.
    Values(Vec<(Option<i64>, Option<i64>)>),
    /// `_`, or a name for the value.
    Any(Option<usize>),
    /// Something wrong, which was reported.
    Error,
}

/// A variable with a way into it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub root: Root,
    pub path: Vec<Projection>,
    pub ty: Ty,
    /// Whether it is an element of atomics.
    pub atomic: bool,
    /// Whether its slice or reference lets it be written.
    pub writable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Memory(Origin),
    Local(usize),
    /// An argument of the enclosing function that is passed by reference.
    Argument(u32),
}

#[derive(Clone, Debug)]
pub(super) enum Projection {
    Index(Node),
    Member(u32),
    Vector(Node, u8),
}

/// The variable that a slice or workgroup array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    Binding(u32),
    Workgroup(Handle<WorkgroupVariable>),
}

/// A name for a slice, view or workgroup array.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub origin: Origin,
    pub element: Ty,
    pub atomic: bool,
    pub writable: bool,
    /// The rank of a view.
    pub view: Option<u32>,
}

impl Slice {
    /// The slice of a binding.
    pub(super) fn of_binding(binding: u32, element: Ty, kind: BindingKind, view: Option<u32>) -> Self {
        Self {
            origin: Origin::Binding(binding),
            element,
            atomic: kind == BindingKind::Atomic,
            writable: kind == BindingKind::Mutable,
            view,
        }
    }
}

/// A function that is called, with what it is called for.
#[derive(Clone, Debug)]
pub(super) struct Callee {
    pub hash: String,
    pub types: Vec<Ty>,
    pub constants: Vec<Length>,
    pub origins: Vec<Origin>,
    pub functions: Vec<Callable>,
    pub span: Span,
}

/// An argument of a call; slices are none, they are the callee's origins.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    Value(Node),
    Reference(Place),
}
