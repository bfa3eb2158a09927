//! Statements: effects and control flow.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::asynchronous::Asynchronous;
use super::expression::{Expression, Place};
use super::matrix::MatrixOperation;
use super::module::Local;
use super::ordering::{Ordering, Scope};
use super::report::Report;
use super::span::Span;
use super::subgroup::SubgroupFunction;
use super::tile::TileOperation;
use super::types::Scalar;

/// A list of statements, run one after the other; locals that it declares are known until its end.
pub type Block = Vec<Statement>;

/// A statement and where it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// What it does.
    pub kind: StatementKind,
    /// Where it was written.
    pub span: Span,
}

/// What a statement does. See the module's essay for the meaning of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StatementKind {
    /// Declares a local. An immutable one always has a value; a mutable one may get it later.
    Let {
        /// The local; each is declared once.
        local: Handle<Local>,
        /// Its first value.
        value: Option<Handle<Expression>>,
    },
    /// Writes a value to a place of the same type.
    Store {
        /// Where.
        place: Place,
        /// What.
        value: Handle<Expression>,
    },
    /// Evaluates a call for what it does.
    Evaluate(Handle<Expression>),
    /// Runs one of two blocks.
    If {
        /// A `Bool`.
        condition: Handle<Expression>,
        /// If true.
        #[serde(deserialize_with = "super::nested::deserialize")]
        accept: Block,
        /// If false.
        #[serde(deserialize_with = "super::nested::deserialize")]
        reject: Block,
        /// `if const`: the condition is made of `TargetHas`, literals, generic constants and operators alone; lowering keeps one
        /// block.
        constant: bool,
    },
    /// Runs the case that has the selector's value, else the default.
    Switch {
        /// An integer or an enum.
        selector: Handle<Expression>,
        /// No value twice.
        cases: Vec<Case>,
        /// If no case fits.
        #[serde(deserialize_with = "super::nested::deserialize")]
        default: Block,
    },
    /// Runs the body with `local` at start, start + step and so on while it is below `end`. All three are evaluated once, before. The
    /// step is positive; one of 0 is taken as 1. A counter does not pass the end of its type: where the next step would, the loop ends.
    For {
        /// An immutable integer local, known in the body.
        local: Handle<Local>,
        /// The first value.
        start: Handle<Expression>,
        /// The value that is not reached.
        end: Handle<Expression>,
        /// How far from one to the next.
        step: Handle<Expression>,
        /// The body.
        #[serde(deserialize_with = "super::nested::deserialize")]
        body: Block,
        /// Whether the author wrote `unroll(..)`: start, end and step are then constants of the instance, the body neither
        /// breaks nor continues, and after lowering the loop is gone, or a plain one, or one that the
        /// target's compiler unrolls.
        unroll: bool,
    },
    /// Runs the body while the condition holds; it is evaluated before each run.
    While {
        /// A `Bool`.
        condition: Handle<Expression>,
        /// The body.
        #[serde(deserialize_with = "super::nested::deserialize")]
        body: Block,
    },
    /// Runs the body until it breaks or returns.
    Loop {
        /// The body.
        #[serde(deserialize_with = "super::nested::deserialize")]
        body: Block,
    },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// Leaves the function. In the kernel's own body there is no value.
    Return(Option<Handle<Expression>>),
    /// All invocations of the workgroup get here before any goes on, and see what the others wrote to workgroup memory and buffers.
    Barrier,
    /// A barrier, a load of one place by all invocations, and a barrier: the value is uniform.
    UniformLoad {
        /// Gets the value; immutable, declared here.
        result: Handle<Local>,
        /// In workgroup memory.
        place: Place,
    },
    /// An atomic operation.
    Atomic {
        /// Gets the value from before; immutable, declared here. Always there for `Load`, never for `Store`.
        result: Option<Handle<Local>>,
        /// A scalar that the function takes, in a binding with atomic access or in a workgroup variable of atomics.
        place: Place,
        /// What to do.
        function: AtomicFunction,
        /// With what; nothing for `Load`.
        value: Option<Handle<Expression>>,
        /// For `CompareExchange`, what must be there.
        compare: Option<Handle<Expression>>,
        /// What it orders beside itself.
        ordering: Ordering,
    },
    /// A copy to workgroup memory that goes on by itself, and the waiting for such.
    Asynchronous(Asynchronous),
    /// What the invocation did before comes before what it does after, for whom the scope reaches and who has a fence or an ordered atomic of its
    /// own: acquires and releases.
    Fence(Scope),
    /// An operation over the invocations of the subgroup.
    Subgroup {
        /// Gets the result; immutable, declared here.
        result: Handle<Local>,
        /// What to do.
        function: SubgroupFunction,
        /// A number (f32, i32, u32), vector of numbers or `Bool`, as the function takes, one from each invocation.
        value: Handle<Expression>,
        /// The lane, mask or distance, for those that take one: a `U32`, uniform for `Broadcast`.
        lane: Option<Handle<Expression>>,
    },
    /// An operation on matrices.
    Matrix {
        /// Gets the result; immutable, declared here. Never there for a store.
        result: Option<Handle<Local>>,
        /// What to do.
        operation: MatrixOperation,
    },
    /// An operation on tiles.
    Tile(TileOperation),
    /// What is done where reports are wanted, and left out as a whole elsewhere. It writes and jumps to nothing outside of itself, and locals that it declares are known in it
    /// alone.
    Reporting(#[serde(deserialize_with = "super::nested::deserialize")] Block),
    /// Tells the host of something. Only within [`StatementKind::Reporting`].
    Report(Report),
}

/// A case of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Bits of the values; at least one.
    pub values: Vec<u32>,
    /// What to run; there is no falling through.
    #[serde(deserialize_with = "super::nested::deserialize")]
    pub body: Block,
}

/// Atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AtomicFunction {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Adds; integers wrap.
    Add,
    /// Subtracts, wrapping.
    Subtract,
    /// Keeps the smaller.
    Min,
    /// Keeps the larger.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Writes and gives what was there.
    Exchange,
    /// Writes if what is there equals `compare`; gives what was there.
    CompareExchange,
}

impl AtomicFunction {
    /// Every function, with the name of the atomics' relaxed method.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Load, "load"),
        (Self::Store, "store"),
        (Self::Add, "add"),
        (Self::Subtract, "sub"),
        (Self::Min, "min"),
        (Self::Max, "max"),
        (Self::And, "and"),
        (Self::Or, "or"),
        (Self::Xor, "xor"),
        (Self::Exchange, "exchange"),
        (Self::CompareExchange, "compare_exchange"),
    ];

    /// The name of the atomics' relaxed method.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(function, _)| *function == self).map_or("", |(_, name)| name)
    }

    /// How many values its method takes.
    pub const fn arguments(self) -> usize {
        match self {
            Self::Load => 0,
            Self::CompareExchange => 2,
            _ => 1,
        }
    }

    /// Whether it works on atomics of that scalar: of integers of 32 and 64 bits all do, of `f32` those that need no order among numbers.
    pub const fn takes(self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64 => true,
            Scalar::F32 => matches!(self, Self::Load | Self::Store | Self::Add | Self::Exchange),
            _ => false,
        }
    }
}
