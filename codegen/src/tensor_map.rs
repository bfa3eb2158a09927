//! Tensor maps: what a Hopper's bulk copies are told of a matrix in a buffer, as hidden arguments of the kernel that the host derives from others.
//!
//! A map says where the matrix lies, how wide and high it is, and how many rows come at once. All of it is known before the launch if the width is: if it is computed
//! from parameters, lengths and constants alone. Then the kernel's text asks for a map of that binding and width, a [`TensorMap`] says how the width comes about, and the device
//! makes the map when it launches the kernel. A width that comes from elsewhere (an argument, memory, the invocation) is left to copies by each invocation.
//!
//! Lengths are hidden parameters, so that the parameter block tells all that is wanted.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::artefact::{List, ParamField, ParamRole, Params};
use crate::flat;
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
use crate::ir::TileOperation;
use crate::ir::{
    BinaryOperator, Expression, ExpressionKind, Function, Handle, Literal, Local, Module, Scalar, StatementKind, Tile,
    Type, constant, statements,
};
use crate::layout::param_role;

/// Groups of bulk copies that may be on their way; a kernel that begins more waits for the first of them.
pub(crate) const GROUPS: u32 = 8;
/// Bytes of workgroup memory that they take: a barrier each, two counts, and what aligns them.
pub(crate) const GROUP_BYTES: u32 = GROUPS * 8 + 8 + 8;
/// A width of more terms is taken for one that is not known.
const MOST_TERMS: usize = 64;

/// A tensor map that a kernel takes as an argument: a matrix of elements of two bytes, of which a box of [`TensorMap::COLUMNS`] columns is copied at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TensorMap {
    /// The buffer, by position among the bindings; its elements are 16 bytes of the matrix.
    pub binding: u32,
    /// The rows of a box.
    pub rows: u32,
    /// How many 16 bytes a row has: terms of which an operation takes the last results.
    pub width: List<Term>,
}

/// A step on the way to a number of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Term {
    /// A constant.
    Literal(u32),
    /// A scalar of the parameter block.
    Parameter(ParamRole),
    /// An operation on the last two results, as the IR defines it for unsigned integers; a comparison gives 0 or 1.
    Binary(BinaryOperator),
    /// Of the last three results the second if the first is not 0, else the third.
    Select,
}

/// The matrix of a [`TensorMap`], for one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// How many 16 bytes a row has; 0 if there are none.
    pub width: u32,
    /// How many whole rows the buffer has.
    pub rows: u32,
}

impl TensorMap {
    /// The columns of a box: 128 bytes, over which its pieces are permuted.
    pub const COLUMNS: u32 = Tile::UNIT;
    /// The elements in the 16 bytes that a width counts.
    pub const LANES: u32 = Tile::LANES;

