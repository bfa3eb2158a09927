//! Tiles: parts of matrices in workgroup memory, laid out as the matrix units of the target read them.
//!
//! A tile variable ([`super::WorkgroupVariable::tile`]) holds *stages*, each a tile of so many rows and columns, both multiples of [`Tile::UNIT`]. How the elements of a
//! stage lie is the target's affair, so that nothing but these operations touches them. A stage is given by a number that counts modulo the number of stages, and
//! the part of a tile that a product takes by one that counts modulo the number of such parts: no operation reaches beyond a tile.
//!
//! * [`TileOperation::Copy`] is done by the workgroup together, which gives it the same values in every invocation. It begins to copy `rows` by `columns` elements
//!   from a buffer of `Vec4<u32>`, whose rows are `width` of these: those from row `row` and column `column` (counted in `Vec4<u32>`) on. What is beyond the rows'
//!   width, or beyond the last whole row of the buffer, is zero in the tile. It is an asynchronous copy of every invocation, of which commits, waits and
//!   barriers mean what they mean for others. Lowering may make it [`TileOperation::BulkCopy`], by what `tensor_map.rs` derives.
//! * [`TileOperation::Multiply`] is done by all invocations of the workgroup or none. The *subgroup* with number `s` adds to its `sums`, which are `n` accumulators of 16 by
//!   16 side by side, the product of 16 rows of a tile and `16 * n` columns of another: rows `64 * rows + 16 * (s % 4)` on of `a`, over its whole depth, and columns
//!   `16 * n * columns` on of `b`. Four subgroups whose numbers give the same quotient by four are a *team*, and give it the same numbers: a team's product is one
//!   instruction on some devices. It may read the tiles until the next barrier; the sums have it at once for who looks at them.

use serde::{Deserialize, Serialize};

use super::arena::Handle;
use super::expression::{Expression, Place, Root};
use super::module::WorkgroupVariable;
use super::types::{Scalar, Size};
use crate::tensor_map::TensorMap;

/// What a stage of a tile variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tile {
    /// What its elements are.
    pub scalar: Scalar,
    /// How many rows.
    pub rows: Size,
    /// How many columns.
    pub columns: Size,
}

impl Tile {
    /// Rows and columns are multiples of so many: the rows of a team's product, and the elements in 128 bytes.
    pub const UNIT: u32 = 64;
    /// Elements in 16 bytes.
    pub const LANES: u32 = 8;
    /// The most accumulators of a product.
    pub const MOST_SUMS: u32 = 16;
    /// Invocations of a team where it is one instruction's.
    pub const TEAM: u32 = 128;
    /// Subgroups of a team.
    pub const SUBGROUPS: u32 = 4;

    /// Rows and columns, which are known after instantiation.
    pub fn shape(&self) -> [u32; 2] {
        [self.rows.literal().unwrap_or(0), self.columns.literal().unwrap_or(0)]
    }

    /// How many `Vec4<u32>` a stage is, if they lie without gaps.
    pub fn pieces(&self) -> u32 {
        let [rows, columns] = self.shape();
        rows.saturating_mul(columns) / Self::LANES
    }
}

/// What is done with tiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TileOperation {
    /// Begins to fill a stage.
    Copy {
        /// A tile variable.
        tile: Handle<WorkgroupVariable>,
        /// Which stage: an `Index`, as the others.
        stage: Handle<Expression>,
        /// A binding of `Vec4<u32>`.
        from: Root,
        /// The first row.
        row: Handle<Expression>,
        /// The first column, in `Vec4<u32>`.
        column: Handle<Expression>,
        /// The `Vec4<u32>` of a row.
        width: Handle<Expression>,
    },
    /// The same by the hardware's bulk copies, where it has them, by a map that the host makes: made by lowering alone.
    BulkCopy {
        /// A tile variable.
        tile: Handle<WorkgroupVariable>,
        /// Which stage: an `Index`, as the others.
        stage: Handle<Expression>,
        /// Tells where the matrix is.
        map: TensorMap,
        /// The first row.
        row: Handle<Expression>,
        /// The first column, in `Vec4<u32>`.
        column: Handle<Expression>,
        /// The call that copies where there are none.
        otherwise: Handle<Expression>,
    },
    /// Adds a product.
    Multiply {
        /// A mutable local or by-reference argument as a whole: an array of accumulators of `f32`, of 16 by 16.
        sums: Place,
        /// The tile variable of the left side.
        a: Handle<WorkgroupVariable>,
        /// Which 64 rows of it.
        rows: Handle<Expression>,
        /// The tile variable of the right side, with as many rows as the left has columns.
        b: Handle<WorkgroupVariable>,
        /// Which columns of it.
        columns: Handle<Expression>,
        /// Which stage of both.
        stage: Handle<Expression>,
    },
    /// Waits for products, where the target has them go on by themselves: made by lowering alone.
    Finish {
        /// The variables whose sums are waited for.
        sums: Vec<Place>,
    },
}

impl TileOperation {
    /// The name of its function.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Copy { .. } | Self::BulkCopy { .. } => "copy_tile_async",
            Self::Multiply { .. } => "multiply_tiles",
            Self::Finish { .. } => "finish_products",
        }
    }

    /// The tile variables of which it reads or writes elements.
    pub fn tiles(&self) -> Vec<Handle<WorkgroupVariable>> {
        match self {
            Self::Copy { tile, .. } | Self::BulkCopy { tile, .. } => vec![*tile],
            Self::Multiply { a, b, .. } => vec![*a, *b],
            Self::Finish { .. } => Vec::new(),
        }
    }

    /// The same, to put others in their place.
    pub fn tiles_mut(&mut self) -> Vec<&mut Handle<WorkgroupVariable>> {
        match self {
            Self::Copy { tile, .. } | Self::BulkCopy { tile, .. } => vec![tile],
            Self::Multiply { a, b, .. } => vec![a, b],
            Self::Finish { .. } => Vec::new(),
        }
    }
}
