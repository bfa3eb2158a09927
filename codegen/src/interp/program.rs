//! What the evaluator runs: instructions over registers, each of which holds one word for every invocation of a batch.
//!
//! Values are spread over registers word by word: a vector of four lanes is four registers, a struct one for each scalar in it. An
//! `f32` is its bits, a bool all ones or all zeros, a half its bits in the low half of a word; other narrow scalars are as the 32-bit type that
//! holds them; a 64-bit scalar is two registers, the lower word first. Control flow is structured: an
//! instruction holds the blocks that it runs, and what differs between invocations is a mask of those that are active.

use crate::ir::{MathFunction, Order, Scalar};

/// A register's number.
pub(super) type Register = u32;

/// Operations on one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum One {
    Not,
    NegateFloat,
    NegateInteger,
    AbsFloat,
    AbsInteger,
    SignumFloat,
    SignumInteger,
    Floor,
    Ceil,
    RoundTiesEven,
    Trunc,
    Sqrt,
    InverseSqrt,
    Exp,
    Exp2,
    Ln,
    Log2,
    Sin,
    Cos,
    Tan,
    Tanh,
    Atan,
    Erf,
    IsNan,
    IsInfinite,
    CountOnes,
    LeadingZeros,
    TrailingZeros,
    FloatToUnsigned,
    FloatToSigned,
    UnsignedToFloat,
    SignedToFloat,
    HalfToFloat,
    FloatToHalf,
    NearestHalf,
    NearestBrain,
    WrapI8,
    WrapU8,
    WrapI16,
    WrapU16,
    Upper,
    FromUpper,
    BoolToInteger,
    BoolToFloat,
    NotZero,
    NotZeroFloat,
    LowHalf,
    HighHalf,
}

/// Operations on two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Two {
    AddFloat,
    SubtractFloat,
    MultiplyFloat,
    DivideFloat,
    RemainderFloat,
    MinFloat,
    MaxFloat,
    /// The smaller, or a NaN if there is one, of which the first.
    MinFloatOrNan,
    /// The larger, likewise.
    MaxFloatOrNan,
    Copysign,
    Powf,
    Atan2,
    Add,
    Subtract,
    Multiply,
    DivideUnsigned,
    DivideSigned,
    RemainderUnsigned,
    RemainderSigned,
    MinUnsigned,
    MinSigned,
    MaxUnsigned,
    MaxSigned,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightUnsigned,
    ShiftRightSigned,
    /// A bool.
    Compare(Comparison),
    /// Two halves as one word.
    Pair,
}

/// Comparisons of two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    LessUnsigned,
    LessEqualUnsigned,
    LessSigned,
    LessEqualSigned,
    EqualFloat,
    NotEqualFloat,
    LessFloat,
    LessEqualFloat,
}

/// Operations that take or give 64-bit scalars; those named after one type take and give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    Not,
    NegateInteger,
    NegateFloat,
    AbsInteger,
    AbsFloat,
    SignumInteger,
    Floor,
    Ceil,
    RoundTiesEven,
    Trunc,
    Sqrt,
    Exp,
    Exp2,
    ExpM1,
    Ln,
    Log2,
    Log10,
    Ln1p,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Powf,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Erf,
    IsNan,
    IsInfinite,
    Add,
    Subtract,
    Multiply,
    DivideUnsigned,
    DivideSigned,
    RemainderUnsigned,
    RemainderSigned,
    MinUnsigned,
    MinSigned,
    MaxUnsigned,
    MaxSigned,
    And,
    Or,
    Xor,
    /// By one word.
    ShiftLeft,
    ShiftRightUnsigned,
    ShiftRightSigned,
    AddFloat,
    SubtractFloat,
    MultiplyFloat,
    DivideFloat,
    RemainderFloat,
    MinFloat,
    MaxFloat,
    MulAdd,
    Equal,
    NotEqual,
    LessUnsigned,
    LessEqualUnsigned,
    LessSigned,
    LessEqualSigned,
    EqualFloat,
    NotEqualFloat,
    LessFloat,
    LessEqualFloat,
    /// From 32 bits.
    ExtendUnsigned,
    ExtendSigned,
    SingleToDouble,
    UnsignedToDouble,
    SignedToDouble,
    SingleToUnsigned,
    SingleToSigned,
    /// Between 64-bit types.
    LongUnsignedToDouble,
    LongSignedToDouble,
    DoubleToLongUnsigned,
    DoubleToLongSigned,
    /// To 32 bits.
    DoubleToSingle,
    DoubleToUnsigned,
    DoubleToSigned,
    LongUnsignedToSingle,
    LongSignedToSingle,
}

/// What limits an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// Nothing: it was proved in range.
    None,
    /// This many.
    Count(u32),
    /// The length of a binding, in groups of so many.
    Length { binding: u32, divisor: u32 },
}

/// One index on the way to a place: its register, that of its upper word if it has 64 bits, the bytes (words, in registers) from one to the next, and
/// its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) index: Register,
    pub(super) upper: Option<Register>,
    pub(super) stride: u32,
    pub(super) bound: Bound,
}

/// Which memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// A binding; its words are accessed by relaxed atomics if workgroups may meet there.
    Binding { binding: u32, relaxed: bool },
    /// Workgroup memory, from this byte on.
    Workgroup(u32),
}

