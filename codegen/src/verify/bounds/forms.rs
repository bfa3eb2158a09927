//! What the walk knows of a value: its linear form, and the facts that a condition states.

use super::Walk;
use crate::ir::{
    BinaryOperator, Builtin, Expression, ExpressionKind, Handle, LogicalOperator, MathFunction, Scalar, Type,
    UnaryOperator,
};
use crate::target::MOST_SUBGROUP;
use crate::verify::linear::{Form, Key, Kind};

/// Factors are smaller, in 32 bits every one is.
const LARGEST_FACTOR: i128 = 1 << 40;

/// The kind of a type with that range.
const fn kind(low: i128, high: i128) -> Kind {
    Kind { signed: low < 0, wide: high > u32::MAX as i128 }
}

/// That of what is divided without a sign: as many bits as there are.
const UNSIGNED: Kind = Kind { signed: false, wide: false };

impl<'a> Walk<'a> {
    /// A form that equals the value.
    pub(super) fn exact(&mut self, handle: Handle<Expression>) -> Form {
        let form = self.congruent(handle);
        self.exact_of(handle, &form)
    }

    /// A form that equals the value, of one that equals it modulo 2 to the power of its bits.
    pub(super) fn exact_of(&mut self, handle: Handle<Expression>, congruent: &Form) -> Form {
        match self.limits_of(handle) {
            Some((low, high)) if self.knowledge.within(congruent, low, high) => congruent.clone(),
            Some((low, high)) => self.knowledge.atom(Key::Wrapped(congruent.clone(), kind(low, high)), low, high),
            None => self.knowledge.fresh(0, self.most()),
        }
    }

    /// A form that equals the value modulo 2 to the power of its bits.
    pub(super) fn congruent(&mut self, handle: Handle<Expression>) -> Form {
        let function = self.function;
        let Some((low, high)) = self.limits_of(handle) else { return self.knowledge.fresh(0, self.most()) };
        match &function.expressions[handle].kind {
            ExpressionKind::Literal(literal) => match literal.as_integer() {
                Some(value) => Form::constant(value),
                None => self.knowledge.fresh(low, high),
            },
            ExpressionKind::Local(local) if self.locals.contains_key(local) => self.locals[local].clone(),
            ExpressionKind::Unary { operator: UnaryOperator::Negate, value } => self.congruent(*value).times(-1),
            // -x - 1, also without a sign.
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => self.congruent(*value).times(-1).plus(-1),
            ExpressionKind::Binary { operator, left, right } => self.binary(*operator, *left, *right, (low, high)),
            ExpressionKind::Math { function, arguments } => self.math(*function, arguments, (low, high)),
            ExpressionKind::Convert(value) | ExpressionKind::Bitcast(value) => {
                let from = self.scalar_of(function.expressions[*value].ty);
                match from {
                    // Its form may differ from the value by 2^32, and then it is another one in 64 bits.
                    Some(scalar) if self.limits(scalar).is_some() && scalar.bits() == 32 && kind(low, high).wide => {
                        self.exact(*value)
                    }
                    Some(scalar) if self.limits(scalar).is_some() => self.congruent(*value),
                    Some(Scalar::Bool) => self.knowledge.fresh(0, 1),
                    Some(scalar) if scalar.is_narrow() && scalar.is_integer() && !scalar.is_signed() => {
                        self.knowledge.fresh(0, scalar.limits()[1])
                    }
                    _ => self.knowledge.fresh(low, high),
                }
            }
            ExpressionKind::MatrixLength(ty) => match &self.module.types[*ty] {
                Type::Matrix(matrix) => self.matrix_length(matrix),
                _ => self.knowledge.fresh(low, high),
            },
            ExpressionKind::Select { accept, reject, .. } => {
                let (accept, reject) = (self.exact(*accept), self.exact(*reject));
                let ((a, b), (c, d)) = (self.knowledge.range(&accept), self.knowledge.range(&reject));
                // In code that never runs all of it may be beyond the type's range.
                self.knowledge.fresh(a.min(c).clamp(low, high), b.max(d).clamp(low, high))
            }
            _ => match self.key(handle) {
                Some(key) => {
                    let (low, high) = self.key_range(&key, (low, high));
                    self.knowledge.atom(key, low, high)
                }
                None => self.knowledge.fresh(low, high),
            },
        }
    }

