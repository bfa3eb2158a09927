//! From a body whose types are known to IR: operands in Rust's order, effects as statements.
//!
//! Invariants kept here: expressions are trees; what has an effect is a statement before the expression that wants its value, and
//! operands evaluated before it become locals first; what is wanted twice is an immutable local.

use super::infer::{Table, Ty};
use super::session::Session;
use super::tree::{self, Block, Kind, Node, Origin, Projection, Statement};
use crate::ir::{
    self, BinaryOperator, Expression, ExpressionKind, Function, Handle, Literal, Scalar, Size, SizeOperator, Span,
    StatementKind, UnaryOperator,
};

/// The building of one function.
pub(super) struct Build<'s> {
    pub session: &'s mut Session,
    pub table: Table,
    /// The body's locals, and what they are in IR.
    pub tree_locals: Vec<tree::Local>,
    pub locals: Vec<Option<Handle<ir::Local>>>,
    pub function: Function,
    /// The block that is being written.
    pub block: ir::Block,
    /// Whether constants are being computed.
    pub folding: bool,
    /// Whether the function writes anything but its own locals, or is collective.
    pub effects: bool,
}

impl<'s> Build<'s> {
    pub(super) fn new(
        session: &'s mut Session,
        table: Table,
        tree_locals: Vec<tree::Local>,
        function: Function,
    ) -> Self {
        let locals = vec![None; tree_locals.len()];
        Self { session, table, tree_locals, locals, function, block: Vec::new(), folding: false, effects: false }
    }

    /// The type, with what is open decided as rustc does.
    pub(super) fn full(&mut self, ty: &Ty, span: Span) -> Ty {
        match self.table.full(ty) {
            Some(Ty::Never) => Ty::Error,
            Some(ty) => ty,
            None => {
                self.session.error_at(
                    span,
                    "the type of this is not known: write it where the variable is declared, as in `let x: f32`",
                );
                Ty::Error
            }
        }
    }

    /// The IR's type; of something wrong, any.
    pub(super) fn ir_type(&mut self, ty: &Ty, span: Span) -> Handle<ir::Type> {
        let ty = self.full(ty, span);
        match self.session.ir_type(&ty) {
            Some(handle) => handle,
            None => self.session.module.intern(ir::Type::Scalar(Scalar::U32)),
        }
    }

    pub(super) fn add(&mut self, kind: ExpressionKind, ty: Handle<ir::Type>, span: Span) -> Handle<Expression> {
        self.function.expressions.add(Expression { kind, ty, span })
    }

    pub(super) fn scalar_type(&mut self, scalar: Scalar) -> Handle<ir::Type> {
        self.session.module.intern(ir::Type::Scalar(scalar))
    }

    pub(super) fn literal(&mut self, literal: Literal, span: Span) -> Handle<Expression> {
        let ty = self.scalar_type(literal.scalar());
        self.add(ExpressionKind::Literal(literal), ty, span)
    }

    pub(super) fn push(&mut self, kind: StatementKind, span: Span) {
        self.block.push(ir::Statement { kind, span });
    }

    /// What `write` writes, as a block of its own.
    pub(super) fn nested(&mut self, write: impl FnOnce(&mut Self)) -> ir::Block {
        let outer = std::mem::take(&mut self.block);
        write(self);
        std::mem::replace(&mut self.block, outer)
    }

    pub(super) fn new_local(
        &mut self,
        name: &str,
        ty: Handle<ir::Type>,
        mutable: bool,
        span: Span,
    ) -> Handle<ir::Local> {
        self.function.locals.add(ir::Local { name: name.to_owned(), ty, mutable, span })
    }

    /// Declares a local of the author's.
    fn declare(&mut self, local: usize, mutable: bool) -> Handle<ir::Local> {
        let tree::Local { name, ty, span, .. } = self.tree_locals[local].clone();
        let ty = self.ir_type(&ty, span);
        let handle = self.new_local(&name, ty, mutable, span);
        self.locals[local] = Some(handle);
        handle
    }

    /// An immutable local that holds the value.
    pub(super) fn spill(&mut self, value: Handle<Expression>, name: &str) -> Handle<ir::Local> {
        let Expression { ty, span, .. } = self.function.expressions[value].clone();
        let local = self.new_local(name, ty, false, span);
        self.push(StatementKind::Let { local, value: Some(value) }, span);
        local
    }