/// How a word of a register lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// As it is.
    Word,
    /// In 16 bits, the others zero.
    Half,
    /// As the half nearest to the `f32` that it is.
    Float,
    /// In 16 bits, extended by their sign.
    SignedHalf,
    /// In 16 bits, the upper ones of the word.
    Upper,
    /// In 8 bits, the others zero.
    Byte,
    /// In 8 bits, extended by their sign.
    SignedByte,
}

/// A word of a value in memory: its register, its offset in bytes from the value's start, and how it is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) register: Register,
    pub(super) offset: u32,
    pub(super) held: Held,
}

/// A place in memory, for each invocation.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) memory: Where,
    pub(super) terms: Vec<Term>,
    pub(super) constant: u32,
}

/// How subgroups combine values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    /// All, with the same result in every lane.
    Reduce(Two),
    /// Those up to each.
    Inclusive(Two),
    /// Those before each, from a neutral word on.
    Exclusive(Two, u32),
    /// Another lane's, or zero.
    Broadcast,
    /// Another lane's, or one's own.
    Lane,
    Xor,
    Up,
    Down,
    Any,
    All,
    /// A word of the lanes' truths, by number.
    Ballot(u32),
}

/// Atomic operations on words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOperation {
    Load,
    Store,
    Add,
    AddFloat,
    Subtract,
    MinUnsigned,
    MinSigned,
    MaxUnsigned,
    MaxSigned,
    And,
    Or,
    Xor,
    Exchange,
    CompareExchange,
}

/// An instruction. Those that compute write every lane of their target, active or not, and targets are never operands.
#[derive(Clone, Debug)]
pub(super) enum Instruction {
    One {
        operation: One,
        to: Register,
        a: Register,
    },
    Two {
        operation: Two,
        to: Register,
        a: Register,
        b: Register,
    },
    MulAdd {
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// A function of [`super::functions`], lane by lane: the registers of the result and of each argument.
    Math {
        function: MathFunction,
        scalar: Scalar,
        to: Vec<Register>,
        given: Vec<Vec<Register>>,
    },
    /// An operation on 64-bit scalars, or to or from one: the words of its operands one after the other.
    Wide {
        operation: Wide,
        to: Vec<Register>,
        from: Vec<Register>,
    },
    Select {
        to: Register,
        condition: Register,
        accept: Register,
        reject: Register,
    },
    /// A select by a comparison of `a` with `b`, whose mask is not written.
    Choose {
        to: Register,
        comparison: Comparison,
        a: Register,
        b: Register,
        accept: Register,
        reject: Register,
    },
    /// All lanes.
    Copy {
        to: Register,
        from: Register,
    },
    /// Active lanes only: writes to what outlives the instruction.
    Assign {
        to: Register,
        from: Register,
    },
    /// Reads registers `base + constant + sum of index * stride`, one for each of `to`; zero past a bound.
    Pick {
        to: Vec<Register>,
        base: Register,
        terms: Vec<Term>,
    },
    /// Writes them, in active lanes.
    Put {
        from: Vec<Register>,
        base: Register,
        terms: Vec<Term>,
    },
    Load {
        address: Address,
        parts: Vec<Part>,
    },
    Store {
        address: Address,
        parts: Vec<Part>,
    },
    /// In active lanes, one after the other; the old value, or zero past the end, goes to `to`.
    Atomic {
        operation: AtomicOperation,
        order: Order,
        address: Address,
        to: Option<Register>,
        value: Register,
        compare: Register,
    },
    /// The same of 64 bits: the lower words first.
    WideAtomic {
        operation: AtomicOperation,
        order: Order,
        address: Address,
        to: Option<[Register; 2]>,
        value: [Register; 2],
        compare: [Register; 2],
    },
    /// For the invocations of all lanes.
    Fence,
    /// The first active lane's value, to all.
    Uniform {
        to: Register,
        from: Register,
    },
    Subgroup {
        combine: Combine,
        to: Register,
        value: Register,
        lane: Register,
    },
    If {
        condition: Register,
        accept: Vec<Instruction>,
        reject: Vec<Instruction>,
    },
    /// Runs `test`, stops in lanes where `condition` is false, runs `body`, lets lanes in `continued` go on, runs `step`; until no lane is left.
    /// Lanes that leave are collected in `left`.
    Loop {
        test: Vec<Instruction>,
        condition: Option<Register>,
        body: Vec<Instruction>,
        step: Vec<Instruction>,
        left: Register,
        continued: Register,
    },
    /// Runs the body; lanes in `returned` go on behind it.
    Function {
        body: Vec<Instruction>,
        returned: Register,
    },
    /// Active lanes are noted in `into`, if anywhere, and stop being active.
    Leave {
        into: Option<Register>,
    },
}

/// A register that holds the same in all lanes, filled before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Literal(u32),
    /// The word at that byte of the parameter block; a bool becomes a mask.
    Param {
        offset: u32,
        bool: bool,
    },
    GroupCount,
    Groups(u8),
    SubgroupSize,
}

/// A register that the batch decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Given {
    GlobalIndex,
    LocalIndex,
    GroupIndex,
    GlobalId(u8),
    LocalId(u8),
    GroupId(u8),
    SubgroupLane,
    SubgroupIndex,
}