    /// What an expression that does not change is called.
    pub(super) fn key(&self, handle: Handle<Expression>) -> Option<Key> {
        Some(match &self.function.expressions[handle].kind {
            ExpressionKind::Param(param) => Key::Param(*param),
            ExpressionKind::Length(binding) => Key::Length(*binding),
            ExpressionKind::ViewExtent { binding, axis } => Key::Extent(*binding, *axis),
            ExpressionKind::ViewStride { binding, axis } => Key::Stride(*binding, *axis),
            ExpressionKind::Builtin(builtin) => Key::Builtin(*builtin),
            ExpressionKind::Argument(argument) => Key::Argument(*argument),
            ExpressionKind::Local(local) => self.names.get(local).cloned().unwrap_or(Key::Local(*local)),
            ExpressionKind::Load(place) if place.path.is_empty() => self.version(place.root),
            ExpressionKind::Member { base, index } => Key::Part(Box::new(self.key(*base)?), *index),
            // A vector of indices whose lanes become wider keeps their values.
            ExpressionKind::Convert(value) if self.extends(*value, handle) => self.key(*value)?,
            _ => return None,
        })
    }

    /// Whether a conversion gives a vector of the same numbers without a sign, of more bits.
    fn extends(&self, from: Handle<Expression>, to: Handle<Expression>) -> bool {
        let of = |value: Handle<Expression>| &self.module.types[self.function.expressions[value].ty];
        let unsigned = |ty: &Type| match ty {
            Type::Vector { scalar, .. } if scalar.is_integer() && !scalar.is_signed() => Some(scalar.bits()),
            _ => None,
        };
        matches!((unsigned(of(from)), unsigned(of(to))), (Some(from), Some(to)) if from < to)
    }