    pub(super) fn read(&mut self, local: Handle<ir::Local>, span: Span) -> Handle<Expression> {
        let ir::Local { ty, mutable, .. } = self.function.locals[local];
        let kind =
            if mutable { ExpressionKind::Load(whole(ir::Root::Local(local))) } else { ExpressionKind::Local(local) };
        self.add(kind, ty, span)
    }

    /// A value that is wanted twice: a fresh copy of a leaf, or a local read twice.
    pub(super) fn twice(&mut self, value: Handle<Expression>, name: &str) -> (Handle<Expression>, Handle<Expression>) {
        let expression = self.function.expressions[value].clone();
        let leaf = match &expression.kind {
            ExpressionKind::Literal(_)
            | ExpressionKind::GenericConstant(_)
            | ExpressionKind::Param(_)
            | ExpressionKind::Length(_)
            | ExpressionKind::ViewExtent { .. }
            | ExpressionKind::ViewStride { .. }
            | ExpressionKind::Builtin(_)
            | ExpressionKind::Argument(_)
            | ExpressionKind::Local(_) => true,
            _ => false,
        };
        if leaf {
            let again = self.function.expressions.add(expression);
            return (value, again);
        }
        let local = self.spill(value, name);
        let first = self.read(local, expression.span);
        (first, self.read(local, expression.span))
    }

    pub(super) fn binary(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        span: Span,
    ) -> Handle<Expression> {
        let ty =
            if operator.is_comparison() { self.scalar_type(Scalar::Bool) } else { self.function.expressions[left].ty };
        let kind = ExpressionKind::Binary { operator, left, right };
        self.add(kind, ty, span)
    }

    // --- order ---------------------------------------------------------------------------------------------------------------

    /// Whether a value needs statements before the expression that wants it.
    pub(super) fn complex(&mut self, node: &Node) -> bool {
        match &node.kind {
            Kind::Error
            | Kind::Unit
            | Kind::Literal(_)
            | Kind::Integer(_)
            | Kind::Float(..)
            | Kind::Constant(_)
            | Kind::Param(_)
            | Kind::Argument(_)
            | Kind::Builtin(_)
            | Kind::Length(_)
            | Kind::ViewExtent(..)
            | Kind::ViewStride(..)
            | Kind::TargetHas(_) => false,
            Kind::Load(place) => self.complex_place(place),
            Kind::Fixed(value)
            | Kind::Member(value, _)
            | Kind::Splat(value)
            | Kind::Unary(_, value)
            | Kind::Convert(value)
            | Kind::Bitcast(value) => self.complex(value),
            Kind::Element(a, b) | Kind::Binary(_, a, b) | Kind::Logical(_, a, b) => self.complex(a) || self.complex(b),
            Kind::Compose(parts) | Kind::Math(_, parts) => parts.iter().any(|part| self.complex(part)),
            Kind::Struct(parts) => parts.iter().any(|(_, part)| self.complex(part)),
            Kind::Select(parts) => parts.iter().any(|part| self.complex(part)),
            Kind::Call(callee, arguments) => {
                arguments.iter().any(|argument| match argument {
                    tree::Argument::Value(node) => self.complex(node),
                    tree::Argument::Reference(_) => true,
                }) || self.callee(callee).is_none_or(|function| self.session.effects.get(&function) == Some(&true))
            }
            Kind::Block(block) => match &block.tail {
                Some(tail) if block.statements.is_empty() => self.complex(tail),
                _ => true,
            },
            Kind::DivideUp(..)
            | Kind::If(..)
            | Kind::Match(..)
            | Kind::For(_)
            | Kind::While(..)
            | Kind::Loop(_)
            | Kind::Break
            | Kind::Continue
            | Kind::Return(_)
            | Kind::Assign(..)
            | Kind::Barrier
            | Kind::UniformLoad(_)
            | Kind::Atomic(..)
            | Kind::Subgroup(..) => true,
        }
    }

    fn complex_place(&mut self, place: &tree::Place) -> bool {
        indices(place).into_iter().any(|index| self.complex(index))
    }

