//! Kernels as syntax: typed trees that know nothing of the compiler's IR and print as Rust.
//!
//! Invariants that drawing keeps and reducing does not break: every variable has a number of its own in the whole program, every expression carries its type, loops count
//! down, and what all invocations of a workgroup must reach stands outside of what depends on an invocation.

use trefoil_codegen::ir::{AtomicFunction, BinaryOperator, Builtin, LogicalOperator, MathFunction, SubgroupFunction};

pub use trefoil_codegen::ir::Scalar;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// One scalar.
    Scalar(Scalar),
    /// 2 to 4 lanes.
    Vector(u8, Scalar),
    /// A fixed number of elements.
    Array(Box<Ty>, u32),
    /// A struct, by position in [`Program::structs`].
    Struct(usize),
}

impl Ty {
    /// `bool`
    pub const BOOL: Self = Self::Scalar(Scalar::Bool);
    /// `i32`
    pub const I32: Self = Self::Scalar(Scalar::I32);
    /// `u32`
    pub const U32: Self = Self::Scalar(Scalar::U32);
    /// `usize`
    pub const INDEX: Self = Self::Scalar(Scalar::Index);
    /// `f32`
    pub const F32: Self = Self::Scalar(Scalar::F32);

    /// The scalar of a scalar or vector.
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Vector(_, scalar) => Some(*scalar),
            Self::Array(..) | Self::Struct(_) => None,
        }
    }

    /// So many lanes of a scalar; one is the scalar itself.
    pub const fn lanes_of(lanes: u8, scalar: Scalar) -> Self {
        if lanes == 1 { Self::Scalar(scalar) } else { Self::Vector(lanes, scalar) }
    }

    /// The lanes of a vector, 1 for everything else.
    pub const fn lanes(&self) -> u8 {
        match self {
            Self::Vector(lanes, _) => *lanes,
            _ => 1,
        }
    }
}

/// A variable, by number.
pub type Var = usize;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The type of its value.
    pub ty: Ty,
    /// What it is.
    pub kind: Kind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A constant, as bits.
    Literal(u64),
    /// What a place holds.
    Read(Place),
    /// A part of a value that is no place.
    Part(Box<Expr>, Step),
    /// `-x`
    Negate(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// An operator on two values; a shift's right side is a `u32`, or lanes of it.
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// `&&`, `||`
    Logical(LogicalOperator, Box<Expr>, Box<Expr>),
    /// A function of the mathematical library.
    Math(MathFunction, Vec<Expr>),
    /// A conversion of a scalar.
    Convert(Box<Expr>),
    /// The same bits as another type.
    Bitcast(Box<Expr>),
    /// A vector, array or struct of its parts.
    Compose(Vec<Expr>),
    /// A vector or array of equal parts.
    Splat(Box<Expr>),
    /// `select(c, a, b)`
    Select(Box<[Expr; 3]>),
    /// `if c { a } else { b }`
    If(Box<[Expr; 3]>),
    /// `match s { 1 | 2 => a, _ => b }`
    Match(Box<Expr>, Vec<(Vec<u32>, Expr)>, Box<Expr>),
    /// A call of a function of [`Program::functions`].
    Call(usize, Vec<Argument>),
    /// The number of elements of a slice.
    Length(Memory),
    /// `global_index()`
    GlobalIndex,
    /// `local_index()`
    LocalIndex,
    /// `group_index()`
    GroupIndex,
    /// `group_count()`
    GroupCount,
    /// `subgroup_lane()`
    SubgroupLane,
    /// `subgroup_size()`
    SubgroupSize,
    /// `subgroup_index()`
    SubgroupIndex,
    /// `global_id()` and the others that have three axes.
    Axes(Builtin),
    /// Several elements of a slice of scalars in one access: `x.vec4(i)`.
    Several(Memory, Box<Expr>),
}

/// What a call is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A value.
    Value(Expr),
    /// `&mut` of a whole variable.
    Mutable(Var),
    /// A slice.
    Slice(Memory),
}

/// A slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A buffer, by position in [`Program::buffers`].
    Buffer(usize),
    /// A workgroup array, by position in [`Program::shared`].
    Shared(usize),
    /// What a function's parameter is bound to.
    Parameter(Var),
}

