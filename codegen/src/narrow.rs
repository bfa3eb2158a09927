//! Arithmetic of 8- and 16-bit types as the essay in [`crate::ir`] means it: widened, computed in 32 bits, and narrowed again.
//!
//! Integers wrap when they are narrowed; `f16` and `bf16` are rounded to the nearest, which for `+ - * /` and `sqrt` is the correctly rounded result,
//! since `f32` has more than twice their digits and two. What is left of narrow types afterwards is moved about and converted to and from
//! the 32-bit type that holds it ([`Scalar::widened`]).

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, BinaryOperator, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Module, Scalar, Span,
    Statement, StatementKind, Type,
};

/// Replaces the arithmetic of narrow types, and says whether there was any.
///
/// # Errors
/// The rewriting of a function fails, which the verifier rules out.
pub fn legalise(module: &mut Module) -> Result<Option<&'static str>, Diagnostics> {
    if !module.types.iter().any(|(_, ty)| ty.scalar().is_some_and(Scalar::is_narrow)) {
        return Ok(None);
    }
    let params = (0..module.params.len()).map(|index| widen_param(module, index)).collect();
    let functions = std::mem::take(&mut module.functions);
    let entry = std::mem::take(&mut module.entry);
    let mut pass = Narrow { module, params, computed: false };
    let mut rewritten = Arena::new();
    for (_, function) in functions.iter() {
        rewritten.add(rewrite(&mut pass, function)?);
    }
    let entry = rewrite(&mut pass, &entry)?;
    let computed = pass.computed;
    module.functions = rewritten;
    module.entry = entry;
    Ok(computed.then_some("arithmetic of narrow types in 32 bits"))
}

/// A parameter of a narrow type travels as the 32-bit type that holds it. Gives its narrow scalar.
fn widen_param(module: &mut Module, index: usize) -> Option<Scalar> {
    let narrow = |ty: &Type| ty.scalar().filter(|scalar| scalar.is_narrow());
    let ty = module.types[module.params[index].ty].clone();
    let (wide, scalar) = match ty {
        Type::Array { element, length } => {
            let scalar = narrow(&module.types[element])?;
            let element = module.types[element].with_scalar(scalar.widened());
            (Type::Array { element: module.intern(element), length }, scalar)
        }
        ty => {
            let scalar = narrow(&ty)?;
            (ty.with_scalar(scalar.widened()), scalar)
        }
    };
    module.params[index].ty = module.intern(wide);
    Some(scalar)
}

type Value = Handle<Expression>;

struct Narrow<'a> {
    module: &'a mut Module,
    /// The narrow scalar of each parameter that has one.
    params: Vec<Option<Scalar>>,
    /// Whether there is any arithmetic.
    computed: bool,
}

