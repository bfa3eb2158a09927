//! The building of `match`: a switch, or a chain of comparisons where ranges are wide; and that no value is left out.

use super::build::Build;
use super::infer::Ty;
use super::tree::{Arm, Node, Pattern};
use crate::ir::{
    self, BinaryOperator, Case, Expression, ExpressionKind, Handle, Literal, LogicalOperator, Scalar, Span,
    StatementKind,
};

/// The widest range that becomes single cases.
const WIDEST: i64 = 64;

impl Build<'_> {
    /// Runs the arm that fits; its value goes to `target`.
    pub(super) fn match_arms(&mut self, selector: &Node, arms: &[Arm], target: Option<Handle<ir::Local>>, span: Span) {
        let ty = self.full(&selector.ty, selector.span);
        let Some((low, high)) = self.domain(&ty) else {
            return;
        };
        // What each arm takes of the values that the arms before it leave.
        let mut left = vec![(low, high)];
        if let Ty::Enum(handle) = &ty {
            left = self.session.module.enums[*handle]
                .variants
                .iter()
                .map(|(_, value)| (i64::from(*value), i64::from(*value)))
                .collect();
        }
        let mut taken: Vec<Vec<(i64, i64)>> = Vec::new();
        for arm in arms {
            let wanted = match &arm.pattern {
                Pattern::Any(_) => vec![(low, high)],
                Pattern::Values(values) => values
                    .iter()
                    .map(|(from, to)| (from.unwrap_or(low).max(low), to.unwrap_or(high).min(high)))
                    .collect(),
                Pattern::Error => return,
            };
            taken.push(intersect(&left, &wanted));
            left = subtract(&left, &wanted);
        }
        if let Some((first, last)) = left.first() {
            let missing = match &ty {
                Ty::Enum(handle) => {
                    let item = &self.session.module.enums[*handle];
                    let names: Vec<String> = item
                        .variants
                        .iter()
                        .filter(|(_, value)| left.iter().any(|(a, b)| (*a..=*b).contains(&i64::from(*value))))
                        .map(|(name, _)| format!("`{}::{name}`", item.name))
                        .collect();
                    names.join(", ")
                }
                Ty::Scalar(Scalar::Bool) => if *first == 0 { "`false`" } else { "`true`" }.to_owned(),
                _ if first == last => format!("`{first}`"),
                _ => format!("`{first}..={last}`"),
            };
            let message = format!("this `match` has no arm for {missing}: write one, or `_ => ..` for the rest");
            return self.session.error_at(selector.span, message);
        }
        let value = self.value(selector);
        // An arm that takes nothing is never run.
        let live: Vec<usize> = (0..arms.len()).filter(|arm| !taken[*arm].is_empty()).collect();
        let names = arms.iter().any(|arm| matches!(arm.pattern, Pattern::Any(Some(_))));
        if let [only] = live[..] {
            return self.arm(&arms[only], Some(value), target);
        }
        let is_wide = |arm: &usize| {
            let count = |(from, to): &(i64, i64)| to.saturating_sub(*from).saturating_add(1);
            let values = taken[*arm].iter().map(count).fold(0, i64::saturating_add);
            // Cases are numbers of 32 bits.
            values > WIDEST || taken[*arm].iter().any(|(_, to)| *to > i64::from(u32::MAX))
        };
        // Variants of an enum are cases one by one, however many an arm takes.
        let wide = !matches!(ty, Ty::Enum(_)) && live.iter().rev().skip(1).any(is_wide);
        let (value, again) = if names || wide || ty == Ty::BOOL {
            let local = self.spill(value, "selector");
            (self.read(local, selector.span), Some(local))
        } else {
            (value, None)
        };
        if ty == Ty::BOOL || wide {
            return self.chain(arms, &live, &taken, again, target, &ty, span);
        }
        let mut cases = Vec::new();
        let mut default = Vec::new();
        for (position, arm) in live.iter().enumerate() {
            let body = self.nested(|this| {
                let selected = again.map(|local| this.read(local, arms[*arm].span));
                this.arm(&arms[*arm], selected, target);
            });
            if position + 1 == live.len() {
                default = body;
            } else {
                let values = taken[*arm].iter().flat_map(|(from, to)| *from..=*to).map(|value| value as u32).collect();
                cases.push(Case { values, body });
            }
        }
        self.push(StatementKind::Switch { selector: value, cases, default }, span);
    }

    fn arm(&mut self, arm: &Arm, selected: Option<Handle<Expression>>, target: Option<Handle<ir::Local>>) {
        if let (Pattern::Any(Some(local)), Some(value)) = (&arm.pattern, selected) {
            let mutable = self.tree_locals[*local].assigned;
            let tree = self.tree_locals[*local].clone();
            let ty = self.ir_type(&tree.ty, tree.span);
            let handle = self.new_local(&tree.name, ty, mutable, tree.span);
            self.locals[*local] = Some(handle);
            self.push(StatementKind::Let { local: handle, value: Some(value) }, arm.span);
        }
        self.arm_body(&arm.body, target);
    }

    /// `if` after `if`.
    #[expect(clippy::too_many_arguments, reason = "the pieces of one match, handed on to itself")]
    fn chain(
        &mut self,
        arms: &[Arm],
        live: &[usize],
        taken: &[Vec<(i64, i64)>],
        selector: Option<Handle<ir::Local>>,
        target: Option<Handle<ir::Local>>,
        ty: &Ty,
        span: Span,
    ) {
        let (Some((arm, rest)), Some(local)) = (live.split_first(), selector) else {
            return;
        };
        let arm_span = arms[*arm].span;
        if rest.is_empty() {
            let value = self.read(local, arm_span);
            return self.arm(&arms[*arm], Some(value), target);
        }
        let mut condition = None;
        for (from, to) in &taken[*arm] {
            let part = self.within(local, *from, *to, ty, arm_span);
            condition = Some(match condition {
                None => part,
                Some(before) => self.either(LogicalOperator::Or, before, part, arm_span),
            });
        }
        let Some(condition) = condition else {
            return;
        };
        let accept = self.nested(|this| {
            let value = this.read(local, arm_span);
            this.arm(&arms[*arm], Some(value), target);
        });
        let reject = self.nested(|this| this.chain(arms, rest, taken, selector, target, ty, span));
        self.push(StatementKind::If { condition, accept, reject, constant: false }, span);
    }

    fn within(&mut self, local: Handle<ir::Local>, from: i64, to: i64, ty: &Ty, span: Span) -> Handle<Expression> {
        if *ty == Ty::BOOL {
            let value = self.read(local, span);
            if from == 1 {
                return value;
            }
            let ty = self.scalar_type(Scalar::Bool);
            let kind = ExpressionKind::Unary { operator: ir::UnaryOperator::Not, value };
            return self.add(kind, ty, span);
        }
        let (low, high) = self.domain(ty).unwrap_or((i64::MIN, i64::MAX));
        if from == to {
            let (value, number) = (self.read(local, span), self.bits(from, ty, span));
            return self.binary(BinaryOperator::Equal, value, number, span);
        }
        let above = (from > low).then(|| {
            let (value, number) = (self.read(local, span), self.bits(from, ty, span));
            self.binary(BinaryOperator::GreaterEqual, value, number, span)
        });
        let below = (to < high).then(|| {
            let (value, number) = (self.read(local, span), self.bits(to, ty, span));
            self.binary(BinaryOperator::LessEqual, value, number, span)
        });
        match (above, below) {
            (Some(above), Some(below)) => self.either(LogicalOperator::And, above, below, span),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => self.literal(Literal::Bool(true), span),
        }
    }

    fn either(
        &mut self,
        operator: LogicalOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        span: Span,
    ) -> Handle<Expression> {
        let ty = self.scalar_type(Scalar::Bool);
        self.add(ExpressionKind::Logical { operator, left, right }, ty, span)
    }

    fn bits(&mut self, value: i64, ty: &Ty, span: Span) -> Handle<Expression> {
        let literal = match ty {
            Ty::Scalar(Scalar::I32) => Literal::I32(value as i32),
            Ty::Scalar(Scalar::Index) => match u32::try_from(value) {
                Ok(value) => Literal::Index(value),
                Err(_) => return self.integer(value.cast_unsigned(), false, ty, span),
            },
            _ => Literal::U32(value as u32),
        };
        self.literal(literal, span)
    }

    /// The smallest and the largest value of a type.
    fn domain(&self, ty: &Ty) -> Option<(i64, i64)> {
        match ty {
            Ty::Scalar(Scalar::Bool) => Some((0, 1)),
            Ty::Scalar(Scalar::I32) => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            // Of what is above, patterns cannot speak.
            Ty::Scalar(Scalar::Index) if self.session.has_wide_indices() => Some((0, i64::MAX)),
            Ty::Scalar(Scalar::U32 | Scalar::Index) | Ty::Enum(_) => Some((0, i64::from(u32::MAX))),
            _ => None,
        }
    }
}

/// What of `left` is in `wanted`; no value twice.
fn intersect(left: &[(i64, i64)], wanted: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut rest = left.to_vec();
    let mut result = Vec::new();
    for (from, to) in wanted {
        for (a, b) in &rest {
            let (low, high) = ((*a).max(*from), (*b).min(*to));
            if low <= high {
                result.push((low, high));
            }
        }
        rest = subtract(&rest, &[(*from, *to)]);
    }
    result
}

/// What of `left` is not in `taken`.
fn subtract(left: &[(i64, i64)], taken: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut rest = left.to_vec();
    for (from, to) in taken {
        let mut next = Vec::new();
        for (a, b) in rest {
            if b < *from || a > *to {
                next.push((a, b));
                continue;
            }
            if a < *from {
                next.push((a, from - 1));
            }
            if b > *to {
                next.push((to + 1, b));
            }
        }
        rest = next;
    }
    rest
}
