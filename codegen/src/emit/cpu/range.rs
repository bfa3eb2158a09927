//! How large index computations can get, so that addresses are computed without the wrapping of 32 bits where nothing wraps.
//!
//! Memory accesses become vectors only if the compiler sees that neighbours are neighbours, which a sum that may wrap hides.

use super::expr::{Kernel, Scope};
use crate::ir::{
    BinaryOperator, Builtin, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Scalar,
    StatementKind, Type,
};

const MOST: u64 = u32::MAX as u64;

/// The largest value of each local, where it is known to be smaller than its type allows.
pub(super) fn of_locals(kernel: &Kernel<'_>, function: &Function) -> Vec<Option<u64>> {
    let mut ranges = vec![None; function.locals.len()];
    crate::ir::statements(&function.body, &mut |statement| match &statement.kind {
        StatementKind::Let { local, value: Some(value) } if !function.locals[*local].mutable => {
            ranges[local.index()] = largest(kernel, function, &ranges, *value);
        }
        StatementKind::For { local, end, .. } => {
            ranges[local.index()] = largest(kernel, function, &ranges, *end).map(|end| end.saturating_sub(1));
        }
        _ => {}
    });
    ranges
}

/// The largest value of an unsigned expression, if it is known to be computed without wrapping.
fn largest(
    kernel: &Kernel<'_>,
    function: &Function,
    ranges: &[Option<u64>],
    expression: Handle<Expression>,
) -> Option<u64> {
    let unsigned = |handle: Handle<Expression>| {
        matches!(kernel.module.types[function.expressions[handle].ty], Type::Scalar(Scalar::U32 | Scalar::Index))
    };
    if !unsigned(expression) {
        return None;
    }
    let of = |handle| largest(kernel, function, ranges, handle);
    let size = kernel.lowered.info.workgroup_size;
    let fits = |value: u64| (value <= MOST).then_some(value);
    match &function.expressions[expression].kind {
        ExpressionKind::Literal(Literal::U32(value) | Literal::Index(value)) => Some(u64::from(*value)),
        ExpressionKind::Local(local) => ranges[local.index()],
        ExpressionKind::Builtin(Builtin::LocalIndex) => {
            Some(size.iter().map(|axis| u64::from(*axis)).product::<u64>().saturating_sub(1))
        }
        ExpressionKind::Builtin(Builtin::SubgroupLane) => Some(u64::from(crate::target::MOST_SUBGROUP) - 1),
        ExpressionKind::Member { base, index } => match function.expressions[*base].kind {
            ExpressionKind::Builtin(Builtin::LocalId) => Some(u64::from(*size.get(*index as usize)?).saturating_sub(1)),
            _ => None,
        },
        ExpressionKind::Convert(value) if unsigned(*value) => of(*value),
        ExpressionKind::Math { function: MathFunction::Min, arguments } => {
            arguments.iter().filter_map(|argument| of(*argument)).min()
        }
        ExpressionKind::Select { accept, reject, .. } => Some(of(*accept)?.max(of(*reject)?)),
        ExpressionKind::Binary { operator, left, right } => {
            let literal = match function.expressions[*right].kind {
                ExpressionKind::Literal(Literal::U32(value) | Literal::Index(value)) => Some(u64::from(value)),
                _ => None,
            };
            match operator {
                BinaryOperator::Add => fits(of(*left)? + of(*right)?),
                BinaryOperator::Multiply => fits(of(*left)?.checked_mul(of(*right)?)?),
                BinaryOperator::Divide => Some(of(*left).unwrap_or(MOST) / literal.filter(|by| *by > 0)?),
                BinaryOperator::Remainder => Some(of(*left).unwrap_or(MOST).min(literal.filter(|by| *by > 0)? - 1)),
                BinaryOperator::And => Some(of(*left).unwrap_or(MOST).min(of(*right).unwrap_or(MOST))),
                BinaryOperator::ShiftRight => Some(of(*left).unwrap_or(MOST) >> (literal? % 32)),
                BinaryOperator::ShiftLeft => fits(of(*left)? << (literal? % 32)),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Scope<'_> {
    /// The largest value of an index, if it is known.
    pub(super) fn largest(&self, index: Handle<Expression>) -> Option<u64> {
        largest(self.kernel, self.function, &self.ranges, index)
    }

    /// The index as a `usize`, computed in 64 bits, if nothing in it wraps in 32.
    pub(super) fn wide(&self, index: Handle<Expression>) -> Option<String> {
        self.largest(index)?;
        let (operation, left, right) = match &self.function.expressions[index].kind {
            ExpressionKind::Binary { operator: BinaryOperator::Add, left, right } => ("wrapping_add", left, right),
            ExpressionKind::Binary { operator: BinaryOperator::Multiply, left, right } => ("wrapping_mul", left, right),
            ExpressionKind::Literal(Literal::U32(value) | Literal::Index(value)) => {
                return Some(format!("{value}usize"));
            }
            _ => return Some(format!("({} as usize)", self.expression(index).ok()?.operand())),
        };
        Some(format!("{}.{operation}({})", self.wide(*left)?, self.wide(*right)?))
    }
}
