//! The building of reads and writes.

use super::build::Build;
use super::tree::{self, Origin, Projection};
use crate::ir::{self, Expression, ExpressionKind, Handle, Literal, Span, StatementKind};

impl Build<'_> {
    /// What a place holds, its indices being given.
    pub(super) fn load(
        &mut self,
        place: &tree::Place,
        values: Vec<Handle<Expression>>,
        span: Span,
    ) -> Handle<Expression> {
        let ty = self.ir_type(&place.ty, span);
        if let tree::Root::Local(local) = place.root {
            let Some(handle) = self.locals[local] else {
                // A local that was not declared is wrong and was reported.
                return self.zero(&place.ty, span);
            };
            if !self.function.locals[handle].mutable {
                return self.part(handle, place, values, span);
            }
        }
        let place = self.place(place, values);
        self.add(ExpressionKind::Load(place), ty, span)
    }

    /// A part of an immutable local, which is a value and no place.
    pub(super) fn part(
        &mut self,
        local: Handle<ir::Local>,
        place: &tree::Place,
        values: Vec<Handle<Expression>>,
        span: Span,
    ) -> Handle<Expression> {
        let mut values = values.into_iter();
        let mut value = self.read(local, span);
        for projection in &place.path {
            let base_type = self.function.expressions[value].ty;
            let (ty, parts) = match self.session.module.types[base_type].clone() {
                ir::Type::Vector { lanes, scalar } => (self.scalar_type(scalar), Some(u32::from(lanes))),
                ir::Type::Array { element, length } => (element, length.literal()),
                ir::Type::Struct(handle) => {
                    let field = match projection {
                        Projection::Member(index) => *index as usize,
                        _ => 0,
                    };
                    match self.session.module.structs[handle].fields.get(field) {
                        Some((_, ty)) => (*ty, None),
                        None => (base_type, None),
                    }
                }
                ir::Type::Matrix(matrix) => (self.scalar_type(matrix.scalar), None),
                ir::Type::Scalar(_) | ir::Type::Enum(_) => (base_type, None),
            };
            let kind = match projection {
                Projection::Member(index) => ExpressionKind::Member { base: value, index: *index },
                Projection::Index(_) | Projection::Vector(..) => match values.next() {
                    Some(index) => match self.function.expressions[index].kind {
                        ExpressionKind::Literal(Literal::Index(number))
                            if parts.is_some_and(|parts| number < parts) =>
                        {
                            ExpressionKind::Member { base: value, index: number }
                        }
                        _ => ExpressionKind::Element { base: value, index },
                    },
                    None => return self.zero(&place.ty, span),
                },
            };
            value = self.add(kind, ty, span);
        }
        value
    }

    /// The IR's place, its indices being given.
    pub(super) fn place(&mut self, place: &tree::Place, values: Vec<Handle<Expression>>) -> ir::Place {
        let mut values = values.into_iter();
        let root = match place.root {
            tree::Root::Memory(Origin::Binding(binding)) => ir::Root::Binding(binding),
            tree::Root::Memory(Origin::Workgroup(variable)) => ir::Root::Workgroup(variable),
            tree::Root::Argument(argument) => ir::Root::Argument(argument),
            tree::Root::Local(local) => match self.locals[local] {
                Some(local) => ir::Root::Local(local),
                None => ir::Root::Local(self.declare(local, true)),
            },
        };
        let mut path = Vec::new();
        for projection in &place.path {
            path.push(match projection {
                Projection::Member(index) => ir::Projection::Member(*index),
                Projection::Index(node) => {
                    let index = match values.next() {
                        Some(value) => value,
                        None => self.value(node),
                    };
                    ir::Projection::Index(index)
                }
                Projection::Vector(node, lanes) => {
                    let index = match values.next() {
                        Some(value) => value,
                        None => self.value(node),
                    };
                    ir::Projection::Vector { index, lanes: *lanes }
                }
            });
        }
        ir::Place { root, path, guarded: true }
    }

    pub(super) fn store(&mut self, place: ir::Place, value: Handle<Expression>, span: Span) {
        if !matches!(place.root, ir::Root::Local(_)) {
            self.effects = true;
        }
        self.push(StatementKind::Store { place, value }, span);
    }
}
