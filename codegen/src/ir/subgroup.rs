//! Operations over the invocations of a subgroup, each with its name, stated once.
//!
//! A subgroup is a run of a workgroup's invocations that the device computes together; how many is the device's to say
//! ([`super::Builtin::SubgroupSize`]), and the last of a workgroup may lack lanes. All invocations of the workgroup get to an operation or none
//! (the verifier sees to that), so that a lane takes part if and only if it exists: no operation meets inactive lanes.
//!
//! * The order of a float sum or product is not stated, and may differ between devices and between a reduction and a scan. Integers wrap.
//! * `min` and `max` of floats are one of the values if one of them is a NaN.
//! * A shuffle from a lane that does not exist gives the invocation's own value; a broadcast from such a lane gives zero.
//! * An exclusive scan gives the neutral element in lane 0: 0, 1, all ones, or the largest or smallest value (an infinity of floats).

use serde::{Deserialize, Serialize};

use super::expression::{BinaryOperator, Literal};
use super::math::MathFunction;
use super::types::{Scalar, Type};

/// How the values of a subgroup are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SubgroupOperator {
    /// The sum.
    Add,
    /// The product.
    Multiply,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Bitwise and, of integers.
    And,
    /// Bitwise or, of integers.
    Or,
    /// Bitwise exclusive or, of integers.
    Xor,
}

impl SubgroupOperator {
    /// Whether it works on integers alone.
    pub const fn is_bitwise(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }

    /// The operation on two values: an operator, or a function.
    pub const fn of_two(self) -> Result<BinaryOperator, MathFunction> {
        match self {
            Self::Add => Ok(BinaryOperator::Add),
            Self::Multiply => Ok(BinaryOperator::Multiply),
            Self::And => Ok(BinaryOperator::And),
            Self::Or => Ok(BinaryOperator::Or),
            Self::Xor => Ok(BinaryOperator::Xor),
            Self::Min => Err(MathFunction::Min),
            Self::Max => Err(MathFunction::Max),
        }
    }

    /// The value that changes no other, if the scalar is a number.
    pub fn neutral(self, scalar: Scalar) -> Option<Literal> {
        let (float, signed, unsigned) = match self {
            Self::Add | Self::Or | Self::Xor => (0.0, 0, 0),
            Self::Multiply => (1.0, 1, 1),
            Self::Min => (f32::INFINITY, i32::MAX, u32::MAX),
            Self::Max => (f32::NEG_INFINITY, i32::MIN, 0),
            Self::And => (0.0, -1, u32::MAX),
        };
        match scalar {
            Scalar::F32 => Some(Literal::F32(float)),
            Scalar::I32 => Some(Literal::I32(signed)),
            Scalar::U32 => Some(Literal::U32(unsigned)),
            _ => None,
        }
    }
}

macro_rules! subgroup_functions {
    ($($value:expr => $name:literal,)*) => {
        impl SubgroupFunction {
            /// Every operation with the name by which kernels call it.
            pub const ALL: &'static [(Self, &'static str)] = {
                use SubgroupFunction::*;
                use SubgroupOperator::*;
                &[$(($value, $name),)*]
            };
        }
    };
}

/// Operations over a subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SubgroupFunction {
    /// All values combined, the same for all.
    Reduce(SubgroupOperator),
    /// The values of the lanes up to this one combined.
    InclusiveScan(SubgroupOperator),
    /// The values of the lanes before this one combined.
    ExclusiveScan(SubgroupOperator),
    /// The value of one lane, the same for all.
    Broadcast,
    /// The value of the lane asked for.
    Shuffle,
    /// The value of the lane whose number is this one's exclusive-or the mask.
    ShuffleXor,
    /// The value of the lane so many before this one.
    ShuffleUp,
    /// The value of the lane so many behind this one.
    ShuffleDown,
    /// A bit for each lane, of four words: whether its `Bool` is true; 0 for lanes that do not exist.
    Ballot,
    /// Whether the `Bool` of any is true.
    Any,
    /// Whether the `Bool` of all is true.
    All,
}

subgroup_functions! {
    Reduce(Add) => "subgroup_add",
    Reduce(Multiply) => "subgroup_mul",
    Reduce(Min) => "subgroup_min",
    Reduce(Max) => "subgroup_max",
    Reduce(And) => "subgroup_and",
    Reduce(Or) => "subgroup_or",
    Reduce(Xor) => "subgroup_xor",
    InclusiveScan(Add) => "subgroup_inclusive_add",
    InclusiveScan(Multiply) => "subgroup_inclusive_mul",
    InclusiveScan(Min) => "subgroup_inclusive_min",
    InclusiveScan(Max) => "subgroup_inclusive_max",
    InclusiveScan(And) => "subgroup_inclusive_and",
    InclusiveScan(Or) => "subgroup_inclusive_or",
    InclusiveScan(Xor) => "subgroup_inclusive_xor",
    ExclusiveScan(Add) => "subgroup_exclusive_add",
    ExclusiveScan(Multiply) => "subgroup_exclusive_mul",
    ExclusiveScan(Min) => "subgroup_exclusive_min",
    ExclusiveScan(Max) => "subgroup_exclusive_max",
    ExclusiveScan(And) => "subgroup_exclusive_and",
    ExclusiveScan(Or) => "subgroup_exclusive_or",
    ExclusiveScan(Xor) => "subgroup_exclusive_xor",
    Broadcast => "subgroup_broadcast",
    Shuffle => "subgroup_shuffle",
    ShuffleXor => "subgroup_shuffle_xor",
    ShuffleUp => "subgroup_shuffle_up",
    ShuffleDown => "subgroup_shuffle_down",
    Ballot => "subgroup_ballot",
    Any => "subgroup_any",
    All => "subgroup_all",
}

impl SubgroupFunction {
    /// The name by which kernels call it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    /// Whether the result is the same for all invocations of the subgroup.
    pub const fn is_uniform_in_subgroup(self) -> bool {
        matches!(self, Self::Reduce(_) | Self::Broadcast | Self::Ballot | Self::Any | Self::All)
    }

    /// Whether it takes a lane, a mask or a distance.
    pub const fn takes_lane(self) -> bool {
        matches!(self, Self::Broadcast | Self::Shuffle | Self::ShuffleXor | Self::ShuffleUp | Self::ShuffleDown)
    }

    /// Whether it takes a `Bool`.
    pub const fn takes_bool(self) -> bool {
        matches!(self, Self::Ballot | Self::Any | Self::All)
    }

    /// How it combines values, if it does.
    pub const fn operator(self) -> Option<SubgroupOperator> {
        match self {
            Self::Reduce(operator) | Self::InclusiveScan(operator) | Self::ExclusiveScan(operator) => Some(operator),
            _ => None,
        }
    }

    /// Whether it works on values of that scalar, or vectors of them.
    pub fn takes(self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Bool => self.takes_bool(),
            Scalar::I32 | Scalar::U32 => !self.takes_bool(),
            Scalar::F32 => !self.takes_bool() && !self.operator().is_some_and(SubgroupOperator::is_bitwise),
            _ => false,
        }
    }

    /// The type of its result for values of a type.
    pub fn result(self, value: &Type) -> Type {
        if self == Self::Ballot { Type::vector(4, Scalar::U32) } else { value.clone() }
    }

    /// What it works on, in the author's words.
    pub fn words(self) -> &'static str {
        if self.takes_bool() {
            "a bool"
        } else if self.operator().is_some_and(SubgroupOperator::is_bitwise) {
            "i32, u32 and vectors of these"
        } else {
            "f32, i32, u32 and vectors of these"
        }
    }
}