/// A place.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where it begins.
    pub root: Root,
    /// The way from there.
    pub path: Vec<Step>,
}

/// Where a place begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Root {
    /// A variable.
    Var(Var),
    /// An element of a slice.
    Element(Memory, Box<Expr>),
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A lane or field.
    Member(usize),
    /// An element or lane by an index, a `usize`.
    Index(Box<Expr>),
}

/// Statements, one after the other.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `let v = value;`
    Let {
        /// The variable.
        var: Var,
        /// Whether it is written again.
        mutable: bool,
        /// Its first value.
        value: Expr,
    },
    /// `place = value;`, or with an operator before the `=`.
    Assign(Place, Option<BinaryOperator>, Expr),
    /// `x.set_vec4(i, v);`
    SetSeveral(Memory, Expr, Expr),
    /// A call for what it does.
    Evaluate(Expr),
    /// Two ways.
    If(Expr, Block, Block),
    /// Several ways, by an integer of 32 bits.
    Match(Expr, Vec<(Vec<u32>, Block)>, Block),
    /// `for v in (start..end).step_by(step)`
    For {
        /// The counter, an `i32`, a `u32` or a `usize`.
        var: Var,
        /// The first value.
        start: Expr,
        /// What is not reached.
        end: Expr,
        /// How far from one to the next, if not 1.
        step: Option<u32>,
        /// Whether it is written out.
        unroll: bool,
        /// Whether it counts down.
        reversed: bool,
        /// What is repeated.
        body: Block,
    },
    /// `let mut v = times; while v > 0 && condition { v -= 1; body }`
    While {
        /// What counts down.
        var: Var,
        /// The most rounds.
        times: u32,
        /// What else must hold.
        condition: Expr,
        /// What is repeated.
        body: Block,
    },
    /// `let mut v = times; loop { if v == 0 || condition { break; } v -= 1; body }`
    Loop {
        /// What counts down.
        var: Var,
        /// The most rounds.
        times: u32,
        /// What ends it.
        condition: Expr,
        /// What is repeated.
        body: Block,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return value;`, of a function.
    Return(Expr),
    /// `barrier();`
    Barrier,
    /// An atomic operation; what was there is the variable's, if there is one.
    Atomic {
        /// What gets the value from before.
        var: Option<Var>,
        /// The atomics.
        memory: Memory,
        /// Which of them.
        index: Expr,
        /// What is done.
        function: AtomicFunction,
        /// With what; the expected value of a comparison comes first.
        values: Vec<Expr>,
    },
    /// An operation of the subgroup.
    Subgroup {
        /// What gets the result.
        var: Var,
        /// What is done.
        function: SubgroupFunction,
        /// With what.
        value: Expr,
        /// The lane, mask or distance.
        lane: Option<Expr>,
    },
    /// `let v = workgroup_uniform_load(&memory[index]);`
    UniformLoad {
        /// What gets the value.
        var: Var,
        /// A workgroup array.
        memory: Memory,
        /// Which element.
        index: Expr,
    },
}

/// What a variable is.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its type; of a slice that of its elements.
    pub ty: Ty,
    /// Of a float, whether its value is known exactly whatever a device rounds.
    pub exact: bool,
}

/// What a function's parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A value.
    Value,
    /// `&mut T`
    Mutable,
    /// `&[T]`
    Slice,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its parameters.
    pub params: Vec<(Var, Mode)>,
    /// What it does.
    pub body: Block,
    /// What it gives.
    pub result: Expr,
}

/// How a kernel uses a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `&[T]`
    Read,
    /// `&mut [T]`
    Write,
    /// `&[Atomic<T>]`
    Atomic,
}

/// A buffer of the signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// How it is used.
    pub access: Access,
    /// What its elements are.
    pub element: Ty,
    /// What it holds at first.
    pub data: Vec<crate::value::Value>,
}

/// A workgroup array.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    /// What its elements are.
    pub element: Ty,
    /// How many.
    pub length: u32,
    /// Whether they are atomics.
    pub atomic: bool,
}

/// A parameter by value, or a specialisation constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The variable that stands for it.
    pub var: Var,
    /// What the launch gives.
    pub value: crate::value::Value,
    /// Of a specialisation constant, its first value and its range.
    pub range: Option<[i64; 3]>,
}

/// What a kernel needs of a device, beside what every device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Arithmetic of 64-bit integers.
    pub int64: bool,
    /// Arithmetic of `f64`.
    pub float64: bool,
    /// Operations of subgroups.
    pub subgroups: bool,
}

/// A kernel with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it requires.
    pub needs: Needs,
    /// Invocations of a workgroup.
    pub workgroup: u32,
    /// Workgroups.
    pub groups: u32,
    /// Types of fields.
    pub structs: Vec<Vec<Ty>>,
    /// Functions, each calling only those before it.
    pub functions: Vec<Function>,
    /// Buffers.
    pub buffers: Vec<Buffer>,
    /// Parameters by value and specialisation constants.
    pub params: Vec<Param>,
    /// Workgroup memory.
    pub shared: Vec<Shared>,
    /// Every variable of the kernel and of its functions.
    pub vars: Vec<Variable>,
    /// What the kernel does.
    pub body: Block,
}

impl Program {
    /// How many invocations run.
    pub const fn invocations(&self) -> u32 {
        self.workgroup * self.groups
    }

    /// The type of a part of a value.
    pub fn part(&self, ty: &Ty, step: &Step) -> Option<Ty> {
        match (ty, step) {
            (Ty::Vector(_, scalar), _) => Some(Ty::Scalar(*scalar)),
            (Ty::Array(element, _), _) => Some((**element).clone()),
            (Ty::Struct(index), Step::Member(field)) => self.structs.get(*index)?.get(*field).cloned(),
            _ => None,
        }
    }

    /// The type of a slice's elements.
    pub fn element(&self, memory: Memory) -> &Ty {
        match memory {
            Memory::Buffer(index) => &self.buffers[index].element,
            Memory::Shared(index) => &self.shared[index].element,
            Memory::Parameter(var) => &self.vars[var].ty,
        }
    }
}

impl Expr {
    /// An expression of a type.
    pub const fn new(ty: Ty, kind: Kind) -> Self {
        Self { ty, kind }
    }

    /// A constant.
    pub const fn literal(scalar: Scalar, bits: u64) -> Self {
        Self { ty: Ty::Scalar(scalar), kind: Kind::Literal(bits) }
    }

    /// A `u32`.
    pub const fn u32(value: u32) -> Self {
        Self::literal(Scalar::U32, value as u64)
    }

    /// A `usize`.
    pub const fn index(value: u32) -> Self {
        Self::literal(Scalar::Index, value as u64)
    }

    /// An `f32`.
    pub fn f32(value: f32) -> Self {
        Self::literal(Scalar::F32, u64::from(value.to_bits()))
    }

    /// What a variable holds.
    pub const fn var(var: Var, ty: Ty) -> Self {
        Self { ty, kind: Kind::Read(Place { root: Root::Var(var), path: Vec::new() }) }
    }

    /// An operator on two values of its left side's type.
    pub fn binary(operator: BinaryOperator, left: Self, right: Self) -> Self {
        let ty = if operator.is_comparison() { Ty::BOOL } else { left.ty.clone() };
        Self { ty, kind: Kind::Binary(operator, Box::new(left), Box::new(right)) }
    }

    /// A conversion.
    pub fn convert(self, scalar: Scalar) -> Self {
        if self.ty == Ty::Scalar(scalar) {
            return self;
        }
        Self { ty: Ty::Scalar(scalar), kind: Kind::Convert(Box::new(self)) }
    }

    /// An element of a slice.
    pub fn element(memory: Memory, index: Self, ty: Ty) -> Self {
        Self { ty, kind: Kind::Read(Place { root: Root::Element(memory, Box::new(index)), path: Vec::new() }) }
    }

    /// A part of it.
    pub fn part(self, step: Step, ty: Ty) -> Self {
        match self.kind {
            Kind::Read(mut place) => {
                place.path.push(step);
                Self { ty, kind: Kind::Read(place) }
            }
            kind => Self { ty, kind: Kind::Part(Box::new(Self { ty: self.ty, kind }), step) },
        }
    }
}
