//! Expressions: pure computations and reads.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::math::MathFunction;
use super::module::{Function, Local, WorkgroupVariable};
use super::span::Span;
use super::types::{Scalar, Type};
use crate::target::Feature;

/// An expression with its type and where it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expression {
    /// What it computes.
    pub kind: ExpressionKind,
    /// The type of its value.
    pub ty: Handle<Type>,
    /// Where it was written.
    pub span: Span,
}

/// What an expression computes. See the module's essay for the meaning of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExpressionKind {
    /// A constant.
    Literal(Literal),
    /// A const parameter of the kernel, by position among its generics; gone after instantiation.
    GenericConstant(u32),
    /// A parameter of the kernel, by position in `Module::params`.
    Param(u32),
    /// The number of elements of the buffer at that binding: the `.len()` of its slice.
    Length(u32),
    /// The extent of a view along an axis.
    ViewExtent {
        /// The binding.
        binding: u32,
        /// The axis, less than the view's rank.
        axis: u32,
    },
    /// The stride of a view along an axis, in elements.
    ViewStride {
        /// The binding.
        binding: u32,
        /// The axis, less than the view's rank.
        axis: u32,
    },
    /// A value that identifies the invocation or describes the grid.
    Builtin(Builtin),
    /// An argument of the enclosing function, by position; one that is passed by value.
    Argument(u32),
    /// An immutable local of the enclosing function.
    Local(Handle<Local>),
    /// What a place holds now.
    Load(Place),
    /// A part of a value known by number: a struct's field, a vector's lane, an array's element.
    Member {
        /// A struct, vector or array.
        base: Handle<Expression>,
        /// Which part.
        index: u32,
    },
    /// A lane of a vector value, or an element of an array value, known at run time; out of range it is zero.
    Element {
        /// A vector or array.
        base: Handle<Expression>,
        /// Which part, an `Index` or `U32`.
        index: Handle<Expression>,
    },
    /// A value of a vector, array or struct type from its parts, one for each lane, element or field.
    Compose(Vec<Handle<Expression>>),
    /// A vector or array whose parts are all the same value.
    Splat(Handle<Expression>),
    /// Lanes of a vector, in another order.
    Swizzle {
        /// The vector.
        base: Handle<Expression>,
        /// Lane numbers, as many as the result has lanes (2 to 4).
        lanes: Vec<u8>,
    },
    /// An operation on one value, lane by lane.
    Unary {
        /// What to do.
        operator: UnaryOperator,
        /// To what.
        value: Handle<Expression>,
    },
    /// An operation on two values of equal type, lane by lane (a shift's right side is a `U32` for each lane).
    Binary {
        /// What to do.
        operator: BinaryOperator,
        /// To what.
        left: Handle<Expression>,
        /// With what.
        right: Handle<Expression>,
    },
    /// `&&` and `||`: the right side is evaluated only if it decides.
    Logical {
        /// Which.
        operator: LogicalOperator,
        /// Evaluated first.
        left: Handle<Expression>,
        /// Evaluated if need be.
        right: Handle<Expression>,
    },
    /// A function of the mathematical library, lane by lane.
    Math {
        /// Which.
        function: MathFunction,
        /// As many as it takes.
        arguments: Vec<Handle<Expression>>,
    },
    /// One of two values; both may be evaluated. The condition is a `Bool`, or a vector of them for a choice lane by lane.
    Select {
        /// Which.
        condition: Handle<Expression>,
        /// If true.
        accept: Handle<Expression>,
        /// If false.
        reject: Handle<Expression>,
    },
    /// `value as T`, lane by lane, to the scalar of this expression's type.
    Convert(Handle<Expression>),
    /// The same bits as another type of equal size.
    Bitcast(Handle<Expression>),
    /// A call. Only as the root of a `Let` or `Evaluate` statement may the callee write memory or be collective.
    Call {
        /// The function.
        function: Handle<Function>,
        /// One for each of its arguments.
        arguments: Vec<CallArgument>,
    },
    /// How many parts of a matrix of that type the invocation holds.
    MatrixLength(Handle<Type>),
    /// Whether the variant being made has a feature. Only in conditions of `If` with `constant: true`; gone after lowering.
    TargetHas(Feature),
}

