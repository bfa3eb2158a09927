//! What kernels are drawn of: kinds of nodes of the IR, each with the types of numbers that it works on by the rules of the verifier.
//!
//! The table counts these, and kernels are drawn for them ([`crate::draw`]). What the language has beside them is in no kernel: returns without a value, enums, steps of loops that are known only when the kernel runs, workgroups along y and z, arrays in arrays and of structs, views,
//! arrays sized by specialisation constants, ordered atomics and those of 64 bits, fences, asynchronous copies, tiles,
//! matrices, stated sizes of subgroups, `index = 64`, `if const`, and `strict` or `fast` arithmetic.

use trefoil_codegen::ir::{
    AtomicFunction, BinaryOperator, Builtin, LogicalOperator, MathFunction, SubgroupFunction, Type, UnaryOperator,
};

use crate::syntax::{Needs, Scalar};

/// Memory that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A buffer.
    Binding,
    /// Workgroup memory.
    Workgroup,
    /// A mutable local.
    Local,
    /// An argument by reference.
    Argument,
}

/// A kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A constant.
    Literal,
    /// A parameter of the launch, or a specialisation constant.
    Param,
    /// The length of a slice.
    Length,
    /// Where an invocation is.
    Builtin(Builtin),
    /// An argument by value.
    Argument,
    /// An immutable local.
    Local,
    /// A read of memory.
    Load(Place),
    /// A write to memory.
    Store(Place),
    /// A part known by number.
    Member,
    /// A part known when the kernel runs.
    Element,
    /// A value of its parts.
    Compose,
    /// A value of equal parts.
    Splat,
    /// `-x`, `!x`
    Unary(UnaryOperator),
    /// An operator on two values, by the type of these.
    Binary(BinaryOperator),
    /// `&&`, `||`
    Logical(LogicalOperator),
    /// A function of the mathematical library, by the type of its first argument.
    Math(MathFunction),
    /// `select(c, a, b)`
    Select,
    /// A conversion from a type.
    Convert(Scalar),
    /// The bits of another type.
    Bitcast(Scalar),
    /// A call.
    Call,
    /// A return of a value.
    Return,
    /// An atomic operation.
    Atomic(AtomicFunction),
    /// An operation of the subgroup.
    Subgroup(SubgroupFunction),
    /// A load of one place by all.
    UniformLoad,
}

impl Operation {
    /// How the table calls it.
    pub fn name(self) -> String {
        let place = |place| match place {
            Place::Binding => "a buffer",
            Place::Workgroup => "workgroup memory",
            Place::Local => "a local",
            Place::Argument => "an argument by reference",
        };
        match self {
            Self::Literal => "literal".to_owned(),
            Self::Param => "parameter".to_owned(),
            Self::Length => "length".to_owned(),
            Self::Builtin(builtin) => {
                Builtin::ALL.iter().find(|(known, _)| *known == builtin).map_or("", |(_, name)| name).to_owned()
            }
            Self::Argument => "argument".to_owned(),
            Self::Local => "immutable local".to_owned(),
            Self::Load(from) => format!("load from {}", place(from)),
            Self::Store(to) => format!("store to {}", place(to)),
            Self::Member => "member".to_owned(),
            Self::Element => "element".to_owned(),
            Self::Compose => "compose".to_owned(),
            Self::Splat => "splat".to_owned(),
            Self::Unary(UnaryOperator::Negate) => "`-x`".to_owned(),
            Self::Unary(UnaryOperator::Not) => "`!x`".to_owned(),
            Self::Binary(operator) => format!("`{}`", operator.sign().replace('|', "\\|")),
            Self::Logical(LogicalOperator::And) => "`&&`".to_owned(),
            Self::Logical(LogicalOperator::Or) => "`\\|\\|`".to_owned(),
            Self::Math(function) => format!("`{}`", function.name()),
            Self::Select => "`select`".to_owned(),
            Self::Convert(from) => format!("`as`, from {}", from.rust_name()),
            Self::Bitcast(from) => format!("`bitcast`, from {}", from.rust_name()),
            Self::Call => "call".to_owned(),
            Self::Return => "return".to_owned(),
            Self::Atomic(function) => format!("atomic `{}`", function.name()),
            Self::Subgroup(function) => format!("`{}`", function.name()),
            Self::UniformLoad => "`workgroup_uniform_load`".to_owned(),
        }
    }
}

/// A kind of node with the type that it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// The kind.
    pub operation: Operation,
    /// The type, of vectors and arrays that of the elements.
    pub scalar: Scalar,
}

/// Every type of numbers, and `bool`; those that a device may lack last.
pub const SCALARS: [Scalar; 14] = [
    Scalar::Bool,
    Scalar::Index,
    Scalar::I32,
    Scalar::U32,
    Scalar::F32,
    Scalar::I8,
    Scalar::U8,
    Scalar::I16,
    Scalar::U16,
    Scalar::F16,
    Scalar::BF16,
    Scalar::I64,
    Scalar::U64,
    Scalar::F64,
];

const BINARY: [BinaryOperator; 16] = {
    use BinaryOperator::*;
    [
        Add,
        Subtract,
        Multiply,
        Divide,
        Remainder,
        And,
        Or,
        Xor,
        ShiftLeft,
        ShiftRight,
        Equal,
        NotEqual,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
    ]
};

const fn is_half(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::F16 | Scalar::BF16)
}

/// Whether memory holds it, whatever the width of indices.
pub const fn is_stored(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::Bool | Scalar::Index)
}

fn converts(from: Scalar, to: Scalar) -> bool {
    if is_half(from) || is_half(to) {
        return is_half(from) && to == Scalar::F32 || is_half(to) && from == Scalar::F32;
    }
    // A bool becomes a float by way of an integer.
    from != to && to.is_number() && !(from == Scalar::Bool && to.is_float())
}

