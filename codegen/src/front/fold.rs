//! Constants computed while compiling, with Rust's meaning: the values of `#[device]` constants must not depend on a device's arithmetic.

use super::build::Build;
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
        let value = self.known(value)?;
        // Which bits there are differs with the width of indices.
        if value.scalar() == Scalar::Index && self.session.has_wide_indices() {
            return None;
        }
        match (operator, value.as_float()) {
            (UnaryOperator::Negate, Some(float)) => Literal::float(value.scalar(), -float),
            _ => constant::unary(operator, value),
        }
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
                _ => return compare(operator, f64::from(a), f64::from(b)),
            }),
            (Literal::F64(a), Literal::F64(b)) => Some(match operator {
                Op::Add => Literal::F64(a + b),
                Op::Subtract => Literal::F64(a - b),
                Op::Multiply => Literal::F64(a * b),
                Op::Divide => Literal::F64(a / b),
                Op::Remainder => Literal::F64(a % b),
                _ => return compare(operator, a, b),
            }),
            (left, right) => {
                let (a, b) = (left.as_integer()?, right.as_integer()?);
                // What overflows is left to be said by rustc.
                let exact = match operator {
                    Op::Add => a + b,
                    Op::Subtract => a - b,
                    Op::Multiply => a.checked_mul(b)?,
                    Op::Divide => a.checked_div(b)?,
                    Op::Remainder => a.checked_rem(b)?,
                    Op::And => a & b,
                    Op::Or => a | b,
                    Op::Xor => a ^ b,
                    _ => return None,
                };
                Literal::exact_integer(left.scalar(), exact).filter(|_| left.scalar() == right.scalar())
            }
        }
    }

    /// `literal as T`
    pub(super) fn fold_convert(&self, value: Handle<Expression>, target: Handle<ir::Type>) -> Option<Literal> {
        let ir::Type::Scalar(target) = self.session.module.types[target] else {
            return None;
        };
        let known = self.known(value)?;
        if let Literal::Bool(_) | Literal::F16(_) | Literal::BF16(_) = known {
            return None;
        }
        if target == Scalar::Index && self.session.has_wide_indices() {
            // The same in 32 bits and in 64, or left to the instance.
            let wide = match known.as_float() {
                Some(number) => constant::convert_float(number, Scalar::U64),
                None => constant::convert(known, Scalar::U64),
            };
            return Literal::exact_integer(Scalar::Index, wide?.as_integer()?);
        }
        match known.as_float() {
            // A half is rounded where it is stored.
            Some(_) if matches!(target, Scalar::F16 | Scalar::BF16) => None,
            Some(number) => Literal::float(target, number).or_else(|| constant::convert_float(number, target)),
            None => constant::convert(known, target),
        }
    }
}

/// The result of a comparison.
fn compare(operator: BinaryOperator, a: f64, b: f64) -> Option<Literal> {
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
