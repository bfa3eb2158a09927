//! The building of values.

use super::build::{Build, indices};
use super::depth;
use super::infer::Ty;
use super::tree::{Kind, Node, Origin};
use crate::ir::{
    self, BinaryOperator, Expression, ExpressionKind, Handle, Literal, Scalar, Size, Span, StatementKind,
    UnaryOperator, constant,
};

impl Build<'_> {
    /// The value of an expression; statements that it needs are written.
    pub(super) fn value(&mut self, node: &Node) -> Handle<Expression> {
        if self.session.built >= depth::MOST_BUILT {
            self.session.error_at(node.span, depth::too_deep());
            return self.zero(&node.ty, node.span);
        }
        self.session.built += 1;
        let value = self.value_within(node);
        self.session.built -= 1;
        value
    }

    fn value_within(&mut self, node: &Node) -> Handle<Expression> {
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
            Kind::MatrixLength(ty) => {
                let ty = self.ir_type(ty, span);
                self.leaf(ExpressionKind::MatrixLength(ty), node)
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
                    if self.leaves_index(*operator, left, right) {
                        self.session.error_at(span, no_such_integer(Scalar::Index, false));
                    }
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
            Kind::UniformLoad(_) | Kind::Atomic(..) | Kind::Subgroup(..) | Kind::Matrix(_) => {
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
            | Kind::Set(..)
            | Kind::Barrier
            | Kind::Fence(_)
            | Kind::Asynchronous(_)
            | Kind::Tile(_)
            | Kind::Report(_) => {
                self.effect(node);
                self.zero(&node.ty, span)
            }
        }
    }

    pub(super) fn leaf(&mut self, kind: ExpressionKind, node: &Node) -> Handle<Expression> {
        let ty = self.ir_type(&node.ty, node.span);
        self.add(kind, ty, node.span)
    }

    /// A value that is never used: of code that is not reached, or wrong.
    pub(super) fn zero(&mut self, ty: &Ty, span: Span) -> Handle<Expression> {
        let ty = match self.table.shallow(ty) {
            Ty::Unit | Ty::Never | Ty::Error => Ty::U32,
            ty => ty,
        };
        let ty = self.ir_type(&ty, span);
        self.zero_of(ty, span)
    }

    pub(super) fn zero_of(&mut self, ty: Handle<ir::Type>, span: Span) -> Handle<Expression> {
        let kind = match self.session.module.types[ty].clone() {
            ir::Type::Scalar(scalar) => ExpressionKind::Literal(Literal::zero(scalar).unwrap_or(Literal::U32(0))),
            ir::Type::Enum(_) => ExpressionKind::Literal(Literal::U32(0)),
            ir::Type::Vector { scalar, .. } => {
                let scalar = self.scalar_type(scalar);
                ExpressionKind::Splat(self.zero_of(scalar, span))
            }
            ir::Type::Array { element, .. } => ExpressionKind::Splat(self.zero_of(element, span)),
            ir::Type::Matrix(matrix) => {
                let scalar = self.scalar_type(matrix.scalar);
                ExpressionKind::Splat(self.zero_of(scalar, span))
            }
            ir::Type::Struct(handle) => {
                let fields = self.session.module.structs[handle].fields.clone();
                ExpressionKind::Compose(fields.into_iter().map(|(_, ty)| self.zero_of(ty, span)).collect())
            }
        };
        self.add(kind, ty, span)
    }

    pub(super) fn integer(&mut self, number: u64, negative: bool, ty: &Ty, span: Span) -> Handle<Expression> {
        let scalar = match self.full(ty, span) {
            Ty::Error => return self.literal(Literal::U32(0), span),
            Ty::Scalar(scalar) if scalar.is_integer() => scalar,
            _ => Scalar::I32,
        };
        let value = if negative { -i128::from(number) } else { i128::from(number) };
        match Literal::exact_integer(scalar, value) {
            Some(literal) => self.literal(literal, span),
            None if scalar == Scalar::Index && !negative && self.session.has_only_wide_indices() => {
                self.wide_index(number, span)
            }
            None => {
                self.session.error_at(span, no_such_integer(scalar, negative));
                self.literal(Literal::I32(0), span)
            }
        }
    }

    /// An index that 32 bits do not hold; instances have no others then.
    pub(super) fn wide_index(&mut self, number: u64, span: Span) -> Handle<Expression> {
        let value = self.literal(Literal::U64(number), span);
        let ty = self.scalar_type(Scalar::Index);
        self.add(ExpressionKind::Convert(value), ty, span)
    }

    pub(super) fn float(&mut self, single: f32, double: f64, ty: &Ty, span: Span) -> Handle<Expression> {
        match self.full(ty, span) {
            Ty::Scalar(scalar @ Scalar::Generic(_)) => self.literal(Literal::Generic { scalar, value: double }, span),
            // Rounded once, as on the host and in an instance of a generic kernel.
            Ty::Scalar(half @ (Scalar::F16 | Scalar::BF16)) => {
                let literal = Literal::float(half, double).unwrap_or(Literal::F32(single));
                self.literal(literal, span)
            }
            Ty::Scalar(Scalar::F64) => self.literal(Literal::F64(double), span),
            // `T::lit(2.0)` of an integer saturates.
            Ty::Scalar(scalar) if scalar.is_integer() => {
                let literal = constant::convert_float(double, scalar).unwrap_or(Literal::I32(0));
                self.literal(literal, span)
            }
            _ if single.is_infinite() && double.is_finite() => {
                self.session.error_at(span, "too large for f32");
                self.literal(Literal::F32(0.0), span)
            }
            _ => self.literal(Literal::F32(single), span),
        }
    }

    pub(super) fn size(&mut self, size: &Size, scalar: Scalar, span: Span) -> Handle<Expression> {
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
            Size::Param(index) => {
                let ty = match self.session.module.params.get(*index as usize) {
                    Some(param) => param.ty,
                    None => self.scalar_type(scalar),
                };
                let value = self.add(ExpressionKind::Param(*index), ty, span);
                let wanted = self.scalar_type(scalar);
                if ty == wanted { value } else { self.add(ExpressionKind::Convert(value), wanted, span) }
            }
            Size::Generic(index) => {
                let ty = self.scalar_type(scalar);
                self.add(ExpressionKind::GenericConstant(*index), ty, span)
            }
            Size::Binary(operator, left, right) => {
                let left = self.size(left, scalar, span);
                let right = self.size(right, scalar, span);
                self.binary(operator.binary(), left, right, span)
            }
        }
    }

    /// `a && b`: if the right side has effects, they must happen only if it decides.
    pub(super) fn logical(
        &mut self,
        operator: ir::LogicalOperator,
        left: &Node,
        right: &Node,
        node: &Node,
    ) -> Handle<Expression> {
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
    pub(super) fn divide_up(&mut self, left: &Node, right: &Node, span: Span) -> Handle<Expression> {
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
}

/// What is said of an integer literal that is no number of its type.
pub(super) fn no_such_integer(scalar: Scalar, negative: bool) -> String {
    let name = scalar.rust_name();
    if negative && !scalar.is_signed() {
        let signed = if scalar.bits() == 64 { "i64" } else { "i32" };
        return format!(
            "`{name}`, the type of this literal, has no sign: write `{signed}` behind it, and convert with `as {name}` where that is wanted"
        );
    }
    let wrong = if negative { "small" } else { "large" };
    let instead = match scalar {
        Scalar::Index => ", which is 32 bits wide in instances of kernels that are not `index = 64`",
        Scalar::I32 if negative => ", the type of this literal: write `i64` behind it if that is meant",
        Scalar::I32 => ", the type of this literal: write `u32` behind it if that is meant",
        _ => ", the type of this literal",
    };
    format!("too {wrong} for {name}{instead}")
}
