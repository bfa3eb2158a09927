//! From a body whose types are known to IR: operands in Rust's order, effects as statements.
//!
//! Invariants kept here: expressions are trees; what has an effect is a statement before the expression that wants its value, and
//! operands evaluated before it become locals first; what is wanted twice is an immutable local.

use super::infer::{Table, Ty};
use super::session::Session;
use super::tree::{self, Block, Kind, Node, Projection, Statement};
use crate::ir::{
    self, BinaryOperator, Expression, ExpressionKind, Function, Handle, Literal, Scalar, Span, StatementKind,
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
    pub(super) fn declare(&mut self, local: usize, mutable: bool) -> Handle<ir::Local> {
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
        let leaf = matches!(
            &expression.kind,
            ExpressionKind::Literal(_)
                | ExpressionKind::GenericConstant(_)
                | ExpressionKind::Param(_)
                | ExpressionKind::Length(_)
                | ExpressionKind::ViewExtent { .. }
                | ExpressionKind::ViewStride { .. }
                | ExpressionKind::Builtin(_)
                | ExpressionKind::Argument(_)
                | ExpressionKind::Local(_)
        );
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
            | Kind::MatrixLength(_)
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
            | Kind::Set(..)
            | Kind::Barrier
            | Kind::Fence(_)
            | Kind::Asynchronous(_)
            | Kind::UniformLoad(_)
            | Kind::Atomic(..)
            | Kind::Subgroup(..)
            | Kind::Matrix(_)
            | Kind::Tile(_)
            | Kind::Report(_) => true,
        }
    }

    pub(super) fn complex_place(&mut self, place: &tree::Place) -> bool {
        indices(place).into_iter().any(|index| self.complex(index))
    }

    /// Whether a value is the same wherever it is computed in the body.
    pub(super) fn stable(&self, node: &Node) -> bool {
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
            Kind::UniformLoad(_) | Kind::Atomic(..) | Kind::Subgroup(..) | Kind::Matrix(_) if !assigned => {
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
