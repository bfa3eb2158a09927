//! Selects, and which of them need no mask: one by a comparison chooses where it compares, and what keeps NaNs by hand, since no target does so alike,
//! is one instruction for each lane.

use super::arithmetic::comparison;
use super::{Builder, Frame, Result, Value};
use crate::interp::program::{Comparison, Instruction, Register, Two};
use crate::ir::{BinaryOperator, Expression, ExpressionKind, Function, Handle, MathFunction, Scalar};

type Expr = Handle<Expression>;

/// `select(condition, accept, reject)`
#[derive(Clone, Copy)]
struct Choice {
    condition: Expr,
    accept: Expr,
    reject: Expr,
}

impl Choice {
    fn of(function: &Function, value: Expr) -> Option<Self> {
        match function.expressions[value].kind {
            ExpressionKind::Select { condition, accept, reject } => Some(Self { condition, accept, reject }),
            _ => None,
        }
    }

    /// What is chosen where `select(is_nan(x), x, reject)` does not find a NaN.
    fn but_for_nan(self, function: &Function) -> Option<Expr> {
        match &function.expressions[self.condition].kind {
            ExpressionKind::Math { function: MathFunction::IsNan, arguments }
                if same(function, arguments[0], self.accept) =>
            {
                Some(self.reject)
            }
            _ => None,
        }
    }

    /// The comparison that chooses.
    fn comparison(self, function: &Function) -> Option<(BinaryOperator, [Expr; 2])> {
        match function.expressions[self.condition].kind {
            ExpressionKind::Binary { operator, left, right } => Some((operator, [left, right])),
            _ => None,
        }
    }
}

/// Whether two expressions are one value.
fn same(function: &Function, a: Expr, b: Expr) -> bool {
    let (left, right) = (&function.expressions[a].kind, &function.expressions[b].kind);
    a == b
        || match (left, right) {
            (ExpressionKind::Local(a), ExpressionKind::Local(b)) => a == b,
            (ExpressionKind::Argument(a), ExpressionKind::Argument(b)) => a == b,
            _ => false,
        }
}

/// Whether a value is x wherever x is a NaN, since no comparison with a NaN holds.
fn keeps_nan(function: &Function, value: Expr, x: Expr) -> bool {
    same(function, value, x)
        || Choice::of(function, value).is_some_and(|choice| {
            let is_of_x = |(operator, sides): (BinaryOperator, [Expr; 2])| {
                operator != BinaryOperator::NotEqual && sides.iter().any(|side| same(function, *side, x))
            };
            choice.comparison(function).is_some_and(is_of_x) && keeps_nan(function, choice.reject, x)
        })
}

impl<'a> Builder<'a> {
    /// Builds a select.
    pub(super) fn select(
        &mut self,
        frame: &mut Frame<'_>,
        value: Expr,
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let function = frame.function;
        let Some(choice) = Choice::of(function, value) else { return Err(self.error("a select that is none")) };
        if let Some(rest) = choice.but_for_nan(function) {
            if keeps_nan(function, rest, choice.accept) {
                return self.expression(frame, rest, want, out);
            }
            if let Some((operation, sides)) = self.extreme_or_nan(function, choice.accept, rest)? {
                return self.two_of(frame, operation, sides, want, out);
            }
        }
        let by = choice.comparison(function);
        let comparison = match by {
            Some((operator, [left, _])) => comparison(operator, self.scalar_of(function, left)?),
            None => None,
        };
        let words = self.words(function.expressions[value].ty)?;
        if let (Some((_, sides)), Some((comparison, swapped))) = (by, comparison)
            && !self.scalar_of(function, sides[0])?.is_wide()
        {
            let mut operands = Vec::new();
            for operand in [sides[usize::from(swapped)], sides[usize::from(!swapped)], choice.accept, choice.reject] {
                operands.push(self.expression(frame, operand, None, out)?.registers);
            }
            let to = self.target(want, words);
            for (i, to) in to.iter().enumerate() {
                // As many words for each comparison.
                let at = |list: &[Register]| list[i * list.len() / words as usize];
                let [a, b, accept, reject] = [0, 1, 2, 3].map(|operand: usize| at(&operands[operand]));
                out.push(Instruction::Choose { to: *to, comparison, a, b, accept, reject });
            }
            return Ok(Value { registers: to, stable: true });
        }
        let condition = self.expression(frame, choice.condition, None, out)?.registers;
        let accept = self.expression(frame, choice.accept, None, out)?.registers;
        let reject = self.expression(frame, choice.reject, None, out)?.registers;
        let to = self.target(want, words);
        for (i, to) in to.iter().enumerate() {
            // As many words for each condition.
            let condition = condition[i * condition.len() / accept.len().max(1)];
            out.push(Instruction::Select { to: *to, condition, accept: accept[i], reject: reject[i] });
        }
        Ok(Value { registers: to, stable: true })
    }

    /// `rest` as the smaller or larger of `x` and another number, with the NaN if one is: `select(is_nan(y), y, min(x, y))`.
    fn extreme_or_nan(&self, function: &Function, x: Expr, rest: Expr) -> Result<Option<(Two, [Expr; 2])>> {
        let Some(choice) = Choice::of(function, rest) else { return Ok(None) };
        let Some(extreme) = choice.but_for_nan(function) else { return Ok(None) };
        let ExpressionKind::Math { function: which, arguments } = &function.expressions[extreme].kind else {
            return Ok(None);
        };
        let operation = match which {
            MathFunction::Min => Two::MinFloatOrNan,
            MathFunction::Max => Two::MaxFloatOrNan,
            _ => return Ok(None),
        };
        let (a, b, y) = (arguments[0], arguments[1], choice.accept);
        let is_of_both = same(function, a, x) && same(function, b, y) || same(function, a, y) && same(function, b, x);
        Ok((is_of_both && self.scalar_of(function, x)? == Scalar::F32).then_some((operation, [x, y])))
    }

    /// An operation on the lanes of two values.
    fn two_of(
        &mut self,
        frame: &mut Frame<'_>,
        operation: Two,
        [left, right]: [Expr; 2],
        want: Option<&[Register]>,
        out: &mut Vec<Instruction>,
    ) -> Result<Value> {
        let left = self.expression(frame, left, None, out)?.registers;
        let right = self.expression(frame, right, None, out)?.registers;
        let to = self.target(want, left.len() as u32);
        for ((to, a), b) in to.iter().zip(left).zip(right) {
            out.push(Instruction::Two { operation, to: *to, a, b });
        }
        Ok(Value { registers: to, stable: true })
    }

    /// `low` below it, else `high` above it, else x, which a NaN is.
    pub(super) fn clamp_float(&mut self, to: Register, [x, low, high]: [Register; 3], out: &mut Vec<Instruction>) {
        let above = self.one();
        let comparison = Comparison::LessFloat;
        out.push(Instruction::Choose { to: above, comparison, a: x, b: low, accept: low, reject: x });
        out.push(Instruction::Choose { to, comparison, a: high, b: above, accept: high, reject: above });
    }
}
