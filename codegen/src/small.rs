//! Indices of 64 bits into what has fewer than 2^32 parts, which is everything but a buffer: they become words, so that the rest of the compiler meets
//! 64-bit indices as first steps into bindings alone. There every index is one.
//!
//! What is past the end in 64 bits is past the end as a word too: a guarded index becomes the smaller of itself and the largest word, one that is not
//! guarded is cut off.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, Expression, ExpressionKind, Function, Handle, IndexWidth, Literal, MathFunction, MatrixOperation, Module,
    Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type,
};

/// Makes words of such indices, in an instance that has any.
///
/// # Errors
/// The rewriting of a function fails, which the verifier rules out.
pub(crate) fn legalise(module: &mut Module) -> Result<(), Diagnostics> {
    if module.index == IndexWidth::Bits32 {
        return Ok(());
    }
    let (wide, word) = (module.intern(Type::Scalar(Scalar::U64)), module.intern(Type::Scalar(Scalar::U32)));
    let mut pass = Small { types: module.types.clone(), wide, word };
    let handles: Vec<Handle<Function>> = module.functions.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        module.functions[handle] = rewrite(&mut pass, &module.functions[handle])?;
    }
    module.entry = rewrite(&mut pass, &module.entry)?;
    Ok(())
}

struct Small {
    types: Arena<Type>,
    wide: Handle<Type>,
    word: Handle<Type>,
}

type Value = Handle<Expression>;

impl Small {
    /// Whether an expression of the old function is a word, whatever Rust calls it.
    fn is_word(&self, function: &Function, value: Value) -> bool {
        matches!(self.types[function.expressions[value].ty], Type::Scalar(Scalar::U32 | Scalar::Index))
    }

    /// An index into a binding.
    fn large(&mut self, copy: &mut Copy<'_>, index: Value) -> Result<Value, Diagnostic> {
        let value = self.expression(copy, index)?;
        let Expression { ty, span, .. } = copy.new.expressions[value];
        Ok(if ty == self.wide { value } else { copy.add(ExpressionKind::Convert(value), self.wide, span) })
    }

    /// An index into anything else.
    fn small(&mut self, copy: &mut Copy<'_>, index: Value, guarded: bool) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[index];
        let span = *span;
        match kind {
            _ if *ty != self.wide => return self.expression(copy, index),
            ExpressionKind::Convert(word) if self.is_word(old, *word) => return self.expression(copy, *word),
            ExpressionKind::Literal(Literal::U64(value)) => {
                let value = u32::try_from(*value).unwrap_or(u32::MAX);
                return Ok(copy.add(ExpressionKind::Literal(Literal::U32(value)), self.word, span));
            }
            _ => {}
        }
        let mut value = self.expression(copy, index)?;
        if guarded {
            let most = ExpressionKind::Literal(Literal::U64(u32::MAX.into()));
            let most = copy.add(most, self.wide, span);
            let kind = ExpressionKind::Math { function: MathFunction::Min, arguments: vec![value, most] };
            value = copy.add(kind, self.wide, span);
        }
        Ok(copy.add(ExpressionKind::Convert(value), self.word, span))
    }
}

impl Rewrite for Small {
    fn place(&mut self, copy: &mut Copy<'_>, place: &Place, span: Span) -> Result<Place, Diagnostic> {
        // The variable in the copy's terms; indices are the matter of this pass.
        let mut made = copy.place(self, &Place { path: Vec::new(), ..place.clone() }, span)?;
        for (step, projection) in place.path.iter().enumerate() {
            let is_large = step == 0 && matches!(place.root, Root::Binding(_));
            let mut at = |index| match is_large {
                true => self.large(copy, index),
                false => self.small(copy, index, place.guarded),
            };
            made.path.push(match *projection {
                Projection::Index(index) => Projection::Index(at(index)?),
                Projection::Vector { index, lanes } => Projection::Vector { index: at(index)?, lanes },
                Projection::Member(member) => Projection::Member(member),
            });
        }
        Ok(made)
    }

    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let Expression { kind, ty, span } = &copy.old.expressions[handle];
        match kind {
            ExpressionKind::Element { base, index } => {
                let (ty, span) = (*ty, *span);
                let base = self.expression(copy, *base)?;
                let index = self.small(copy, *index, true)?;
                Ok(copy.add(ExpressionKind::Element { base, index }, ty, span))
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
        let span = statement.span;
        let StatementKind::Matrix { result, operation } = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        // A matrix in workgroup memory is there, so that its stride is a word too; or it has one line.
        let operation = match operation {
            MatrixOperation::Load { place, stride, order } if matches!(place.root, Root::Workgroup(_)) => {
                let (place, stride) = (self.place(copy, place, span)?, self.small(copy, *stride, false)?);
                MatrixOperation::Load { place, stride, order: *order }
            }
            MatrixOperation::Store { place, stride, order, value } if matches!(place.root, Root::Workgroup(_)) => {
                let (place, stride) = (self.place(copy, place, span)?, self.small(copy, *stride, false)?);
                MatrixOperation::Store { place, stride, order: *order, value: self.expression(copy, *value)? }
            }
            operation => copy.matrix(self, operation, span)?,
        };
        let result = result.map(|local| copy.declare(self, local)).transpose()?;
        out.push(Statement { kind: StatementKind::Matrix { result, operation }, span });
        Ok(())
    }
}