    /// Whether a value is the same wherever it is computed in the body.
    fn stable(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Load(place) => {
                matches!(place.root, tree::Root::Local(local) if !self.tree_locals[local].assigned && self.locals[local].is_some_and(|local| !self.function.locals[local].mutable))
                    && indices(place).into_iter().all(|index| self.stable(index))
            }
            Kind::Fixed(value)
            | Kind::Member(value, _)
            | Kind::Splat(value)
            | Kind::Unary(_, value)
            | Kind::Convert(value)
            | Kind::Bitcast(value) => self.stable(value),
            Kind::Element(a, b) | Kind::Binary(_, a, b) => self.stable(a) && self.stable(b),
            Kind::Literal(_)
            | Kind::Integer(_)
            | Kind::Float(..)
            | Kind::Constant(_)
            | Kind::Param(_)
            | Kind::Argument(_)
            | Kind::Builtin(_)
            | Kind::Length(_)
            | Kind::ViewExtent(..)
            | Kind::ViewStride(..) => true,
            _ => false,
        }
    }

    /// The values of operands, evaluated in this order.
    pub(super) fn ordered(&mut self, nodes: &[&Node]) -> Vec<Handle<Expression>> {
        let last = nodes.iter().rposition(|node| self.complex(node));
        let mut values = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let mut value = self.value(node);
            if last.is_some_and(|last| position < last) && !self.stable(node) {
                let already = matches!(self.function.expressions[value].kind, ExpressionKind::Local(_));
                if !already {
                    let local = self.spill(value, "value");
                    value = self.read(local, node.span);
                }
            }
            values.push(value);
        }
        values
    }

    // --- values --------------------------------------------------------------------------------------------------------------

    /// The value of an expression; statements that it needs are written.
    pub(super) fn value(&mut self, node: &Node) -> Handle<Expression> {
        let span = node.span;
        match &node.kind {
            Kind::Error | Kind::Unit => self.zero(&node.ty, span),
            Kind::Literal(literal) => {
                let ty = self.ir_type(&node.ty, span);
                self.add(ExpressionKind::Literal(*literal), ty, span)
            }
            Kind::Integer(number) => self.integer(*number, false, &node.ty, span),
            Kind::Float(single, double) => self.float(*single, *double, &node.ty, span),
            Kind::Constant(size) => {
                let scalar = match self.full(&node.ty, span) {
                    Ty::Scalar(scalar) => scalar,
                    _ => Scalar::Index,
                };
                self.size(size, scalar, span)
            }
            Kind::Fixed(value) => {
                let was = std::mem::replace(&mut self.folding, true);
                let handle = self.value(value);
                self.folding = was;
                self.function.expressions[handle].span = span;
                handle
            }
            Kind::Param(index) => self.leaf(ExpressionKind::Param(*index), node),
            Kind::Argument(index) => self.leaf(ExpressionKind::Argument(*index), node),
            Kind::Builtin(builtin) => self.leaf(ExpressionKind::Builtin(*builtin), node),
            Kind::Length(Origin::Binding(binding)) => self.leaf(ExpressionKind::Length(*binding), node),
            Kind::Length(Origin::Workgroup(variable)) => {
                let size = self.session.module.workgroup[*variable].length.clone();
                self.size(&size, Scalar::Index, span)
            }
            Kind::ViewExtent(binding, axis) => {
                self.leaf(ExpressionKind::ViewExtent { binding: *binding, axis: *axis }, node)
            }
            Kind::ViewStride(binding, axis) => {
                self.leaf(ExpressionKind::ViewStride { binding: *binding, axis: *axis }, node)
            }
            Kind::TargetHas(feature) => self.leaf(ExpressionKind::TargetHas(*feature), node),
            Kind::Load(place) => {
                let values = self.ordered(&indices(place));
                self.load(place, values, span)
            }
            Kind::Member(base, index) => {
                let base = self.value(base);
                self.leaf(ExpressionKind::Member { base, index: *index }, node)
            }
            Kind::Element(base, index) => match self.ordered(&[base, index])[..] {
                [base, index] => self.leaf(ExpressionKind::Element { base, index }, node),
                _ => self.zero(&node.ty, span),
            },
            Kind::Compose(parts) => {
                let parts = self.ordered(&parts.iter().collect::<Vec<_>>());
                self.leaf(ExpressionKind::Compose(parts), node)
            }
            Kind::Struct(parts) => {
                let values = self.ordered(&parts.iter().map(|(_, part)| part).collect::<Vec<_>>());
                let mut fields: Vec<_> = parts.iter().map(|(index, _)| *index).zip(values).collect();
                fields.sort_by_key(|(index, _)| *index);
                let parts = fields.into_iter().map(|(_, value)| value).collect();
                self.leaf(ExpressionKind::Compose(parts), node)
            }
            Kind::Splat(value) => {
                let value = self.value(value);
                self.leaf(ExpressionKind::Splat(value), node)
            }
            Kind::Unary(operator, value) => {
                if *operator == UnaryOperator::Negate {
                    match value.kind {
                        Kind::Integer(number) => return self.integer(number, true, &value.ty, span),
                        Kind::Float(single, double) => return self.float(-single, -double, &value.ty, span),
                        _ => {}
                    }
                }
                let value = self.value(value);
                let folded = self.folding.then(|| self.fold_unary(*operator, value)).flatten();
                match folded {
                    Some(literal) => self.literal(literal, span),
                    None => self.leaf(ExpressionKind::Unary { operator: *operator, value }, node),
                }
            }
            Kind::Binary(operator, left, right) => match self.ordered(&[left, right])[..] {
                [left, right] => {
                    let folded = self.folding.then(|| self.fold_binary(*operator, left, right)).flatten();
                    match folded {
                        Some(literal) => self.literal(literal, span),
                        None => self.leaf(ExpressionKind::Binary { operator: *operator, left, right }, node),
                    }
                }
                _ => self.zero(&node.ty, span),
            },
            Kind::Logical(operator, left, right) => self.logical(*operator, left, right, node),
            Kind::Math(function, arguments) => {
                let arguments = self.ordered(&arguments.iter().collect::<Vec<_>>());
                self.leaf(ExpressionKind::Math { function: *function, arguments }, node)
            }
            Kind::DivideUp(left, right) => self.divide_up(left, right, span),
            Kind::Select(parts) => match self.ordered(&parts.iter().collect::<Vec<_>>())[..] {
                [condition, accept, reject] => self.leaf(ExpressionKind::Select { condition, accept, reject }, node),
                _ => self.zero(&node.ty, span),
            },
            Kind::Convert(value) => {
                let inner = self.value(value);
                let target = self.ir_type(&node.ty, span);
                if self.function.expressions[inner].ty == target {
                    return inner;
                }
                let folded = self.fold_convert(inner, target);
                match folded {
                    Some(literal) => self.literal(literal, span),
                    None => self.add(ExpressionKind::Convert(inner), target, span),
                }
            }
            Kind::Bitcast(value) => {
                let value = self.value(value);
                let target = self.ir_type(&node.ty, span);
                if self.function.expressions[value].ty == target {
                    return value;
                }
                self.add(ExpressionKind::Bitcast(value), target, span)
            }
            Kind::Call(callee, arguments) => {
                let (call, stores, effects) = self.call(callee, arguments, node);
                if !effects {
                    return call;
                }
                let local = self.spill(call, "value");
                self.block.extend(stores);
                self.read(local, span)
            }
            Kind::Block(block) => {
                self.statements(block);
                match &block.tail {
                    Some(tail) => self.value(tail),
                    None => self.zero(&node.ty, span),
                }
            }
            Kind::If(..) | Kind::Match(..) => {
                if matches!(self.table.shallow(&node.ty), Ty::Never | Ty::Unit) {
                    self.effect(node);
                    return self.zero(&node.ty, span);
                }
                let ty = self.ir_type(&node.ty, span);
                let local = self.new_local("value", ty, true, span);
                self.push(StatementKind::Let { local, value: None }, span);
                self.into(node, local);
                self.read(local, span)
            }
            Kind::UniformLoad(_) | Kind::Atomic(..) | Kind::Subgroup(..) => {
                let ty = self.ir_type(&node.ty, span);
                let local = self.new_local("value", ty, false, span);
                self.collective(node, Some(local));
                self.read(local, span)
            }
            Kind::For(_)
            | Kind::While(..)
            | Kind::Loop(_)
            | Kind::Break
            | Kind::Continue
            | Kind::Return(_)
            | Kind::Assign(..)
            | Kind::Barrier => {
                self.effect(node);
                self.zero(&node.ty, span)
            }
        }
    }

    fn leaf(&mut self, kind: ExpressionKind, node: &Node) -> Handle<Expression> {
        let ty = self.ir_type(&node.ty, node.span);
        self.add(kind, ty, node.span)
    }

    /// A value that is never used: of code that is not reached, or wrong.
    fn zero(&mut self, ty: &Ty, span: Span) -> Handle<Expression> {
        let ty = match self.table.shallow(ty) {
            Ty::Unit | Ty::Never | Ty::Error => Ty::U32,
            ty => ty,
        };
        let ty = self.ir_type(&ty, span);
        self.zero_of(ty, span)
    }

    fn zero_of(&mut self, ty: Handle<ir::Type>, span: Span) -> Handle<Expression> {
        let kind = match self.session.module.types[ty].clone() {
            ir::Type::Scalar(scalar) => ExpressionKind::Literal(match scalar {
                Scalar::Bool => Literal::Bool(false),
                Scalar::I32 => Literal::I32(0),
                Scalar::U32 => Literal::U32(0),
                Scalar::Index => Literal::Index(0),
                Scalar::F16 => Literal::F16(0),
                Scalar::F32 => Literal::F32(0.0),
                Scalar::Generic(_) => Literal::Generic { scalar, value: 0.0 },
            }),
            ir::Type::Enum(_) => ExpressionKind::Literal(Literal::U32(0)),
            ir::Type::Vector { scalar, .. } => {
                let scalar = self.scalar_type(scalar);
                ExpressionKind::Splat(self.zero_of(scalar, span))
            }
            ir::Type::Array { element, .. } => ExpressionKind::Splat(self.zero_of(element, span)),
            ir::Type::Struct(handle) => {
                let fields = self.session.module.structs[handle].fields.clone();
                ExpressionKind::Compose(fields.into_iter().map(|(_, ty)| self.zero_of(ty, span)).collect())
            }
        };
        self.add(kind, ty, span)
    }

    fn integer(&mut self, number: u64, negative: bool, ty: &Ty, span: Span) -> Handle<Expression> {
        let literal = match self.full(ty, span) {
            Ty::Scalar(Scalar::U32) => u32::try_from(number).ok().filter(|_| !negative).map(Literal::U32),
            Ty::Scalar(Scalar::Index) => u32::try_from(number).ok().filter(|_| !negative).map(Literal::Index),
            Ty::Error => Some(Literal::U32(0)),
            _ => {
                let value = i64::try_from(number).ok().map(|value| if negative { -value } else { value });
                value.and_then(|value| i32::try_from(value).ok()).map(Literal::I32)
            }
        };
        match literal {
            Some(literal) => self.literal(literal, span),
            None => {
                self.session.error_at(
                    span,
                    "too large for i32, the type of this literal: write `u32` behind it if that is meant",
                );
                self.literal(Literal::I32(0), span)
            }
        }
    }

    fn float(&mut self, single: f32, double: f64, ty: &Ty, span: Span) -> Handle<Expression> {
        match self.full(ty, span) {
            Ty::Scalar(scalar @ Scalar::Generic(_)) => self.literal(Literal::Generic { scalar, value: double }, span),
            Ty::Scalar(Scalar::I32) => self.literal(Literal::I32(double as i32), span),
            Ty::Scalar(Scalar::U32) => self.literal(Literal::U32(double as u32), span),
            Ty::Scalar(Scalar::F16) => {
                let value = self.literal(Literal::F32(single), span);
                let ty = self.scalar_type(Scalar::F16);
                self.add(ExpressionKind::Convert(value), ty, span)
            }
            _ => self.literal(Literal::F32(single), span),
        }
    }

    fn size(&mut self, size: &Size, scalar: Scalar, span: Span) -> Handle<Expression> {
        match size {
            Size::Literal(value) => self.literal(
                match scalar {
                    Scalar::Bool => Literal::Bool(*value != 0),
                    Scalar::I32 => Literal::I32(value.cast_signed()),
                    Scalar::U32 => Literal::U32(*value),
                    _ => Literal::Index(*value),
                },
                span,
            ),
            Size::Generic(index) => {
                let ty = self.scalar_type(scalar);
                self.add(ExpressionKind::GenericConstant(*index), ty, span)
            }
            Size::Binary(operator, left, right) => {
                let left = self.size(left, scalar, span);
                let right = self.size(right, scalar, span);
                let operator = match operator {
                    SizeOperator::Add => BinaryOperator::Add,
                    SizeOperator::Subtract => BinaryOperator::Subtract,
                    SizeOperator::Multiply => BinaryOperator::Multiply,
                    SizeOperator::Divide => BinaryOperator::Divide,
                    SizeOperator::Remainder => BinaryOperator::Remainder,
                };
                self.binary(operator, left, right, span)
            }
        }
    }

    /// `a && b`: if the right side has effects, they must happen only if it decides.
    fn logical(&mut self, operator: ir::LogicalOperator, left: &Node, right: &Node, node: &Node) -> Handle<Expression> {
        let span = node.span;
        if !self.complex(right) {
            let left = self.value(left);
            let right = self.value(right);
            return self.leaf(ExpressionKind::Logical { operator, left, right }, node);
        }
        let value = self.value(left);
        let ty = self.scalar_type(Scalar::Bool);
        let local = self.new_local("value", ty, true, span);
        self.push(StatementKind::Let { local, value: Some(value) }, span);
        let mut condition = self.read(local, left.span);
        if operator == ir::LogicalOperator::Or {
            let kind = ExpressionKind::Unary { operator: UnaryOperator::Not, value: condition };
            condition = self.add(kind, ty, left.span);
        }
        let accept = self.nested(|this| this.into(right, local));
        self.push(StatementKind::If { condition, accept, reject: Vec::new(), constant: false }, span);
        self.read(local, span)
    }

    /// `a / b + (a % b != 0) as T`
    fn divide_up(&mut self, left: &Node, right: &Node, span: Span) -> Handle<Expression> {
        let [left, right] = self.ordered(&[left, right])[..] else {
            return self.zero(&Ty::U32, span);
        };
        let (left, left_again) = self.twice(left, "dividend");
        let (right, right_again) = self.twice(right, "divisor");
        let ty = self.function.expressions[left].ty;
        let quotient = self.binary(BinaryOperator::Divide, left, right, span);
        let rest = self.binary(BinaryOperator::Remainder, left_again, right_again, span);
        let zero = self.zero_of(ty, span);
        let more = self.binary(BinaryOperator::NotEqual, rest, zero, span);
        let more = self.add(ExpressionKind::Convert(more), ty, span);
        self.binary(BinaryOperator::Add, quotient, more, span)
    }

    // --- places --------------------------------------------------------------------------------------------------------------

    /// What a place holds, its indices being given.
    fn load(&mut self, place: &tree::Place, values: Vec<Handle<Expression>>, span: Span) -> Handle<Expression> {
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
    fn part(
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

    // --- statements ----------------------------------------------------------------------------------------------------------

    /// The statements of a block, without its value.
    pub(super) fn statements(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let { local, value, span } => self.let_statement(*local, value.as_ref(), *span),
                Statement::Evaluate(node) => self.effect(node),
            }
        }
    }

    fn let_statement(&mut self, local: usize, value: Option<&Node>, span: Span) {
        let assigned = self.tree_locals[local].assigned;
        let Some(value) = value else {
            let handle = self.declare(local, true);
            return self.push(StatementKind::Let { local: handle, value: None }, span);
        };
        match &value.kind {
            Kind::If(..) | Kind::Match(..) if !matches!(self.table.shallow(&value.ty), Ty::Never | Ty::Unit) => {
                let handle = self.declare(local, true);
                self.push(StatementKind::Let { local: handle, value: None }, span);
                self.into(value, handle);
            }
            Kind::UniformLoad(_) | Kind::Atomic(..) | Kind::Subgroup(..) if !assigned => {
                let handle = self.declare(local, false);
                self.collective(value, Some(handle));
            }
            Kind::Call(callee, arguments) => {
                let (call, stores, _) = self.call(callee, arguments, value);
                let handle = self.declare(local, assigned);
                self.push(StatementKind::Let { local: handle, value: Some(call) }, span);
                self.block.extend(stores);
            }
            _ => {
                let value = self.value(value);
                let handle = self.declare(local, assigned);
                self.push(StatementKind::Let { local: handle, value: Some(value) }, span);
            }
        }
    }

    /// Declares a local of the author's as a loop's counter.
    pub(super) fn counter(&mut self, local: usize) -> Handle<ir::Local> {
        self.declare(local, false)
    }
}

/// A variable as a whole.
pub(super) fn whole(root: ir::Root) -> ir::Place {
    ir::Place { root, path: Vec::new(), guarded: true }
}

/// The indices on the way of a place.
pub(super) fn indices(place: &tree::Place) -> Vec<&Node> {
    place
        .path
        .iter()
        .filter_map(|projection| match projection {
            Projection::Index(node) | Projection::Vector(node, _) => Some(node),
            Projection::Member(_) => None,
        })
        .collect()
}
