//! `match` and its patterns.

use super::fold::computed_binary;
use super::infer::{Ty, VarKind};
use super::items::check_attributes;
use super::scope::Infer;
use super::session::GenericArgument;
use super::tree::{Arm, Kind, Node, Pattern};
use super::values::no_such_integer;
use crate::ir::{Literal, Scalar, UnaryOperator, constant};

impl Infer<'_> {
    pub(super) fn match_expression(&mut self, e: &syn::ExprMatch, hint: Option<&Ty>) -> Node {
        let selector = self.expr(&e.expr, None);
        let ty = self.known(&selector.ty, &e.expr);
        let fits = match &ty {
            Ty::Scalar(scalar) => *scalar == Scalar::Bool || (scalar.is_integer() && scalar.bits() == 32),
            Ty::Var(_) => self.table.kind(&ty) == Some(VarKind::Integer),
            Ty::Enum(_) | Ty::Error | Ty::Never => true,
            _ => false,
        };
        if !fits {
            let found = self.describe(&ty);
            self.error(
                &e.expr,
                format!("a `match` looks at integers of 32 bits, bools and enums, this is `{found}`: use `if`"),
            );
        }
        if e.arms.is_empty() {
            return self.wrong(e, "a `match` has at least one arm");
        }
        let mut result = Ty::Never;
        let mut arms = Vec::new();
        let mut wrong = !fits;
        for arm in &e.arms {
            check_attributes(self.session, &arm.attrs);
            self.scopes.push(Default::default());
            let pattern = self.pattern(&arm.pat, &ty);
            wrong |= matches!(pattern, Pattern::Error);
            // A constant in small letters would be such a name here, and a constant in Rust.
            if let Some(Arm { pattern: Pattern::Any(Some(local)), .. }) = arms.last() {
                let name = self.locals[*local].name.clone();
                self.error(&arm.pat, format!("no value comes here: `{name}` is a new name, which takes every value; a constant is written in capitals"));
                wrong = true;
            }
            let expression = &*arm.body;
            let mut body = self.expr(expression, hint);
            self.scopes.pop();
            match self.table.shallow(&body.ty) {
                Ty::Never => {}
                found if self.table.shallow(&result) == Ty::Never => result = found,
                _ => {
                    let expected = result.clone();
                    body = self.coerce(body, &expected, expression);
                }
            }
            let span = self.session.span(&arm.pat);
            arms.push(Arm { pattern, body, span });
        }
        if wrong || ty == Ty::Error {
            let mut node = self.failed(e);
            if result == Ty::Unit {
                node.ty = Ty::Unit;
            }
            return node;
        }
        self.node(Kind::Match(Box::new(selector), arms), result, e)
    }

    pub(super) fn pattern(&mut self, pattern: &syn::Pat, ty: &Ty) -> Pattern {
        match pattern {
            syn::Pat::Wild(_) => Pattern::Any(None),
            syn::Pat::Paren(inner) => self.pattern(&inner.pat, ty),
            syn::Pat::Or(or) => {
                let mut values = Vec::new();
                let mut any = false;
                for case in &or.cases {
                    match self.pattern(case, ty) {
                        Pattern::Values(more) => values.extend(more),
                        Pattern::Any(None) => any = true,
                        Pattern::Any(Some(_)) => {
                            self.error(case, "a name stands alone in its arm, not among others");
                            return Pattern::Error;
                        }
                        Pattern::Error => return Pattern::Error,
                    }
                }
                if any { Pattern::Any(None) } else { Pattern::Values(values) }
            }
            syn::Pat::Guard(guard) => {
                self.error(
                    &guard.guard,
                    "guards are not part of the kernel language (yet): write the `if` inside of the arm",
                );
                let _ = self.pattern(&guard.pat, ty);
                Pattern::Error
            }
            syn::Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                if let Some(GenericArgument::Const(..)) = self.scope.generics.get(&name.ident.to_string()) {
                    self.error(
                        name,
                        "a pattern is a literal, a constant of an item or an enum's variant: compare with `==`",
                    );
                    return Pattern::Error;
                }
                let path = syn::Path::from(name.ident.clone());
                if self.session.bundle(&self.scope, &path).is_some() {
                    let path = syn::ExprPath { attrs: Vec::new(), qself: None, path };
                    return self.pattern_value(&syn::Expr::Path(path), ty);
                }
                let local = self.local(&name.ident.to_string(), ty.clone(), &name.ident);
                Pattern::Any(Some(local))
            }
            syn::Pat::Lit(literal) => self.pattern_value(&syn::Expr::Lit(literal.clone()), ty),
            syn::Pat::Path(path) => self.pattern_value(&syn::Expr::Path(path.clone()), ty),
            syn::Pat::Range(range) => {
                if !matches!(self.table.shallow(ty), Ty::Scalar(scalar) if scalar.is_integer())
                    && self.table.kind(ty) != Some(VarKind::Integer)
                {
                    self.error(pattern, "a range fits integers alone");
                    return Pattern::Error;
                }
                let start = match &range.start {
                    Some(start) => match self.pattern_number(start, ty) {
                        Some(value) => Some(value),
                        None => return Pattern::Error,
                    },
                    None => None,
                };
                let end = match &range.end {
                    Some(end) => match self.pattern_number(end, ty) {
                        Some(value) => match range.limits {
                            syn::RangeLimits::HalfOpen(_) => Some(value - 1),
                            syn::RangeLimits::Closed(_) => Some(value),
                        },
                        None => return Pattern::Error,
                    },
                    None => None,
                };
                if let (Some(start), Some(end)) = (start, end)
                    && start > end
                {
                    self.error(pattern, "this range is empty");
                    return Pattern::Error;
                }
                Pattern::Values(vec![(start, end)])
            }
            other => {
                self.error(other, "a pattern is a literal, a constant, an `Enum::Variant`, a range, `_`, or some of these with `|` between");
                self.declare_failed(other);
                Pattern::Error
            }
        }
    }

    pub(super) fn pattern_value(&mut self, e: &syn::Expr, ty: &Ty) -> Pattern {
        match self.pattern_number(e, ty) {
            Some(value) => Pattern::Values(vec![(Some(value), Some(value))]),
            None => Pattern::Error,
        }
    }

    /// The number that a pattern means: of bools 0 and 1, of enums the discriminant.
    pub(super) fn pattern_number(&mut self, e: &syn::Expr, ty: &Ty) -> Option<i64> {
        // A negative literal is one token here, which no expression has.
        if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(value), .. }) = e
            && value.base10_digits().starts_with('-')
        {
            if !self.table.unify(ty, &Ty::Scalar(Scalar::I32)) {
                let found = self.describe(ty);
                self.error(e, format!("`{found}` has no negative values"));
                return None;
            }
            let number = value.base10_digits().parse::<i32>().ok();
            if number.is_none() {
                self.error(e, "too small for i32, the type of this literal");
            }
            return number.map(i64::from);
        }
        let record = std::mem::replace(&mut self.record, false);
        let node = self.expect(e, ty);
        self.record = record;
        let value = match (&node.kind, self.table.kind(&node.ty)) {
            _ if matches!(node.kind, Kind::Error) || node.ty == Ty::Error => return None,
            // A literal may get its type later, from what else is done with the selector.
            (Kind::Integer(value), Some(_)) => i64::try_from(*value).ok(),
            _ => self.constant_literal(&node).and_then(number),
        };
        if value.is_none() {
            let message = match (&node.kind, self.table.full(ty)) {
                (Kind::Integer(_), Some(Ty::Scalar(scalar))) => no_such_integer(scalar, false),
                (Kind::Fixed(_), _) => "the value of this constant is not known here: one in a pattern is made of literals and operators, none of which overflows".to_owned(),
                _ => "a pattern is a literal, a constant or an enum's variant".to_owned(),
            };
            self.error(e, message);
        }
        value
    }

    /// The value of a constant of its type, as far as patterns need it.
    fn constant_literal(&self, node: &Node) -> Option<Literal> {
        let scalar = match self.table.full(&node.ty)? {
            // An index that has 64 bits in each instance may be any of these numbers.
            Ty::Scalar(Scalar::Index) if self.session.has_only_wide_indices() => Scalar::U64,
            Ty::Scalar(scalar) => scalar,
            Ty::Enum(_) => Scalar::U32,
            _ => return None,
        };
        match &node.kind {
            Kind::Integer(value) => Literal::exact_integer(scalar, i128::from(*value)),
            Kind::Float(single, _) if scalar == Scalar::F32 => Some(Literal::F32(*single)),
            Kind::Float(_, double) if scalar == Scalar::F64 => Some(Literal::F64(*double)),
            Kind::Literal(literal) => Some(*literal),
            Kind::Constant(size) if scalar == Scalar::Bool => Some(Literal::Bool(size.literal()? != 0)),
            Kind::Constant(size) => Literal::integer(scalar, size.literal()?.into()),
            Kind::Fixed(value) => self.constant_literal(value),
            Kind::Convert(value) => self.session.computed_conversion(self.constant_literal(value)?, scalar),
            Kind::Unary(operator, value) => match (operator, &value.kind) {
                // The least number of a type is no literal without its sign.
                (UnaryOperator::Negate, Kind::Integer(value)) => Literal::exact_integer(scalar, -i128::from(*value)),
                _ => self.session.computed_unary(*operator, self.constant_literal(value)?),
            },
            Kind::Binary(operator, left, right) => {
                computed_binary(*operator, self.constant_literal(left)?, self.constant_literal(right)?)
            }
            Kind::Logical(operator, left, right) => {
                match (self.constant_literal(left)?, self.constant_literal(right)?) {
                    (Literal::Bool(left), Literal::Bool(right)) => {
                        Some(Literal::Bool(constant::logical(*operator, left, right)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The number that a constant is: of bools 0 and 1.
fn number(literal: Literal) -> Option<i64> {
    match literal {
        Literal::Bool(value) => Some(i64::from(value)),
        literal => i64::try_from(literal.as_integer()?).ok(),
    }
}