/// A constant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Literal {
    /// `true` or `false`
    Bool(bool),
    /// `i32`
    I32(i32),
    /// `u32`; also a value of an enum type.
    U32(u32),
    /// `usize`
    Index(u32),
    /// `i8`
    I8(i8),
    /// `u8`
    U8(u8),
    /// `i16`
    I16(i16),
    /// `u16`
    U16(u16),
    /// `f16`, as bits
    F16(u16),
    /// `bf16`, as bits
    BF16(u16),
    /// `f32`
    F32(f32),
    /// `i64`
    I64(i64),
    /// `u64`
    U64(u64),
    /// `f64`
    F64(f64),
    /// `T::lit(value)`: the nearest value of a generic type; gone after instantiation.
    Generic {
        /// The type parameter.
        scalar: Scalar,
        /// The value.
        value: f64,
    },
}

impl Literal {
    /// Its type.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::Bool(_) => Scalar::Bool,
            Self::I32(_) => Scalar::I32,
            Self::U32(_) => Scalar::U32,
            Self::Index(_) => Scalar::Index,
            Self::I8(_) => Scalar::I8,
            Self::U8(_) => Scalar::U8,
            Self::I16(_) => Scalar::I16,
            Self::U16(_) => Scalar::U16,
            Self::F16(_) => Scalar::F16,
            Self::BF16(_) => Scalar::BF16,
            Self::F32(_) => Scalar::F32,
            Self::I64(_) => Scalar::I64,
            Self::U64(_) => Scalar::U64,
            Self::F64(_) => Scalar::F64,
            Self::Generic { scalar, .. } => scalar,
        }
    }

    /// Its bits, widened; floats by bits, so that a NaN equals itself and zeros differ.
    pub fn bits(self) -> u64 {
        match self {
            Self::Bool(value) => u64::from(value),
            Self::I32(value) => u64::from(value.cast_unsigned()),
            Self::U32(value) | Self::Index(value) => u64::from(value),
            Self::I8(value) => u64::from(value.cast_unsigned()),
            Self::U8(value) => u64::from(value),
            Self::I16(value) => u64::from(value.cast_unsigned()),
            Self::U16(value) | Self::F16(value) | Self::BF16(value) => u64::from(value),
            Self::F32(value) => u64::from(value.to_bits()),
            Self::I64(value) => value.cast_unsigned(),
            Self::U64(value) => value,
            Self::F64(value) => value.to_bits(),
            Self::Generic { value, .. } => value.to_bits(),
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        (self.scalar(), self.bits()) == (other.scalar(), other.bits())
    }
}

/// Somewhere that values are read from and written to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The variable.
    pub root: Root,
    /// The way from the variable to the part meant; empty for all of it.
    pub path: Vec<Projection>,
    /// Whether an index on the way may be out of range, so that a guard is needed: true until the verifier proves it is not.
    pub guarded: bool,
}

/// The variable that a place is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Root {
    /// A storage buffer, by position in `Module::bindings`. The first projection is an `Index` or a `Vector`.
    Binding(u32),
    /// A workgroup variable. The first projection is an `Index` or a `Vector`.
    Workgroup(Handle<WorkgroupVariable>),
    /// A mutable local of the enclosing function.
    Local(Handle<Local>),
    /// An argument of the enclosing function that is passed by reference.
    Argument(u32),
}

/// One step into a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Projection {
    /// An element of a buffer or array, or a lane of a vector; the expression is an `Index` or `U32`.
    Index(Handle<Expression>),
    /// A field of a struct, or a lane of a vector, known by number.
    Member(u32),
    /// `lanes` consecutive scalars of a buffer or array of scalars, from element `lanes * index` on, as a vector. Only last.
    Vector {
        /// Which group.
        index: Handle<Expression>,
        /// 2 or 4.
        lanes: u8,
    },
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallArgument {
    /// A value.
    Value(Handle<Expression>),
    /// `&mut` of a whole mutable local, or of a by-reference argument handed on: copied in and copied out.
    Reference(Root),
}

