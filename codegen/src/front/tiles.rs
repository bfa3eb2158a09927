//! Tiles: `workgroup_tile::<f16, ROWS, COLUMNS>(stages)`, `copy_tile_async(&mut tile, stage, x, row, column, width)` and
//! `multiply_tiles(&mut sums, &a, rows, &b, columns, stage)`.

use super::build::{Build, indices};
use super::infer::{Length, Ty};
use super::places::peel_reference;
use super::scope::{Entity, Infer};
use super::session::unique;
use super::tree::{Kind, Node, Origin, TileNode};
use crate::ir::{
    self, Handle, MatrixRole, Root, Scalar, Size, SizeOperator, StatementKind, Tile, TileOperation, WorkgroupVariable,
};

/// How a tile is declared.
const DECLARED: &str = "let mut tile = workgroup_tile::<f16, 64, 64>(2);";

impl Infer<'_> {
    /// `workgroup_tile::<T, ROWS, COLUMNS>(stages)`: one variable of the kernel.
    pub(super) fn workgroup_tile(
        &mut self,
        call: &syn::ExprCall,
        path: &syn::Path,
        name: &syn::Ident,
    ) -> Option<Handle<WorkgroupVariable>> {
        if self.in_constant {
            self.error(call, "a constant cannot have workgroup memory");
            return None;
        }
        let written = match path.segments.last().map(|segment| &segment.arguments) {
            Some(syn::PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect(),
            _ => Vec::new(),
        };
        let [syn::GenericArgument::Type(scalar), rows, columns] = written[..] else {
            self.error(call, format!("write what a tile holds, its rows and its columns: `{DECLARED}`"));
            return None;
        };
        let [stages] = self.arguments(call, "workgroup_tile")?;
        let scope = self.scope.clone();
        let held = self.session.resolve_type(scalar, &scope);
        let scalar = match self.table.full(&held) {
            Some(Ty::Scalar(scalar)) => scalar,
            Some(Ty::Error) => return None,
            _ => {
                self.error(scalar, "a tile holds f16 or bf16");
                return None;
            }
        };
        let (rows, columns) = (self.session.side(rows, &scope)?, self.session.side(columns, &scope)?);
        let stages = self.session.size(stages, &scope)?;
        let [rows, columns, stages] = [rows, columns, stages].map(|length| self.table.length(&length));
        let (rows, columns, stages) = (rows?, columns?, stages?);
        let combined = |operator, left: Size, right| Size::Binary(operator, Box::new(left), Box::new(right));
        let length = combined(SizeOperator::Multiply, rows.clone(), columns.clone());
        let length = combined(SizeOperator::Divide, length, Size::Literal(Tile::LANES));
        let length = combined(SizeOperator::Multiply, stages, length);
        let element = self.session.ir_type(&Ty::vector(4, Ty::U32))?;
        let span = self.session.span(name);
        let taken: Vec<String> = self.session.module.workgroup.iter().map(|(_, v)| v.name.clone()).collect();
        Some(self.session.module.workgroup.add(WorkgroupVariable {
            name: unique(&name.to_string(), taken.iter().map(String::as_str)),
            element,
            length,
            exact: None,
            atomic: false,
            tile: Some(Tile { scalar, rows, columns }),
            span,
        }))
    }

    /// A tile that is written as an argument.
    fn tile(&mut self, e: &syn::Expr, name: &str) -> Option<Handle<WorkgroupVariable>> {
        let path = match peel_reference(e) {
            syn::Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        match path.and_then(|path| self.lookup(&path.to_string())) {
            Some(Entity::Tile(tile)) => Some(*tile),
            Some(Entity::Failed) => None,
            _ => {
                self.error(e, format!("`{name}` is for tiles: `{DECLARED}`"));
                None
            }
        }
    }

    /// `copy_tile_async(..)`
    pub(super) fn copy_tile(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let Some([to, stage, from, row, column, width]) = self.arguments(e, name) else {
            return self.failed(e);
        };
        let tile = self.tile(to, name);
        let source = self.copied(from, false, name);
        let values = [stage, row, column, width].map(|value| self.index_argument(value));
        let (Some(tile), Some(source)) = (tile, source) else { return self.failed(e) };
        if !self.table.unify(&source.element, &Ty::vector(4, Ty::U32)) {
            let found = self.describe(&source.element);
            return self.wrong(
                from,
                format!("`{name}` reads the bits of a matrix, 16 bytes at a time: expected a slice of `Vec4<u32>`, found a slice of `{found}`"),
            );
        }
        self.node(Kind::Tile(Box::new(TileNode::Copy(tile, source.origin, values))), Ty::Unit, e)
    }

    /// `multiply_tiles(..)`
    pub(super) fn multiply_tiles(&mut self, e: &syn::ExprCall, name: &str) -> Node {
        let Some([sums, a, rows, b, columns, stage]) = self.arguments(e, name) else {
            return self.failed(e);
        };
        let side = || Length::Known(Size::Literal(16));
        let sum = Ty::Matrix(MatrixRole::Accumulator, Box::new(Ty::Scalar(Scalar::F32)), Box::new([side(), side()]));
        let ty = Ty::Array(Box::new(sum), self.table.fresh_length());
        let place = self.reference_argument(sums, &ty);
        if place.as_ref().is_some_and(|place| !place.path.is_empty()) {
            return self.wrong(sums, "sums of tiles are a variable as a whole");
        }
        let (left, right) = (self.tile(a, name), self.tile(b, name));
        let values = [rows, columns, stage].map(|value| self.index_argument(value));
        let (Some(place), Some(left), Some(right)) = (place, left, right) else { return self.failed(e) };
        self.node(Kind::Tile(Box::new(TileNode::Multiply(place, [left, right], values))), Ty::Unit, e)
    }

    /// An argument that is a `usize`.
    pub(super) fn index_argument(&mut self, e: &syn::Expr) -> Node {
        let node = self.expr(e, Some(&Ty::INDEX));
        self.index_type(node, e)
    }
}

impl Build<'_> {
    /// Does what such a call does.
    pub(super) fn tile(&mut self, node: &TileNode, span: ir::Span) {
        self.effects = true;
        let operation = match node {
            TileNode::Copy(tile, origin, values) => {
                let from = match origin {
                    Origin::Binding(binding) => Root::Binding(*binding),
                    Origin::Workgroup(variable) => Root::Workgroup(*variable),
                };
                match self.ordered(&values.iter().collect::<Vec<_>>())[..] {
                    [stage, row, column, width] => TileOperation::Copy { tile: *tile, stage, from, row, column, width },
                    _ => return,
                }
            }
            TileNode::Multiply(sums, [a, b], values) => {
                debug_assert!(indices(sums).is_empty(), "sums are a variable as a whole");
                match self.ordered(&values.iter().collect::<Vec<_>>())[..] {
                    [rows, columns, stage] => {
                        let sums = ir::Place { guarded: false, ..self.place(sums, Vec::new()) };
                        TileOperation::Multiply { sums, a: *a, rows, b: *b, columns, stage }
                    }
                    _ => return,
                }
            }
        };
        self.push(StatementKind::Tile(operation), span);
    }
}