    /// The range of an unknown, within its type's.
    fn key_range(&self, key: &Key, (low, high): (i128, i128)) -> (i128, i128) {
        let [x, y, z] = self.workgroup_size.map(i128::from);
        let (least, most) =
            self.module.subgroup_size().map_or((1, i128::from(MOST_SUBGROUP)), |size| (size.into(), size.into()));
        match key {
            Key::Builtin(Builtin::LocalIndex) => (0, x * y * z - 1),
            Key::Builtin(Builtin::SubgroupIndex) => (0, (x * y * z + least - 1) / least - 1),
            Key::Builtin(Builtin::SubgroupLane) => (0, most - 1),
            Key::Builtin(Builtin::SubgroupSize) => (least, most),
            Key::Argument(argument) => self.arguments.get(*argument as usize).copied().flatten().unwrap_or((low, high)),
            Key::Part(base, axis) if **base == Key::Builtin(Builtin::LocalId) => {
                (0, [x, y, z].get(*axis as usize).map_or(high, |size| size - 1))
            }
            _ => (low, high),
        }
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        (low, high): (i128, i128),
    ) -> Form {
        use BinaryOperator as B;
        match operator {
            B::Add => return self.congruent(left).add(&self.congruent(right), 1),
            B::Subtract => return self.congruent(left).add(&self.congruent(right), -1),
            _ => {}
        }
        let (a, b) = (self.exact(left), self.exact(right));
        let unsigned = low == 0;
        let (_, most_a) = self.knowledge.range(&a);
        let (least_b, most_b) = self.knowledge.range(&b);
        let kind = kind(low, high);
        // Ranges of atoms hold always, also where a condition that makes a form the value of a number without a sign does not: so they are another's than those of numbers with a sign.
        let atom = |walk: &mut Self, low: i128, high: i128| {
            walk.knowledge.atom(Key::Operation(operator, a.clone(), b.clone(), kind), low, high)
        };
        // Larger ones are nobody's strides, and many of them leave what forms are computed in.
        let factor = |form: &Form| form.as_constant().filter(|factor| *factor < LARGEST_FACTOR);
        let bits = if kind.wide { 64 } else { 32 };
        match (operator, a.as_constant(), b.as_constant()) {
            (B::Divide, Some(number), Some(divisor)) if unsigned && divisor > 0 => Form::constant(number / divisor),
            (B::Remainder, Some(number), Some(divisor)) if unsigned && divisor > 0 => Form::constant(number % divisor),
            (B::Multiply, Some(_), _) if let Some(factor) = factor(&a) => b.times(factor),
            (B::Multiply, _, Some(_)) if let Some(factor) = factor(&b) => a.times(factor),
            (B::ShiftLeft, _, Some(amount)) if 1 << (amount & (bits - 1)) < LARGEST_FACTOR => {
                a.times(1 << (amount & (bits - 1)))
            }
            (B::Multiply, ..) => {
                // Without wrapping, a product is no larger than that of what its sides are at most.
                let most = most_a.saturating_mul(most_b);
                atom(self, low, if unsigned { most.clamp(0, high) } else { high })
            }
            (B::Divide, _, Some(divisor)) if unsigned && divisor > 0 => self.quotient(&a, divisor),
            (B::ShiftRight, _, Some(amount)) if unsigned => self.quotient(&a, 1 << (amount & (bits - 1))),
            (B::Remainder, _, Some(divisor)) if unsigned && divisor > 0 => self.remainder(&a, divisor),
            (B::And, _, Some(mask)) if unsigned && (mask + 1).count_ones() == 1 => self.remainder(&a, mask + 1),
            (B::Divide, ..) if unsigned => {
                let quotient = atom(self, low, high);
                self.knowledge.learn(a.add(&quotient, -1));
                quotient
            }
            (B::Remainder, ..) if unsigned => {
                let rest = atom(self, low, high);
                self.knowledge.learn(a.add(&rest, -1));
                if self.knowledge.proves(&b.plus(-1)) {
                    self.knowledge.learn(b.add(&rest, -1).plus(-1));
                }
                rest
            }
            (B::And, ..) if unsigned => {
                let both = atom(self, low, most_a.min(most_b).clamp(low, high));
                self.knowledge.learn(a.add(&both, -1));
                self.knowledge.learn(b.add(&both, -1));
                both
            }
            (B::Or | B::Xor, ..) if unsigned => {
                let bits = 128 - most_a.max(most_b).max(0).leading_zeros();
                // No more than all bits that may be set, and than both together.
                let most = ((1 << bits) - 1).min(most_a.max(0) + most_b.max(0));
                atom(self, low, most.min(high))
            }
            (B::ShiftRight, ..) if unsigned && least_b >= 0 => {
                let shifted = atom(self, low, high);
                self.knowledge.learn(a.add(&shifted, -1));
                shifted
            }
            _ => atom(self, low, high),
        }
    }

    /// `a / divisor` of a value without a sign.
    fn quotient(&mut self, a: &Form, divisor: i128) -> Form {
        let key = Key::Operation(BinaryOperator::Divide, a.clone(), Form::constant(divisor), UNSIGNED);
        // Its range is one of whole numbers, which the facts below do not speak of: 255 / 16 is at most 15, not 15.9.
        let (_, most) = self.knowledge.range(a);
        let quotient = self.knowledge.atom(key, 0, most.clamp(0, self.most()) / divisor);
        self.knowledge.learn(a.add(&quotient, -divisor));
        self.knowledge.learn(quotient.times(divisor).plus(divisor - 1).add(a, -1));
        quotient
    }

    /// `a % divisor` of a value without a sign.
    fn remainder(&mut self, a: &Form, divisor: i128) -> Form {
        let quotient = self.quotient(a, divisor);
        let key = Key::Operation(BinaryOperator::Remainder, a.clone(), Form::constant(divisor), UNSIGNED);
        let (_, most) = self.knowledge.range(a);
        let rest = self.knowledge.atom(key, 0, most.clamp(0, divisor - 1));
        self.knowledge.learn(a.add(&rest, -1));
        let difference = a.add(&quotient, -divisor).add(&rest, -1);
        self.knowledge.learn(difference.times(-1));
        self.knowledge.learn(difference);
        rest
    }