impl Narrow<'_> {
    /// The narrow scalar of an expression of the old function.
    fn narrow(&self, copy: &Copy<'_>, value: Value) -> Option<Scalar> {
        self.module.types[copy.old.expressions[value].ty].scalar().filter(|scalar| scalar.is_narrow())
    }

    /// The shape of a type with another scalar.
    fn with(&mut self, ty: Handle<Type>, scalar: Scalar) -> Handle<Type> {
        let ty = self.module.types[ty].with_scalar(scalar);
        self.module.intern(ty)
    }

    /// A copy of a narrow value, widened.
    fn wide(&mut self, copy: &mut Copy<'_>, value: Value) -> Result<Value, Diagnostic> {
        let Expression { ty, span, .. } = copy.old.expressions[value];
        let inner = self.expression(copy, value)?;
        Ok(match self.narrow(copy, value) {
            Some(scalar) => self.widened(copy, inner, scalar, ty, span),
            None => inner,
        })
    }

    /// A value widened; what was only just narrowed from a literal is taken as it is.
    fn widened(&mut self, copy: &mut Copy<'_>, value: Value, scalar: Scalar, ty: Handle<Type>, span: Span) -> Value {
        let wide = self.with(ty, scalar.widened());
        if let ExpressionKind::Literal(literal) = copy.new.expressions[value].kind {
            let known = match literal.as_integer() {
                Some(number) => Literal::exact_integer(scalar.widened(), number),
                None => literal.as_float().and_then(|number| Literal::float(scalar.widened(), number)),
            };
            if let Some(literal) = known {
                return copy.add(ExpressionKind::Literal(literal), wide, span);
            }
        }
        copy.add(ExpressionKind::Convert(value), wide, span)
    }

    /// The result of a computation in 32 bits as a narrow type.
    fn narrowed(&self, copy: &mut Copy<'_>, value: Value, ty: Handle<Type>, span: Span) -> Value {
        copy.add(ExpressionKind::Convert(value), ty, span)
    }

    /// A constant of the shape of `ty`, whose scalar the literal has.
    fn constant(&mut self, copy: &mut Copy<'_>, literal: Literal, ty: Handle<Type>, span: Span) -> Value {
        let scalar = self.module.intern(Type::Scalar(literal.scalar()));
        let value = copy.add(ExpressionKind::Literal(literal), scalar, span);
        match self.module.types[ty] {
            Type::Vector { .. } => copy.add(ExpressionKind::Splat(value), ty, span),
            _ => value,
        }
    }

    /// A conversion that starts or ends at a narrow type goes by way of the types that hold both sides.
    fn convert(&mut self, copy: &mut Copy<'_>, value: Value, handle: Value) -> Result<Value, Diagnostic> {
        let Expression { ty, span, .. } = copy.old.expressions[handle];
        let Some(to) = self.module.types[ty].scalar() else { return copy.expression(self, handle) };
        let Some(from) = self.module.types[copy.old.expressions[value].ty].scalar() else {
            // An enum is a word.
            if !to.is_narrow() {
                return copy.expression(self, handle);
            }
            let word = self.with(ty, to.widened());
            let inner = self.expression(copy, value)?;
            let inner = copy.add(ExpressionKind::Convert(inner), word, span);
            return Ok(self.narrowed(copy, inner, ty, span));
        };
        if from == to {
            return self.expression(copy, value);
        }
        // A step between a narrow type and the one that holds it stays.
        if from.widened() == to || from == to.widened() {
            return copy.expression(self, handle);
        }
        let mut at = if from.is_narrow() { from.widened() } else { from };
        let mut inner = self.wide(copy, value)?;
        let target = if to.is_narrow() { to.widened() } else { to };
        if at != target {
            let between = self.with(ty, target);
            inner = copy.add(ExpressionKind::Convert(inner), between, span);
            // From floats `as` saturates at the ends of the narrow type.
            if at.is_float() && to.is_narrow() && to.is_integer() {
                let [low, high] = to.limits().map(|limit| Literal::exact_integer(target, limit));
                let (Some(low), Some(high)) = (low, high) else {
                    return Err(Diagnostic::new(span, "an integer without limits"));
                };
                let (low, high) = (self.constant(copy, low, between, span), self.constant(copy, high, between, span));
                let arguments = vec![inner, low, high];
                let function = MathFunction::Clamp;
                inner = copy.add(ExpressionKind::Math { function, arguments }, between, span);
            }
            at = target;
        }
        Ok(if to == at { inner } else { self.narrowed(copy, inner, ty, span) })
    }

    /// The amount of a shift modulo the bits of what is shifted.
    fn amount(&mut self, copy: &mut Copy<'_>, amount: Value, bits: u32, span: Span) -> Result<Value, Diagnostic> {
        let ty = copy.old.expressions[amount].ty;
        if let ExpressionKind::Literal(literal) = copy.old.expressions[amount].kind {
            let literal = Literal::U32(literal.bits() as u32 & (bits - 1));
            return Ok(copy.add(ExpressionKind::Literal(literal), ty, span));
        }
        let left = self.expression(copy, amount)?;
        let right = self.constant(copy, Literal::U32(bits - 1), ty, span);
        Ok(copy.add(ExpressionKind::Binary { operator: BinaryOperator::And, left, right }, ty, span))
    }
}