/// Values that identify the invocation or describe the grid. All are of type `Index`, or vectors of three of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Builtin {
    /// `global_index()`: `group_index() * invocations of a workgroup + local_index()`.
    GlobalIndex,
    /// `local_index()`: the invocation's linear index in its workgroup, x fastest.
    LocalIndex,
    /// `group_index()`: the workgroup's linear index, x fastest.
    GroupIndex,
    /// `group_count()`: the number of workgroups asked for.
    GroupCount,
    /// `global_id()`: `group_id() * workgroup size + local_id()`, by axis.
    GlobalId,
    /// `local_id()`: the invocation's position in its workgroup.
    LocalId,
    /// `group_id()`: the workgroup's position in the grid.
    GroupId,
    /// `group_counts()`: the grid, by axis.
    GroupCounts,
    /// `subgroup_size()`: invocations in the device's subgroup.
    SubgroupSize,
    /// `subgroup_lane()`: the invocation's index in its subgroup.
    SubgroupLane,
    /// `subgroup_index()`: the subgroup's index in its workgroup.
    SubgroupIndex,
}

impl Builtin {
    /// Every builtin with the name by which kernels call it.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::GlobalIndex, "global_index"),
        (Self::LocalIndex, "local_index"),
        (Self::GroupIndex, "group_index"),
        (Self::GroupCount, "group_count"),
        (Self::GlobalId, "global_id"),
        (Self::LocalId, "local_id"),
        (Self::GroupId, "group_id"),
        (Self::GroupCounts, "group_counts"),
        (Self::SubgroupSize, "subgroup_size"),
        (Self::SubgroupLane, "subgroup_lane"),
        (Self::SubgroupIndex, "subgroup_index"),
    ];

    /// Whether it has three lanes.
    pub const fn is_vector(self) -> bool {
        matches!(self, Self::GlobalId | Self::LocalId | Self::GroupId | Self::GroupCounts)
    }

    /// Whether it differs between the invocations of a workgroup.
    pub const fn varies_in_workgroup(self) -> bool {
        matches!(
            self,
            Self::GlobalIndex
                | Self::LocalIndex
                | Self::GlobalId
                | Self::LocalId
                | Self::SubgroupLane
                | Self::SubgroupIndex
        )
    }

    /// Whether a kernel that uses it looks at the grid's axes.
    pub const fn wants_volume(self) -> bool {
        matches!(self, Self::GlobalId | Self::GroupId | Self::GroupCounts)
    }
}

/// Operations on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnaryOperator {
    /// `-x`, of floats and signed integers; wraps.
    Negate,
    /// `!x`: of bools logical, of integers bitwise.
    Not,
}

/// Operations on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinaryOperator {
    /// `+`; integers wrap.
    Add,
    /// `-`; integers wrap.
    Subtract,
    /// `*`; integers wrap.
    Multiply,
    /// `/`; integers truncate, x / 0 is 0, MIN / -1 is MIN.
    Divide,
    /// `%`, with the sign of the left side; of integers x % 0 is 0 and MIN % -1 is 0; of floats x by what is infinite is x.
    Remainder,
    /// `&`, of integers and bools.
    And,
    /// `|`, of integers and bools.
    Or,
    /// `^`, of integers and bools.
    Xor,
    /// `<<`; the amount counts modulo the integer's bits.
    ShiftLeft,
    /// `>>`; the amount counts modulo the integer's bits; arithmetic for signed ones.
    ShiftRight,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl BinaryOperator {
    /// How Rust, and every language that kernels are emitted in, writes it.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Whether it gives a `Bool` (or a vector of them).
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual)
    }
}

/// Operations that may skip their right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LogicalOperator {
    /// `&&`
    And,
    /// `||`
    Or,
}
