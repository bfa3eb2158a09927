//! Matrices that a subgroup holds together: their types, and what is done with them.
//!
//! A matrix is a value of the subgroup: each invocation holds a part of it, and which elements those are is the device's affair. There
//! are three roles, since devices hold the left side of a product, its right side and what is added to it in different ways.
//!
//! * All invocations of the workgroup get to a load, a store or a product, or none (the rule of subgroup operations), and every invocation of a
//!   subgroup gives it the same offset and stride. What fills a matrix is the same for the subgroup too.
//! * Element `(i, j)` in row order is `memory[offset + i * stride + j]`, and `memory[offset + j * stride + i]` in column order. If the memory's
//!   elements are `Vec4<u32>`, offset and stride count these, and a line of the matrix begins at one: its elements are the bits, in order of bytes.
//! * A matrix of which any element is past the end of the memory, or in memory of scalars any line of which does not begin at a multiple of 16
//!   bytes from the start of the memory ([`Matrix::alignment`]), *is not there*: **it is read as zero in all its elements, and nothing of it is written**.
//! * A product adds to each element of `c` the sum of products of a row of `a` and a column of `b`, in `f32`, in no stated order; an
//!   accumulator of `f16` is rounded once or several times.
//! * What is done element by element is done by a loop over [`super::ExpressionKind::MatrixLength`] parts, of which an invocation of one device has
//!   more than one of another, and which part is which element is not known. Two matrices of one type have their elements in the same parts.
//! * A store, and writes of other invocations to what a load reads, are ordered by barriers alone, also within the subgroup.
//!
//! Shapes and types are not for the language to choose: a device lists the products that it has ([`MatrixProduct`]), and runs no kernel that wants another; in SPIR-V
//! a matrix of `f16` or `f32` whose sides are multiples of 8 is also held in blocks of 8 by 8, in a variant for devices that list products of these ([`crate::target::Profile::blocks`]). The CPU
//! and the evaluator have every product: there the first lane of a subgroup holds all of a matrix.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::{Expression, Place};
use super::tile::Tile;
use super::types::{Scalar, Size};

/// What a matrix is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MatrixRole {
    /// The left side of a product.
    A,
    /// The right side of a product.
    B,
    /// What a product is added to, and its result.
    Accumulator,
}

impl MatrixRole {
    /// Every role with the type by which kernels name it.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::A, "MatrixA"), (Self::B, "MatrixB"), (Self::Accumulator, "Accumulator")];

    /// The type by which kernels name it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }

    /// The scalars that its matrices hold.
    pub const fn scalars(self) -> &'static [Scalar] {
        match self {
            Self::A | Self::B => &[Scalar::F16, Scalar::BF16],
            Self::Accumulator => &[Scalar::F32, Scalar::F16],
        }
    }
}

/// The type of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Matrix {
    /// What it is for.
    pub role: MatrixRole,
    /// What its elements are.
    pub scalar: Scalar,
    /// How many rows.
    pub rows: Size,
    /// How many columns.
    pub columns: Size,
}

impl Matrix {
    /// Rows and columns, which are known after instantiation.
    pub fn shape(&self) -> [u32; 2] {
        [self.rows.literal().unwrap_or(0), self.columns.literal().unwrap_or(0)]
    }

    /// How many lines of how many elements lie one after the other in memory of that order.
    pub fn lines(&self, order: MatrixOrder) -> [u32; 2] {
        let [rows, columns] = self.shape();
        match order {
            MatrixOrder::Rows => [rows, columns],
            MatrixOrder::Columns => [columns, rows],
        }
    }

    /// Where a line may begin in memory of scalars: at a multiple of so many elements, which is 16 bytes or a shorter line.
    pub fn alignment(&self, order: MatrixOrder) -> u32 {
        let [_, length] = self.lines(order);
        (16 / self.scalar.bytes().unwrap_or(4)).min(length.next_power_of_two())
    }
}

/// How the elements of a matrix follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MatrixOrder {
    /// Row by row.
    Rows,
    /// Column by column.
    Columns,
}

/// What is done with matrices as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MatrixOperation {
    /// A matrix from memory.
    Load {
        /// The first element, in a binding or workgroup variable: one index, the offset.
        place: Place,
        /// From one line to the next.
        stride: Handle<Expression>,
        /// What a line is.
        order: MatrixOrder,
    },
    /// A matrix to memory; it has no result.
    Store {
        /// As of a load.
        place: Place,
        /// As of a load.
        stride: Handle<Expression>,
        /// As of a load.
        order: MatrixOrder,
        /// The matrix.
        value: Handle<Expression>,
    },
    /// `a * b + c`
    MultiplyAdd {
        /// The left side.
        a: Handle<Expression>,
        /// The right side.
        b: Handle<Expression>,
        /// What is added.
        c: Handle<Expression>,
    },
}