impl Rewrite for Narrow<'_> {
    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        let (ty, span) = (*ty, *span);
        match kind {
            ExpressionKind::Unary { operator, value } => {
                let Some(scalar) = self.narrow(copy, *value) else { return copy.expression(self, handle) };
                let value = self.wide(copy, *value)?;
                let wide = self.with(ty, scalar.widened());
                let result = copy.add(ExpressionKind::Unary { operator: *operator, value }, wide, span);
                Ok(self.narrowed(copy, result, ty, span))
            }
            ExpressionKind::Binary { operator, left, right } => {
                let Some(scalar) = self.narrow(copy, *left) else { return copy.expression(self, handle) };
                let left = self.wide(copy, *left)?;
                let shifts = matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight);
                let right =
                    if shifts { self.amount(copy, *right, scalar.bits(), span)? } else { self.wide(copy, *right)? };
                let kind = ExpressionKind::Binary { operator: *operator, left, right };
                if operator.is_comparison() {
                    return Ok(copy.add(kind, ty, span));
                }
                let wide = self.with(ty, scalar.widened());
                let result = copy.add(kind, wide, span);
                self.computed = true;
                Ok(self.narrowed(copy, result, ty, span))
            }
            ExpressionKind::Math { function, arguments } => {
                let Some(scalar) = arguments.first().and_then(|first| self.narrow(copy, *first)) else {
                    return copy.expression(self, handle);
                };
                let arguments = arguments.iter().map(|value| self.wide(copy, *value)).collect::<Result<Vec<_>, _>>()?;
                let kind = ExpressionKind::Math { function: *function, arguments };
                if self.module.types[ty].scalar() != Some(scalar) {
                    return Ok(copy.add(kind, ty, span));
                }
                let wide = self.with(ty, scalar.widened());
                let result = copy.add(kind, wide, span);
                Ok(self.narrowed(copy, result, ty, span))
            }
            ExpressionKind::Convert(value) => self.convert(copy, *value, handle),
            ExpressionKind::Param(param) if self.params[*param as usize].is_some() => {
                let wide = self.module.params[*param as usize].ty;
                let Type::Array { element, length } = self.module.types[wide].clone() else {
                    let value = copy.add(ExpressionKind::Param(*param), wide, span);
                    return Ok(self.narrowed(copy, value, ty, span));
                };
                let Type::Array { element: narrow, .. } = self.module.types[ty] else {
                    return Err(Diagnostic::new(span, "an array parameter that is used as none"));
                };
                let parts = (0..length.literal().unwrap_or(0)).map(|index| {
                    let base = copy.add(ExpressionKind::Param(*param), wide, span);
                    let part = copy.add(ExpressionKind::Member { base, index }, element, span);
                    self.narrowed(copy, part, narrow, span)
                });
                let parts = parts.collect();
                Ok(copy.add(ExpressionKind::Compose(parts), ty, span))
            }
            ExpressionKind::Member { base, .. } | ExpressionKind::Element { base, .. } => {
                let ExpressionKind::Param(param) = old.expressions[*base].kind else {
                    return copy.expression(self, handle);
                };
                let Some(scalar) = self.params[param as usize] else { return copy.expression(self, handle) };
                let wide = self.module.params[param as usize].ty;
                let base = copy.add(ExpressionKind::Param(param), wide, span);
                let kind = match kind {
                    ExpressionKind::Element { index, .. } => {
                        ExpressionKind::Element { base, index: self.expression(copy, *index)? }
                    }
                    ExpressionKind::Member { index, .. } => ExpressionKind::Member { base, index: *index },
                    _ => return copy.expression(self, handle),
                };
                let part = self.with(ty, scalar.widened());
                let value = copy.add(kind, part, span);
                Ok(self.narrowed(copy, value, ty, span))
            }
            _ => copy.expression(self, handle),
        }
    }

    fn statement(
        &mut self,
        copy: &mut Copy<'_>,
        statement: &Statement,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let StatementKind::Switch { selector, .. } = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        let narrow = self.narrow(copy, *selector);
        copy.statement(self, statement, out)?;
        // Cases are numbers of 32 bits.
        if let (Some(scalar), Some(Statement { kind: StatementKind::Switch { selector, .. }, span })) =
            (narrow, out.last_mut())
        {
            let ty = self.module.intern(Type::Scalar(scalar.widened()));
            *selector = copy.add(ExpressionKind::Convert(*selector), ty, *span);
        }
        Ok(())
    }
}
