//! Constants computed while compiling, with Rust's meaning: the values of `#[device]` constants must not depend on a device's arithmetic.

use super::build::Build;
use crate::ir::{self, BinaryOperator, Expression, ExpressionKind, Handle, Literal, Scalar, UnaryOperator};

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
        Some(match (operator, self.known(value)?) {
            (UnaryOperator::Negate, Literal::F32(value)) => Literal::F32(-value),
            (UnaryOperator::Negate, Literal::I32(value)) => Literal::I32(value.wrapping_neg()),
            (UnaryOperator::Not, Literal::Bool(value)) => Literal::Bool(!value),
            (UnaryOperator::Not, Literal::I32(value)) => Literal::I32(!value),
            (UnaryOperator::Not, Literal::U32(value)) => Literal::U32(!value),
            _ => return None,
        })
    }

    pub(super) fn fold_binary(
        &self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Option<Literal> {
        use BinaryOperator as Op;
        match (self.known(left)?, self.known(right)?) {
            (Literal::F32(a), Literal::F32(b)) => Some(match operator {
                Op::Add => Literal::F32(a + b),
                Op::Subtract => Literal::F32(a - b),
                Op::Multiply => Literal::F32(a * b),
                Op::Divide => Literal::F32(a / b),
                Op::Remainder => Literal::F32(a % b),
                Op::Equal => Literal::Bool(a == b),
                Op::NotEqual => Literal::Bool(a != b),
                Op::Less => Literal::Bool(a < b),
                Op::LessEqual => Literal::Bool(a <= b),
                Op::Greater => Literal::Bool(a > b),
                Op::GreaterEqual => Literal::Bool(a >= b),
                _ => return None,
            }),
            (Literal::I32(a), Literal::I32(b)) => match operator {
                Op::Add => a.checked_add(b).map(Literal::I32),
                Op::Subtract => a.checked_sub(b).map(Literal::I32),
                Op::Multiply => a.checked_mul(b).map(Literal::I32),
                Op::Divide => a.checked_div(b).map(Literal::I32),
                Op::Remainder => a.checked_rem(b).map(Literal::I32),
                _ => {
                    bitwise(operator, a.cast_unsigned(), b.cast_unsigned()).map(|bits| Literal::I32(bits.cast_signed()))
                }
            },
            (Literal::U32(a), Literal::U32(b)) => unsigned(operator, a, b).map(Literal::U32),
            (Literal::Index(a), Literal::Index(b)) => unsigned(operator, a, b).map(Literal::Index),
            _ => None,
        }
    }

    /// `literal as T`
    pub(super) fn fold_convert(&self, value: Handle<Expression>, target: Handle<ir::Type>) -> Option<Literal> {
        let ir::Type::Scalar(target) = self.session.module.types[target] else {
            return None;
        };
        let number = match self.known(value)? {
            Literal::I32(value) => f64::from(value),
            Literal::U32(value) | Literal::Index(value) => f64::from(value),
            Literal::F32(value) => f64::from(value),
            Literal::Bool(_) | Literal::F16(_) | Literal::Generic { .. } => return None,
        };
        let bits = match self.known(value)? {
            Literal::I32(value) => value.cast_unsigned(),
            Literal::U32(value) | Literal::Index(value) => value,
            // From floats `as` saturates, also to the integer of the other sign.
            Literal::F32(value) if target == Scalar::I32 => (value as i32).cast_unsigned(),
            _ => number as u32,
        };
        Some(match target {
            Scalar::I32 => Literal::I32(bits.cast_signed()),
            Scalar::U32 => Literal::U32(bits),
            Scalar::Index => Literal::Index(bits),
            Scalar::F32 => Literal::F32(number as f32),
            Scalar::Bool | Scalar::F16 | Scalar::Generic(_) => return None,
        })
    }
}

fn unsigned(operator: BinaryOperator, a: u32, b: u32) -> Option<u32> {
    match operator {
        BinaryOperator::Add => a.checked_add(b),
        BinaryOperator::Subtract => a.checked_sub(b),
        BinaryOperator::Multiply => a.checked_mul(b),
        BinaryOperator::Divide => a.checked_div(b),
        BinaryOperator::Remainder => a.checked_rem(b),
        _ => bitwise(operator, a, b),
    }
}

fn bitwise(operator: BinaryOperator, a: u32, b: u32) -> Option<u32> {
    match operator {
        BinaryOperator::And => Some(a & b),
        BinaryOperator::Or => Some(a | b),
        BinaryOperator::Xor => Some(a ^ b),
        _ => None,
    }
}
