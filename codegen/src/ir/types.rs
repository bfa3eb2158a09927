//! Types, and constants of the type level.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::{BinaryOperator, Literal};
use super::matrix::Matrix;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    /// True or false; not held in buffers.
    Bool,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// Rust's `usize`: 32 bits, unsigned, on every device. A type of its own, because Rust does not mix it with `u32`. In an instance whose indices
    /// are 64 bits wide, `U64` stands in its place: see [`IndexWidth`].
    Index,
    /// 8-bit signed integer.
    I8,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit signed integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single.
    BF16,
    /// IEEE single.
    F32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE double.
    F64,
    /// A type parameter of the kernel, by position among its generics; gone after instantiation.
    Generic(u32),
}

impl Scalar {
    /// Every type but the generic ones.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::I32,
        Self::U32,
        Self::Index,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::I64,
        Self::U64,
        Self::F64,
    ];

    /// Bytes in memory; `None` for `Bool` and generic types.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            Self::I8 | Self::U8 => Some(1),
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => Some(2),
            Self::I32 | Self::U32 | Self::Index | Self::F32 => Some(4),
            Self::I64 | Self::U64 | Self::F64 => Some(8),
            Self::Bool | Self::Generic(_) => None,
        }
    }

    /// Bits of its values in memory, which are what shifts of integers count modulo; 32 for those that memory does not hold.
    pub const fn bits(self) -> u32 {
        match self.bytes() {
            Some(bytes) => 8 * bytes,
            None => 32,
        }
    }

    /// Whether it has 8 or 16 bits, so that its arithmetic is done in 32.
    pub const fn is_narrow(self) -> bool {
        self.bits() < 32
    }

    /// The 32-bit type that holds each of its values, for narrow types; itself for others.
    #[must_use]
    pub const fn widened(self) -> Self {
        match self {
            Self::I8 | Self::I16 => Self::I32,
            Self::U8 | Self::U16 => Self::U32,
            Self::F16 | Self::BF16 => Self::F32,
            other => other,
        }
    }

    /// The least and the greatest value of an integer; zeros for others.
    pub const fn limits(self) -> [i128; 2] {
        if !self.is_integer() {
            return [0, 0];
        }
        if self.is_signed() {
            let most = (1i128 << (self.bits() - 1)) - 1;
            return [-most - 1, most];
        }
        [0, (1i128 << self.bits()) - 1]
    }

    /// Whether a value of it fills two words.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::I64 | Self::U64 | Self::F64)
    }

    /// Whether `+`, `&` and the like are those of integers.
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Self::I8 | Self::U8 | Self::I16 | Self::U16 | Self::I32 | Self::U32 | Self::Index | Self::I64 | Self::U64
        )
    }

    /// Whether it is an integer with a sign.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether there is arithmetic of it.
    pub const fn is_number(self) -> bool {
        self.is_integer() || self.is_float()
    }

    /// Its name in Rust; type parameters have the name that the kernel gives them.
    pub const fn rust_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Index => "usize",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::Generic(_) => "a type parameter",
        }
    }

    /// The type of that name in Rust.
    pub fn from_rust_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.rust_name() == name)
    }
}

/// How wide the indices of an instance are: its `usize`, lengths, extents, strides and offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexWidth {
    /// 32 bits: `usize` is [`Scalar::Index`].
    #[default]
    Bits32,
    /// 64 bits: `usize` is [`Scalar::U64`].
    Bits64,
}

impl IndexWidth {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Bits32, Self::Bits64];

    /// What `usize` is.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::Bits32 => Scalar::Index,
            Self::Bits64 => Scalar::U64,
        }
    }

    /// A number as an index.
    pub const fn literal(self, value: u32) -> Literal {
        match self {
            Self::Bits32 => Literal::Index(value),
            Self::Bits64 => Literal::U64(value as u64),
        }
    }

    /// 32 or 64.
    pub const fn bits(self) -> u32 {
        self.scalar().bits()
    }

    /// Whether it is the wider one.
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Bits64)
    }

    /// The largest index.
    pub const fn largest(self) -> u64 {
        match self {
            Self::Bits32 => u32::MAX as u64,
            Self::Bits64 => u64::MAX,
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
    /// A matrix that a subgroup holds together; of locals, arrays of these, arguments and results alone.
    Matrix(Matrix),
}

impl Type {
    /// The same shape with another scalar; a scalar for what is no vector.
    #[must_use]
    pub const fn with_scalar(&self, scalar: Scalar) -> Self {
        match self {
            Self::Vector { lanes, .. } => Self::vector(*lanes, scalar),
            _ => Self::Scalar(scalar),
        }
    }

    /// A vector type.
    pub const fn vector(lanes: u8, scalar: Scalar) -> Self {
        Self::Vector { lanes, scalar }
    }

    /// The scalar of a scalar or vector type.
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Vector { scalar, .. } => Some(*scalar),
            Self::Array { .. } | Self::Struct(_) | Self::Enum(_) | Self::Matrix(_) => None,
        }
    }

    /// The lanes of a vector type, 1 for a scalar.
    pub const fn lanes(&self) -> Option<u8> {
        match self {
            Self::Scalar(_) => Some(1),
            Self::Vector { lanes, .. } => Some(*lanes),
            Self::Array { .. } | Self::Struct(_) | Self::Enum(_) | Self::Matrix(_) => None,
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
    Binary(
        SizeOperator,
        #[serde(deserialize_with = "super::nested::deserialize")] Box<Size>,
        #[serde(deserialize_with = "super::nested::deserialize")] Box<Size>,
    ),
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

    /// The same size where the params stand at these positions.
    pub(crate) fn renumber(&mut self, params: &[u32]) {
        match self {
            Self::Param(index) => *index = params[*index as usize],
            Self::Literal(_) | Self::Generic(_) => {}
            Self::Binary(_, left, right) => {
                left.renumber(params);
                right.renumber(params);
            }
        }
    }
}
