//! Loads and stores of bindings, by the form of their memory.

use super::{Accessor, Form, Storage};
use crate::diagnostic::Diagnostic;
use crate::ir::rewrite::{Copy, Rewrite};
use crate::ir::{
    BinaryOperator as B, Block, CallArgument, Expression, ExpressionKind, Handle, Place, Projection, Root, Scalar,
    Span, Statement, StatementKind, Type,
};

impl Storage<'_> {
    /// The index of the first step into a packed binding, as an index, and how many scalars it moves.
    pub(super) fn step(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        unit: u8,
        span: Span,
    ) -> Result<(Handle<Expression>, u8), Diagnostic> {
        let (index, lanes) = match place.path.first() {
            Some(Projection::Index(index)) => (*index, unit),
            Some(Projection::Vector { index, lanes }) => (*index, *lanes),
            _ => return Err(Diagnostic::new(span, "a slice is read and written element by element")),
        };
        let index = self.expression(copy, index)?;
        let wanted = self.scalar(self.module.index.scalar());
        if copy.new.expressions[index].ty == wanted {
            return Ok((index, lanes));
        }
        Ok((copy.add(ExpressionKind::Convert(index), wanted, span), lanes))
    }

    pub(super) fn load(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        handle: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let Expression { ty: old, span, .. } = copy.old.expressions[handle];
        let wide = self.types[&old];
        let binding = match (place.root, self.form(place.root)) {
            (Root::Binding(binding), _) => binding,
            (_, Form::Own) => 0,
            _ => return copy.expression(self, handle),
        };
        match self.form(place.root) {
            Form::Other => copy.expression(self, handle),
            Form::Own => {
                let Some(scalar) = self.replaced(old) else { return copy.expression(self, handle) };
                let place = copy.place(self, place, span)?;
                let held = self.held(old, scalar);
                let value = copy.add(ExpressionKind::Load(place), held, span);
                Ok(self.widened_from_memory(copy, value, scalar, wide, span))
            }
            Form::Packed { scalar, unit, .. } => {
                let (index, lanes) = self.step(copy, place, unit, span)?;
                let function =
                    self.accessor(Accessor { binding, scalar, lanes, unit, stores: false, guarded: place.guarded });
                let arguments = vec![CallArgument::Value(index)];
                let call = ExpressionKind::Call { function, arguments };
                let Some(lane) = place.path.get(1).copied() else { return Ok(copy.add(call, wide, span)) };
                // A lane of an element that is smaller than a word.
                let element = self.module.intern(Type::vector(unit, scalar.widened()));
                let base = copy.add(call, element, span);
                match lane {
                    Projection::Member(index) => Ok(copy.add(ExpressionKind::Member { base, index }, wide, span)),
                    Projection::Index(index) => {
                        let index = self.expression(copy, index)?;
                        Ok(copy.add(ExpressionKind::Element { base, index }, wide, span))
                    }
                    Projection::Vector { .. } => Err(Diagnostic::new(span, "a vector has no vectors of elements")),
                }
            }
            Form::Words { scalar, lanes } => self.load_words(copy, place, (binding, scalar, lanes), wide, span),
        }
    }

    /// An element, or a lane of it, of a slice of vectors that fill words.
    pub(super) fn load_words(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        (binding, scalar, lanes): (u32, Scalar, u8),
        wide: Handle<Type>,
        span: Span,
    ) -> Result<Handle<Expression>, Diagnostic> {
        // In a function, so that the index is computed once and each word is read once.
        let whole = |this: &mut Self, copy: &mut Copy<'_>| {
            let (index, _) = this.step(copy, place, lanes, span)?;
            let guarded = place.guarded;
            let function = this.accessor(Accessor { binding, scalar, lanes, unit: lanes, stores: false, guarded });
            let arguments = vec![CallArgument::Value(index)];
            let ty = this.module.intern(Type::vector(lanes, scalar.widened()));
            Ok::<_, Diagnostic>(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
        };
        match place.path.get(1).copied() {
            None => whole(self, copy),
            Some(Projection::Member(lane)) => {
                let first = lane * scalar.bits();
                let mut place = copy.place(self, place, span)?;
                place.path.truncate(1);
                let word = self.scalar(Scalar::U32);
                if scalar.bits() * u32::from(lanes) > 32 {
                    place.path.push(Projection::Member(first / 32));
                }
                let mut bits = copy.add(ExpressionKind::Load(place), word, span);
                if !first.is_multiple_of(32) {
                    bits = self.shifted(copy, B::ShiftRight, bits, first % 32, span);
                }
                Ok(self.decoded(copy, bits, scalar, span))
            }
            Some(Projection::Index(index)) => {
                let base = whole(self, copy)?;
                let index = self.expression(copy, index)?;
                Ok(copy.add(ExpressionKind::Element { base, index }, wide, span))
            }
            Some(Projection::Vector { .. }) => Err(Diagnostic::new(span, "a vector has no vectors of elements")),
        }
    }

    pub(super) fn store(
        &mut self,
        copy: &mut Copy<'_>,
        place: &Place,
        value: Handle<Expression>,
        span: Span,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let binding = if let Root::Binding(binding) = place.root { binding } else { 0 };
        let original = value;
        // Rounding and wrapping happen when it is written; `f16::from_f32(x)` need not do it before. A `bf16` is rounded by integers, which what is one already is spared, and which SPIR-V's own
        // conversion would not do: drivers cut.
        let value = match copy.old.expressions[value].kind {
            ExpressionKind::Convert(inner)
                if self.replaced(copy.old.expressions[value].ty).is_some_and(|scalar| scalar != Scalar::BF16) =>
            {
                inner
            }
            _ => value,
        };
        let kind = match self.form(place.root) {
            Form::Other => return Err(Diagnostic::new(span, "this binding holds nothing narrow")),
            Form::Own => {
                let scalar = self.old_types[copy.old.expressions[original].ty].scalar().unwrap_or(Scalar::F16);
                let value = self.expression(copy, value)?;
                let value = self.narrowed_for_memory(copy, value, scalar, span);
                StatementKind::Store { place: copy.place(self, place, span)?, value }
            }
            Form::Packed { .. } | Form::Words { .. } if place.path.len() > 1 => {
                return Err(Diagnostic::new(
                    span,
                    format!(
                        "`{}` holds vectors of {}: where a device has no such memory access, an element is written as a whole, not lane by lane",
                        self.module.bindings[binding as usize].name,
                        self.old_types[copy.old.expressions[original].ty].scalar().unwrap_or(Scalar::F16).rust_name()
                    ),
                ));
            }
            Form::Packed { scalar, unit, .. } => {
                let (index, lanes) = self.step(copy, place, unit, span)?;
                let value = self.expression(copy, value)?;
                let guarded = place.guarded;
                let function = self.accessor(Accessor { binding, scalar, lanes, unit, stores: true, guarded });
                let arguments = vec![CallArgument::Value(index), CallArgument::Value(value)];
                let ty = copy.new.expressions[value].ty;
                StatementKind::Evaluate(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
            }
            Form::Words { scalar, lanes } => {
                let value = self.expression(copy, value)?;
                let ty = copy.new.expressions[value].ty;
                let name = if scalar == Scalar::F16 { "halves" } else { "lanes" };
                let name = copy.new.locals.add(crate::ir::Local { name: name.to_owned(), ty, mutable: false, span });
                out.push(Statement { kind: StatementKind::Let { local: name, value: Some(value) }, span });
                let word = self.scalar(Scalar::U32);
                let wide = self.scalar(scalar.widened());
                let per_word = 32 / scalar.bits();
                let mut words = Vec::new();
                for first in (0..u32::from(lanes)).step_by(per_word as usize) {
                    let mut whole: Option<Handle<Expression>> = None;
                    for at in 0..per_word {
                        let base = copy.add(ExpressionKind::Local(name), ty, span);
                        let lane = copy.add(ExpressionKind::Member { base, index: first + at }, wide, span);
                        let bits = self.encoded(copy, lane, scalar, span);
                        whole = Some(match whole {
                            None => bits,
                            Some(left) => {
                                let right = self.shifted(copy, B::ShiftLeft, bits, at * scalar.bits(), span);
                                copy.add(ExpressionKind::Binary { operator: B::Or, left, right }, word, span)
                            }
                        });
                    }
                    words.extend(whole);
                }
                let value = match (words.pop(), words.pop()) {
                    (Some(only), None) => only,
                    (Some(second), Some(first)) => {
                        let ty = self.module.intern(Type::vector(2, Scalar::U32));
                        copy.add(ExpressionKind::Compose(vec![first, second]), ty, span)
                    }
                    (None, _) => return Err(Diagnostic::new(span, "a vector has lanes")),
                };
                StatementKind::Store { place: copy.place(self, place, span)?, value }
            }
        };
        out.push(Statement { kind, span });
        Ok(())
    }
}
