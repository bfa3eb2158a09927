//! Types, and constants of the type level.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::BinaryOperator;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// True or false; not held in buffers.
    Bool,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// Rust's `usize`: 32 bits, unsigned, on every device. A type of its own, because Rust does not mix it with `u32`.
    Index,
    /// IEEE half: held in memory, converted to and from `f32`; no arithmetic.
    F16,
    /// IEEE single.
    F32,
    /// A type parameter of the kernel, by position among its generics; gone after instantiation.
    Generic(u32),
}

impl Scalar {
    /// Bytes in memory; `None` for `Bool` and generic types.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            Self::F16 => Some(2),
            Self::I32 | Self::U32 | Self::Index | Self::F32 => Some(4),
            Self::Bool | Self::Generic(_) => None,
        }
    }

    /// `i32`, `u32` or `usize`.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::I32 | Self::U32 | Self::Index)
    }

    /// `f16` or `f32`.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }

    /// Its name in Rust; type parameters have the name that the kernel gives them.
    pub const fn rust_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Index => "usize",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::Generic(_) => "a type parameter",
        }
    }
}

/// The type of a value or of a piece of memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// One scalar.
    Scalar(Scalar),
    /// 2, 3 or 4 scalars. `Vec2` and `Vec4` are aligned to their size, `Vec3` to its scalar.
    Vector {
        /// 2, 3 or 4.
        lanes: u8,
        /// What they are.
        scalar: Scalar,
    },
    /// A fixed number of elements, one after the other.
    Array {
        /// What they are.
        element: Handle<Type>,
        /// How many.
        length: Size,
    },
    /// Fields laid out as `repr(C)` does.
    Struct(Handle<Struct>),
    /// An enum without fields: a `u32` that is one of its discriminants.
    Enum(Handle<Enum>),
}

impl Type {
    /// A vector type.
    pub const fn vector(lanes: u8, scalar: Scalar) -> Self {
        Self::Vector { lanes, scalar }
    }

    /// The scalar of a scalar or vector type.
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Vector { scalar, .. } => Some(*scalar),
            Self::Array { .. } | Self::Struct(_) | Self::Enum(_) => None,
        }
    }

    /// The lanes of a vector type, 1 for a scalar.
    pub const fn lanes(&self) -> Option<u8> {
        match self {
            Self::Scalar(_) => Some(1),
            Self::Vector { lanes, .. } => Some(*lanes),
            Self::Array { .. } | Self::Struct(_) | Self::Enum(_) => None,
        }
    }
}

/// A struct of plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Struct {
    /// The author's name; made unique in the module where two crates use one name.
    pub name: String,
    /// Names and types, in declaration order, which is memory order.
    pub fields: Vec<(String, Handle<Type>)>,
}

/// An enum without fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Enum {
    /// The author's name; made unique in the module.
    pub name: String,
    /// Names and discriminants, in declaration order.
    pub variants: Vec<(String, u32)>,
}

/// A number that must be known when an instance is made: the length of an array, an axis of the workgroup.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Size {
    /// This number. After instantiation, every size is, but for [`super::WorkgroupVariable::exact`].
    Literal(u32),
    /// A const parameter of the kernel, by position among its generics.
    Generic(u32),
    /// A specialisation constant of the kernel, by position among its params: in the length of workgroup memory alone.
    Param(u32),
    /// A computation on sizes; overflow and division by zero are errors of the instantiation.
    Binary(SizeOperator, Box<Size>, Box<Size>),
}

/// What can be computed with sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SizeOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl SizeOperator {
    /// The same operation on values.
    pub const fn binary(self) -> BinaryOperator {
        match self {
            Self::Add => BinaryOperator::Add,
            Self::Subtract => BinaryOperator::Subtract,
            Self::Multiply => BinaryOperator::Multiply,
            Self::Divide => BinaryOperator::Divide,
            Self::Remainder => BinaryOperator::Remainder,
        }
    }

    /// The operator as Rust and every target write it.
    pub const fn sign(self) -> &'static str {
        self.binary().sign()
    }
}

impl Size {
    /// The number, if it is one.
    pub const fn literal(&self) -> Option<u32> {
        match self {
            Self::Literal(value) => Some(*value),
            Self::Generic(_) | Self::Param(_) | Self::Binary(..) => None,
        }
    }

    /// Whether it is known only when a pipeline is made.
    pub fn is_specialised(&self) -> bool {
        match self {
            Self::Param(_) => true,
            Self::Literal(_) | Self::Generic(_) => false,
            Self::Binary(_, left, right) => left.is_specialised() || right.is_specialised(),
        }
    }
}