impl MatrixOperation {
    /// The name by which kernels call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Load { order: MatrixOrder::Rows, .. } => "load",
            Self::Load { order: MatrixOrder::Columns, .. } => "load_columns",
            Self::Store { order: MatrixOrder::Rows, .. } => "store",
            Self::Store { order: MatrixOrder::Columns, .. } => "store_columns",
            Self::MultiplyAdd { .. } => "multiply_add",
        }
    }
}

/// A product that a device may have: of a matrix of `rows` by `depth` and one of `depth` by `columns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MatrixProduct {
    /// Rows of the left side and of the accumulator.
    pub rows: u32,
    /// Columns of the right side and of the accumulator.
    pub columns: u32,
    /// Columns of the left side and rows of the right side.
    pub depth: u32,
    /// What both sides hold.
    pub input: MatrixScalar,
    /// What the accumulator holds.
    pub accumulator: MatrixScalar,
}

impl MatrixProduct {
    /// Whether the product has a side, or an accumulator, of that type.
    pub fn has(&self, matrix: &Matrix) -> bool {
        let (shape, scalar) = match matrix.role {
            MatrixRole::A => ([self.rows, self.depth], self.input),
            MatrixRole::B => ([self.depth, self.columns], self.input),
            MatrixRole::Accumulator => ([self.rows, self.columns], self.accumulator),
        };
        shape == matrix.shape() && scalar.scalar() == matrix.scalar
    }
}

impl fmt::Display for MatrixProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, columns, depth, input, accumulator } = self;
        let (input, accumulator) = (input.scalar().rust_name(), accumulator.scalar().rust_name());
        write!(f, "{rows}x{columns}x{depth} of {input} in {accumulator}")
    }
}

/// What a kernel wants of a device that has matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MatrixNeed {
    /// A product.
    Product(MatrixProduct),
    /// A matrix that is in none of the kernel's products: any product of the device's may have it.
    Alone {
        /// What it is for.
        role: MatrixRole,
        /// What it holds.
        scalar: MatrixScalar,
        /// How many rows.
        rows: u32,
        /// How many columns.
        columns: u32,
    },
    /// Teams of four subgroups, which a workgroup has where no subgroup has more than [`MatrixNeed::TEAM_SUBGROUP`] invocations.
    Teams,
}

impl MatrixNeed {
    /// The most invocations of a subgroup of which four are a team.
    pub const TEAM_SUBGROUP: u32 = Tile::TEAM / Tile::SUBGROUPS;

    /// The same of square matrices with so many rows.
    #[must_use]
    pub const fn of_side(self, side: u32) -> Self {
        match self {
            Self::Product(product) => {
                Self::Product(MatrixProduct { rows: side, columns: side, depth: side, ..product })
            }
            Self::Alone { role, scalar, .. } => Self::Alone { role, scalar, rows: side, columns: side },
            Self::Teams => Self::Teams,
        }
    }

    /// Whether a device that lists these products has it; teams are no question of products.
    pub fn is_met(&self, products: &[MatrixProduct]) -> bool {
        match *self {
            Self::Product(product) => products.contains(&product),
            Self::Alone { role, scalar, rows, columns } => {
                let (rows, columns) = (Size::Literal(rows), Size::Literal(columns));
                let matrix = Matrix { role, scalar: scalar.scalar(), rows, columns };
                products.iter().any(|product| product.has(&matrix))
            }
            Self::Teams => true,
        }
    }
}

impl fmt::Display for MatrixNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Product(product) => write!(f, "products of matrices of {product}"),
            Self::Alone { role, scalar, rows, columns } => {
                write!(f, "matrices such as {}<{}, {rows}, {columns}>", role.name(), scalar.scalar().rust_name())
            }
            Self::Teams => write!(f, "teams of four subgroups of {} invocations at most", Self::TEAM_SUBGROUP),
        }
    }
}

/// What matrices hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MatrixScalar {
    /// `f16`
    F16,
    /// `bf16`
    BF16,
    /// `f32`
    F32,
}

impl MatrixScalar {
    /// The scalar.
    pub const fn scalar(self) -> Scalar {
        match self {
            Self::F16 => Scalar::F16,
            Self::BF16 => Scalar::BF16,
            Self::F32 => Scalar::F32,
        }
    }

    /// Of a scalar, if matrices hold it.
    pub const fn from_scalar(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::F16 => Some(Self::F16),
            Scalar::BF16 => Some(Self::BF16),
            Scalar::F32 => Some(Self::F32),
            _ => None,
        }
    }
}
