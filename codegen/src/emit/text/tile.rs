//! Operations on tiles that a target has by itself.

use crate::emit::EmitError;
use crate::ir::{Expression, Handle, Place, Tile, TileOperation, Type, WorkgroupVariable};

use super::printer::Scope;
use super::{Code, Dialect, Printer, Writer};

type Result<T> = std::result::Result<T, EmitError>;

/// A side of a product: what its stages hold, how many there are, and their name.
pub struct Side<'a> {
    /// What a stage holds.
    pub tile: &'a Tile,
    /// How many stages.
    pub stages: u32,
    /// The variable.
    pub name: Code,
}

impl<'a, D: Dialect> Printer<'a, D> {
    /// Prints an operation.
    pub(super) fn tile(&mut self, scope: &Scope<'a>, out: &mut Writer, operation: &'a TileOperation) -> Result<()> {
        match operation {
            TileOperation::Multiply { sums, a, rows, b, columns, stage } => {
                let (ty, sums) = self.sums(scope, sums)?;
                let sides = [self.side(*a)?, self.side(*b)?];
                let numbers = self.numbers(scope, [*rows, *columns, *stage])?;
                let line = D::multiply_tiles(self, ty, sums, sides, numbers)?;
                out.line(line);
            }
            TileOperation::Finish { sums } => {
                let mut all = Vec::new();
                for place in sums {
                    all.push(self.sums(scope, place)?.1);
                }
                for line in D::finish_products(self, all)? {
                    out.line(line);
                }
            }
            TileOperation::BulkCopy { tile, stage, map, row, column, otherwise } => {
                let side = self.side(*tile)?;
                let numbers = self.numbers(scope, [*stage, *row, *column])?;
                let otherwise = self.expression(scope, *otherwise)?;
                for line in D::bulk_copy(self, side, map, numbers, otherwise)? {
                    out.line(line);
                }
            }
            TileOperation::Copy { .. } => return Err(self.error(format!("a `{}` is left", operation.name()))),
        }
        Ok(())
    }

    fn numbers(&mut self, scope: &Scope<'a>, [first, second, third]: [Handle<Expression>; 3]) -> Result<[Code; 3]> {
        Ok([self.expression(scope, first)?, self.expression(scope, second)?, self.expression(scope, third)?])
    }

    fn side(&self, handle: Handle<WorkgroupVariable>) -> Result<Side<'a>> {
        let variable = &self.lowered.module.workgroup[handle];
        let (Some(tile), Some(length)) = (&variable.tile, variable.length.literal()) else {
            return Err(self.error("a product of what is no tile"));
        };
        let stages = length / tile.pieces().max(1);
        Ok(Side { tile, stages, name: Code::atom(self.workgroup[handle.index()].clone()) })
    }

    fn sums(&mut self, scope: &Scope<'a>, place: &Place) -> Result<(&'a Type, Code)> {
        let ty = match place.root {
            crate::ir::Root::Local(local) => scope.function.locals[local].ty,
            crate::ir::Root::Argument(argument) => scope.function.arguments[argument as usize].ty,
            _ => return Err(self.error("sums in memory")),
        };
        let code = self.plain_place(scope, place)?;
        Ok((self.ty(ty), code.ok_or_else(|| self.error("sums that are no place"))?))
    }
}