fn has_binary(operator: BinaryOperator, scalar: Scalar) -> bool {
    use BinaryOperator as B;
    match operator {
        B::ShiftLeft | B::ShiftRight => scalar.is_integer(),
        B::And | B::Or | B::Xor => scalar.is_integer() || scalar == Scalar::Bool,
        B::Equal | B::NotEqual => true,
        _ => scalar.is_number(),
    }
}

/// The lanes with which a function takes a type as its first argument, if it does.
pub fn lanes_of(function: MathFunction, scalar: Scalar) -> Vec<u8> {
    let takes = |lanes: &u8| {
        let ty = if *lanes == 1 { Type::Scalar(scalar) } else { Type::vector(*lanes, scalar) };
        function.takes(&ty)
    };
    // Indices are no lanes of the vectors that are drawn.
    let most = if scalar == Scalar::Index { 1 } else { 4 };
    (1..=most).filter(takes).collect()
}

/// The operations that the language has of a type, without those that the text of every kernel has.
fn of_scalar(scalar: Scalar) -> Vec<Operation> {
    use Operation as O;
    let mut all = Vec::new();
    // Halves have no literals.
    if !is_half(scalar) {
        all.push(O::Literal);
    }
    all.extend([O::Argument, O::Local, O::Load(Place::Local), O::Store(Place::Local)]);
    all.extend([O::Load(Place::Argument), O::Store(Place::Argument), O::Call, O::Return]);
    all.extend([O::Member, O::Element, O::Compose, O::Splat, O::Select]);
    if is_stored(scalar) {
        all.extend([O::Param, O::Load(Place::Binding), O::Store(Place::Binding), O::UniformLoad]);
        all.extend([O::Load(Place::Workgroup), O::Store(Place::Workgroup)]);
    }
    if scalar == Scalar::Index {
        all.extend([O::Param, O::Length]);
        all.extend(Builtin::ALL.map(|(builtin, _)| O::Builtin(builtin)));
    }
    if scalar == Scalar::Bool {
        all.extend([O::Logical(LogicalOperator::And), O::Logical(LogicalOperator::Or)]);
    }
    if scalar.is_float() || scalar.is_signed() {
        all.push(O::Unary(UnaryOperator::Negate));
    }
    if scalar == Scalar::Bool || scalar.is_integer() {
        all.push(O::Unary(UnaryOperator::Not));
    }
    all.extend(BINARY.into_iter().filter(|operator| has_binary(*operator, scalar)).map(O::Binary));
    // Names with spaces are made by lowering alone.
    let functions = MathFunction::ALL.iter().filter(|function| !function.name().contains(' '));
    all.extend(functions.filter(|function| !lanes_of(**function, scalar).is_empty()).map(|one| O::Math(*one)));
    all.extend(SCALARS.into_iter().filter(|from| converts(*from, scalar)).map(O::Convert));
    let same_size = |from: &Scalar| is_stored(*from) && *from != scalar && from.bytes() == scalar.bytes();
    if is_stored(scalar) {
        all.extend(SCALARS.into_iter().filter(same_size).map(O::Bitcast));
    }
    // Atomics of 64 bits are a feature of their own, which no kernel here requires.
    if !scalar.is_wide() {
        let atomic = AtomicFunction::ALL.into_iter().map(|(function, _)| function);
        all.extend(atomic.filter(|function| function.takes(scalar)).map(O::Atomic));
    }
    all.extend(SubgroupFunction::ALL.iter().filter(|(one, _)| one.takes(scalar)).map(|(one, _)| O::Subgroup(*one)));
    all
}

/// Everything that kernels are drawn of: neighbours need the same of a device, and work on the same type.
pub fn all() -> Vec<Combination> {
    let mut all = Vec::new();
    for scalar in SCALARS {
        all.extend(of_scalar(scalar).into_iter().map(|operation| Combination { operation, scalar }));
    }
    // What needs something comes last.
    all.sort_by_key(|one| {
        let needs = one.needs();
        (needs.float64, needs.int64, needs.subgroups)
    });
    all
}

impl Combination {
    /// Its row in the table.
    pub fn key(self) -> (String, String) {
        (self.operation.name(), self.scalar.rust_name().to_owned())
    }

    /// What a device must have for it.
    pub fn needs(self) -> Needs {
        let other = match self.operation {
            Operation::Convert(from) | Operation::Bitcast(from) => from,
            _ => self.scalar,
        };
        let is = |scalar: Scalar| self.scalar == scalar || other == scalar;
        let float64 = is(Scalar::F64);
        let subgroups = match self.operation {
            Operation::Subgroup(_) => true,
            Operation::Builtin(builtin) => {
                matches!(builtin, Builtin::SubgroupLane | Builtin::SubgroupSize | Builtin::SubgroupIndex)
            }
            _ => false,
        };
        // Vectors of three doubles are put together from words in WGSL, which are those of integers.
        Needs { int64: float64 || is(Scalar::I64) || is(Scalar::U64), float64, subgroups }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_combination_has_a_row_of_its_own() {
        let all = all();
        let rows: BTreeSet<_> = all.iter().map(|one| one.key()).collect();
        assert_eq!(rows.len(), all.len());
        let has = |operation, scalar| all.contains(&Combination { operation, scalar });
        assert!(has(Operation::Binary(BinaryOperator::ShiftRight), Scalar::I8));
        assert!(has(Operation::Math(MathFunction::Exp), Scalar::F64));
        assert!(!has(Operation::Math(MathFunction::Exp), Scalar::F16));
        assert!(!has(Operation::Binary(BinaryOperator::And), Scalar::F32));
        assert!(!has(Operation::Convert(Scalar::F16), Scalar::I32));
    }
}
