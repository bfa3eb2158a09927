//! Constants computed while compiling, with Rust's meaning: the values of `#[device]` constants must not depend on a device's arithmetic.

use std::ops::{Add, Div, Mul, Rem, Sub};

use super::build::Build;
use super::session::Session;
use crate::ir::{self, BinaryOperator, Expression, ExpressionKind, Handle, Literal, Scalar, UnaryOperator, constant};

impl Build<'_> {
    fn known(&self, value: Handle<Expression>) -> Option<Literal> {
        let expression = &self.function.expressions[value];
        match expression.kind {
            // The value of an enum is no number that can be computed with.
            ExpressionKind::Literal(literal)
                if matches!(self.session.module.types[expression.ty], ir::Type::Scalar(_)) =>
            {
                Some(literal)
            }
            _ => None,
        }
    }

    pub(super) fn fold_unary(&self, operator: UnaryOperator, value: Handle<Expression>) -> Option<Literal> {
        self.session.computed_unary(operator, self.known(value)?)
    }

    pub(super) fn fold_binary(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Option<Literal> {
        computed_binary(operator, self.known(left)?, self.known(right)?)
    }

    /// Whether a `usize` of Rust holds the result of an operation on constants, and one of 32 bits does not, which some instance has.
    pub(super) fn leaves_index(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> bool {
        let (Some(left @ Literal::Index(_)), Some(right)) = (self.known(left), self.known(right)) else { return false };
        let wide = |literal: Literal| match literal {
            Literal::Index(value) => Literal::U64(value.into()),
            amount => amount,
        };
        let result = computed_binary(operator, wide(left), wide(right)).and_then(Literal::as_integer);
        !self.session.has_only_wide_indices() && result.is_some_and(|result| result > i128::from(u32::MAX))
    }

    /// `literal as T`
    pub(super) fn fold_convert(&self, value: Handle<Expression>, target: Handle<ir::Type>) -> Option<Literal> {
        let ir::Type::Scalar(target) = self.session.module.types[target] else {
            return None;
        };
        match self.known(value)? {
            Literal::Bool(_) | Literal::F16(_) | Literal::BF16(_) => None,
            known => self.session.computed_conversion(known, target),
        }
    }
}

impl Session {
    /// The result of an operation on a constant.
    pub(super) fn computed_unary(&self, operator: UnaryOperator, value: Literal) -> Option<Literal> {
        // Which bits there are differs with the width of indices.
        if value.scalar() == Scalar::Index && self.has_wide_indices() {
            return None;
        }
        match (operator, value.as_float()) {
            (UnaryOperator::Negate, Some(float)) => Literal::float(value.scalar(), -float),
            _ => constant::unary(operator, value),
        }
    }

    /// `literal as T`
    pub(super) fn computed_conversion(&self, value: Literal, target: Scalar) -> Option<Literal> {
        if target == Scalar::Index && self.has_wide_indices() {
            // The same in 32 bits and in 64, or left to the instance.
            let wide = match value.as_float() {
                Some(number) => constant::convert_float(number, Scalar::U64),
                None => constant::convert(value, Scalar::U64),
            };
            return Literal::exact_integer(Scalar::Index, wide?.as_integer()?);
        }
        match value.as_float() {
            // A half is rounded where it is stored.
            Some(_) if matches!(target, Scalar::F16 | Scalar::BF16) => None,
            Some(number) => Literal::float(target, number).or_else(|| constant::convert_float(number, target)),
            None => constant::convert(value, target),
        }
    }
}

/// The result of an operation on two constants; none where it overflows, which is left to be said by rustc.
pub(super) fn computed_binary(operator: BinaryOperator, left: Literal, right: Literal) -> Option<Literal> {
    use BinaryOperator as Op;
    let shifts = matches!(operator, Op::ShiftLeft | Op::ShiftRight);
    let (a, b) = match (left, right) {
        (Literal::F32(a), Literal::F32(b)) => {
            return arithmetic(operator, a, b).map(Literal::F32).or_else(|| compare(operator, a, b));
        }
        (Literal::F64(a), Literal::F64(b)) => {
            return arithmetic(operator, a, b).map(Literal::F64).or_else(|| compare(operator, a, b));
        }
        (Literal::Bool(_), Literal::Bool(_)) => return constant::binary(operator, left, right),
        _ => (left.as_integer()?, right.as_integer()?),
    };
    let is_index = left.scalar() == Scalar::Index;
    // An index of an instance may have 64 bits, and is known here if 32 hold it.
    let bits = if is_index { 64 } else { left.scalar().bits() };
    let fits = if shifts { (0..i128::from(bits)).contains(&b) } else { left.scalar() == right.scalar() };
    if !fits {
        return None;
    }
    let exact = match operator {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a.checked_mul(b)?,
        Op::Divide => a.checked_div(b)?,
        Op::Remainder => a.checked_rem(b)?,
        Op::ShiftLeft if is_index => a << b,
        Op::ShiftRight if is_index => a >> b,
        _ => return constant::binary(operator, left, right),
    };
    Literal::exact_integer(left.scalar(), exact)
}

/// The result of an operation of floats that gives one.
fn arithmetic<F>(operator: BinaryOperator, a: F, b: F) -> Option<F>
where
    F: Add<Output = F> + Sub<Output = F> + Mul<Output = F> + Div<Output = F> + Rem<Output = F>,
{
    Some(match operator {
        BinaryOperator::Add => a + b,
        BinaryOperator::Subtract => a - b,
        BinaryOperator::Multiply => a * b,
        BinaryOperator::Divide => a / b,
        BinaryOperator::Remainder => a % b,
        _ => return None,
    })
}

/// The result of a comparison.
fn compare<F: PartialOrd>(operator: BinaryOperator, a: F, b: F) -> Option<Literal> {
    Some(Literal::Bool(match operator {
        BinaryOperator::Equal => a == b,
        BinaryOperator::NotEqual => a != b,
        BinaryOperator::Less => a < b,
        BinaryOperator::LessEqual => a <= b,
        BinaryOperator::Greater => a > b,
        BinaryOperator::GreaterEqual => a >= b,
        _ => return None,
    }))
}
