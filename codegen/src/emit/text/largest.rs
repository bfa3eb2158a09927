//! What numbers without a sign are at most, so that a loop whose counter cannot pass the end of its type is printed as one.

use crate::artefact::MOST_ELEMENTS;
use crate::ir::{
    BinaryOperator, Builtin, Expression, ExpressionKind, Function, Handle, MathFunction, StatementKind, Type,
    statements,
};
use crate::lower::Lowered;

/// The largest value of an expression without a sign, where it is known to be less than its type allows. What is read from memory, given by the host as a
/// number, or computed with a wrap may be any number; lengths and extents a launch keeps within [`MOST_ELEMENTS`].
pub fn largest(lowered: &Lowered, function: &Function, of: Handle<Expression>) -> Option<u64> {
    let mut known = Known { lowered, function, locals: vec![None; function.locals.len()] };
    // Each local is declared before it is used.
    statements(&function.body, &mut |statement| match &statement.kind {
        StatementKind::Let { local, value: Some(value) } if !function.locals[*local].mutable => {
            known.locals[local.index()] = known.of(*value);
        }
        StatementKind::For { local, end, .. } => {
            known.locals[local.index()] = known.of(*end).map(|end| end.saturating_sub(1));
        }
        _ => {}
    });
    known.of(of)
}

struct Known<'a> {
    lowered: &'a Lowered,
    function: &'a Function,
    locals: Vec<Option<u64>>,
}

impl Known<'_> {
    /// The largest number of an expression's type, if that has no sign.
    fn most(&self, of: Handle<Expression>) -> Option<u64> {
        match self.lowered.module.types[self.function.expressions[of].ty] {
            Type::Scalar(scalar) if scalar.is_integer() && !scalar.is_signed() => {
                u64::try_from(scalar.limits()[1]).ok()
            }
            _ => None,
        }
    }

    fn literal(&self, of: Handle<Expression>) -> Option<u64> {
        match self.function.expressions[of].kind {
            ExpressionKind::Literal(literal) => literal.as_integer().and_then(|number| u64::try_from(number).ok()),
            _ => None,
        }
    }

    fn of(&self, of: Handle<Expression>) -> Option<u64> {
        let most = self.most(of)?;
        let info = &self.lowered.info;
        match &self.function.expressions[of].kind {
            ExpressionKind::Literal(_) => self.literal(of),
            ExpressionKind::Local(local) => self.locals[local.index()],
            // No memory has 2^63 bytes; along an axis of a view the same element may come again and again.
            ExpressionKind::Length(_) if self.lowered.module.index.is_wide() => Some(i64::MAX.cast_unsigned()),
            ExpressionKind::ViewExtent { .. } if self.lowered.module.index.is_wide() => None,
            ExpressionKind::Length(_) | ExpressionKind::ViewExtent { .. } => Some(MOST_ELEMENTS.into()),
            ExpressionKind::Param(param) => {
                let range = self.lowered.module.params.get(*param as usize)?.specialise?;
                u64::try_from(range.high).ok()
            }
            ExpressionKind::Builtin(Builtin::LocalIndex) => {
                Some(info.workgroup_size.iter().map(|axis| u64::from(*axis)).product::<u64>().saturating_sub(1))
            }
            ExpressionKind::Builtin(Builtin::SubgroupLane | Builtin::SubgroupSize) => {
                Some(crate::target::MOST_SUBGROUP.into())
            }
            ExpressionKind::Convert(value) => {
                let value = self.of(*value).or_else(|| self.most(*value))?;
                (value <= most).then_some(value)
            }
            ExpressionKind::Math { function: MathFunction::Min, arguments } => {
                arguments.iter().filter_map(|argument| self.of(*argument)).min()
            }
            ExpressionKind::Math { function: MathFunction::Max, arguments } => {
                arguments.iter().map(|argument| self.of(*argument)).try_fold(0, |most, next| Some(next?.max(most)))
            }
            ExpressionKind::Select { accept, reject, .. } => Some(self.of(*accept)?.max(self.of(*reject)?)),
            ExpressionKind::Binary { operator, left, right } => {
                let fits = |number: Option<u64>| number.filter(|number| *number <= most);
                let (a, b) = (self.of(*left), self.of(*right));
                let whole = a.unwrap_or(most);
                let bits = self.literal(*right).and_then(|amount| u32::try_from(amount).ok());
                let bits = bits.filter(|amount| *amount < most.count_ones());
                match operator {
                    BinaryOperator::Add => fits(a?.checked_add(b?)),
                    BinaryOperator::Multiply => fits(a?.checked_mul(b?)),
                    BinaryOperator::Divide => match self.literal(*right) {
                        Some(by) if by > 0 => Some(whole / by),
                        _ => a,
                    },
                    BinaryOperator::Remainder => match b {
                        Some(by) => Some(whole.min(by.saturating_sub(1))),
                        None => a,
                    },
                    BinaryOperator::And => Some(whole.min(b.unwrap_or(most))),
                    BinaryOperator::ShiftRight => Some(whole >> bits?),
                    BinaryOperator::ShiftLeft => fits(a?.checked_mul(1u64.checked_shl(bits?)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