    fn math(&mut self, function: MathFunction, arguments: &[Handle<Expression>], (low, high): (i128, i128)) -> Form {
        use MathFunction as M;
        match function {
            M::Min | M::Max | M::Clamp => {
                let integers = arguments.iter().all(|argument| self.limits_of(*argument).is_some());
                if !integers {
                    return self.knowledge.fresh(low, high);
                }
                let forms: Vec<Form> = arguments.iter().map(|argument| self.exact(*argument)).collect();
                let result = self.knowledge.atom(Key::Math(function, forms.clone(), kind(low, high)), low, high);
                match function {
                    M::Min => {
                        self.learn_all(forms.iter().map(|form| form.add(&result, -1)).collect());
                        let least = forms.iter().map(|form| self.knowledge.range(form).0).min().unwrap_or(low);
                        self.knowledge.learn(result.plus(-least));
                    }
                    M::Max => {
                        self.learn_all(forms.iter().map(|form| result.add(form, -1)).collect());
                        let most = forms.iter().map(|form| self.knowledge.range(form).1).max().unwrap_or(high);
                        self.knowledge.learn(result.times(-1).plus(most));
                    }
                    // min(max(x, low), high): not above `high`, and not below the lesser of the two bounds.
                    _ => {
                        self.knowledge.learn(forms[2].add(&result, -1));
                        let least = self.knowledge.range(&forms[1]).0.min(self.knowledge.range(&forms[2]).0);
                        self.knowledge.learn(result.plus(-least));
                    }
                }
                result
            }
            M::CountOnes | M::LeadingZeros | M::TrailingZeros => self.knowledge.fresh(0, 32),
            _ => self.knowledge.fresh(low, high),
        }
    }

    /// What follows if a condition is `truth`.
    pub(super) fn says(&mut self, handle: Handle<Expression>, truth: bool) -> Vec<Form> {
        let function = self.function;
        match &function.expressions[handle].kind {
            ExpressionKind::Logical { operator, left, right } => {
                self.both((*operator == LogicalOperator::And) == truth, *left, *right, truth)
            }
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => self.says(*value, !truth),
            ExpressionKind::Local(local) => match self.conditions.get(local) {
                Some(says) => says[usize::from(!truth)].clone(),
                None => Vec::new(),
            },
            ExpressionKind::Binary { operator, left, right } => {
                let compares = self.limits_of(*left).is_some() && self.limits_of(*right).is_some();
                match operator {
                    BinaryOperator::And if !compares => self.both(truth, *left, *right, truth),
                    BinaryOperator::Or if !compares => self.both(!truth, *left, *right, truth),
                    operator if compares && operator.is_comparison() => {
                        self.comparison(*operator, *left, *right, truth)
                    }
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn both(&mut self, both: bool, left: Handle<Expression>, right: Handle<Expression>, truth: bool) -> Vec<Form> {
        if !both {
            return Vec::new();
        }
        let mut facts = self.says(left, truth);
        facts.extend(self.says(right, truth));
        facts
    }

    fn comparison(
        &mut self,
        operator: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        truth: bool,
    ) -> Vec<Form> {
        use BinaryOperator as B;
        let (a, b) = (self.exact(left), self.exact(right));
        let operator = match (operator, truth) {
            (operator, true) => operator,
            (B::Less, false) => B::GreaterEqual,
            (B::LessEqual, false) => B::Greater,
            (B::Greater, false) => B::LessEqual,
            (B::GreaterEqual, false) => B::Less,
            (B::Equal, false) => B::NotEqual,
            (_, false) => B::Equal,
        };
        let (up, down) = (b.add(&a, -1), a.add(&b, -1));
        match operator {
            B::Less => vec![up.plus(-1)],
            B::LessEqual => vec![up],
            B::Greater => vec![down.plus(-1)],
            B::GreaterEqual => vec![down],
            B::Equal => vec![up, down],
            _ => [up, down]
                .into_iter()
                .filter(|difference| self.knowledge.proves(difference))
                .map(|difference| difference.plus(-1))
                .collect(),
        }
    }
}