    /// The matrix that the arguments of a launch describe; `None` if `block` is not laid out as `params`.
    pub fn shape(&self, params: &Params, block: &[u8]) -> Option<MapShape> {
        let word = |role: ParamRole| {
            let field = params.fields.iter().find(|field| field.role == role).filter(|field| is_word(field))?;
            let bytes = block.get(field.offset as usize..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let mut results = Vec::new();
        for term in self.width.iter() {
            let result = match term {
                Term::Literal(value) => *value,
                Term::Parameter(role) => word(*role)?,
                Term::Binary(operator) => {
                    let (right, left) = (results.pop()?, results.pop()?);
                    match constant::binary(*operator, Literal::U32(left), Literal::U32(right))? {
                        Literal::U32(value) => value,
                        other => u32::from(other == Literal::Bool(true)),
                    }
                }
                Term::Select => {
                    let (reject, accept, condition) = (results.pop()?, results.pop()?, results.pop()?);
                    if condition != 0 { accept } else { reject }
                }
            };
            results.push(result);
        }
        let ([width], length) = (results.as_slice(), word(ParamRole::Length(self.binding))?) else { return None };
        Some(MapShape { width: *width, rows: length.checked_div(*width).unwrap_or(0) })
    }
}

fn is_word(field: &ParamField) -> bool {
    field.ty.count == 1 && !field.ty.array && field.ty.scalar.bytes() == 4
}

/// The maps that a lowered kernel asks for, each once.
#[cfg(any(feature = "wgsl", feature = "spirv", feature = "cuda"))]
pub(crate) fn tensor_maps(module: &Module) -> Vec<TensorMap> {
    let mut maps = Vec::new();
    if module.workgroup.iter().all(|(_, variable)| variable.tile.is_none()) {
        return maps;
    }
    statements(&module.entry.body, &mut |statement| {
        if let StatementKind::Tile(TileOperation::BulkCopy { map, .. }) = &statement.kind
            && !maps.contains(map)
        {
            maps.push(map.clone());
        }
    });
    maps
}

/// The map by which a tile is copied from a binding, where `width` is known to the host: an expression of the kernel's own body.
pub(crate) fn derive(
    module: &Module,
    tile: &Tile,
    binding: u32,
    width: Handle<Expression>,
    entry: &Function,
) -> Option<TensorMap> {
    let mut terms = Vec::new();
    let source = Source { module, entry };
    source.terms(width, &mut terms)?;
    Some(TensorMap { binding, rows: box_rows(tile), width: Cow::Owned(terms) })
}

/// The most rows of a box that divide a tile's: hardware copies up to 256.
fn box_rows(tile: &Tile) -> u32 {
    let [rows, _] = tile.shape();
    (1..=256 / Tile::UNIT).rev().map(|units| units * Tile::UNIT).find(|unit| rows % unit == 0).unwrap_or(Tile::UNIT)
}

struct Source<'a> {
    module: &'a Module,
    entry: &'a Function,
}

impl Source<'_> {
    fn terms(&self, handle: Handle<Expression>, out: &mut Vec<Term>) -> Option<()> {
        let expression = &self.entry.expressions[handle];
        let Type::Scalar(scalar) = self.module.types[expression.ty] else { return None };
        if !matches!(scalar, Scalar::Index | Scalar::U32 | Scalar::Bool) || out.len() >= MOST_TERMS {
            return None;
        }
        match &expression.kind {
            ExpressionKind::Literal(literal) => out.push(Term::Literal(literal.bits() as u32)),
            ExpressionKind::Length(binding) => out.push(Term::Parameter(ParamRole::Length(*binding))),
            ExpressionKind::Param(_) | ExpressionKind::Member { .. } => out.push(Term::Parameter(self.role(handle)?)),
            ExpressionKind::Local(local) => self.terms(self.value_of(*local)?, out)?,
            ExpressionKind::Convert(value) if scalar != Scalar::Bool => self.terms(*value, out)?,
            ExpressionKind::Binary { operator, left, right } => {
                self.terms(*left, out)?;
                self.terms(*right, out)?;
                out.push(Term::Binary(*operator));
            }
            ExpressionKind::Select { condition, accept, reject } => {
                for value in [condition, accept, reject] {
                    self.terms(*value, out)?;
                }
                out.push(Term::Select);
            }
            _ => return None,
        }
        Some(())
    }

    /// The value of an immutable local.
    fn value_of(&self, wanted: Handle<Local>) -> Option<Handle<Expression>> {
        let mut found = None;
        statements(&self.entry.body, &mut |statement| {
            if let StatementKind::Let { local, value } = statement.kind
                && local == wanted
            {
                found = value;
            }
        });
        found.filter(|_| !self.entry.locals[wanted].mutable)
    }

    /// What a parameter, or a field of one, is called in the parameter block.
    fn role(&self, handle: Handle<Expression>) -> Option<ParamRole> {
        if let ExpressionKind::Param(param) = self.entry.expressions[handle].kind
            && let role @ ParamRole::Constant(_) = param_role(self.module, param)
        {
            return Some(role);
        }
        self.leaf(handle).map(ParamRole::User)
    }

    /// The first leaf of a parameter or of a part of it, among those of all parameters.
    fn leaf(&self, handle: Handle<Expression>) -> Option<u32> {
        match self.entry.expressions[handle].kind {
            ExpressionKind::Param(param) => flat::first_leaf(self.module, param),
            ExpressionKind::Member { base, index } => {
                let Type::Struct(structure) = self.module.types[self.entry.expressions[base].ty] else { return None };
                Some(self.leaf(base)? + flat::leaves_before(self.module, structure, index)?)
            }
            _ => None,
        }
    }
}
