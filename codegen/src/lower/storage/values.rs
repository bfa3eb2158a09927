//! Values of narrow types as those of 32 bits: how they are rounded or wrapped, and what bits they have in memory.

use super::{Storage, in_memory, is_native};
use crate::diagnostic::Diagnostic;
use crate::ir::rewrite::{Copy, Rewrite};
use crate::ir::{BinaryOperator as B, Expression, ExpressionKind, Handle, Literal, MathFunction, Scalar, Span, Type};

impl Storage<'_> {
    pub(super) fn scalar(&mut self, scalar: Scalar) -> Handle<Type> {
        self.module.intern(Type::Scalar(scalar))
    }

    /// A function of the mathematical library on a value, lane by lane.
    pub(super) fn math(
        &mut self,
        copy: &mut Copy<'_>,
        function: MathFunction,
        value: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        let ty = match self.module.types[copy.new.expressions[value].ty] {
            Type::Vector { lanes, .. } => Type::vector(lanes, scalar),
            _ => Type::Scalar(scalar),
        };
        let ty = self.module.intern(ty);
        copy.add(ExpressionKind::Math { function, arguments: vec![value] }, ty, span)
    }

    /// What memory holds for a type of old.
    pub(super) fn held(&mut self, ty: Handle<Type>, scalar: Scalar) -> Handle<Type> {
        let ty = self.old_types[ty].with_scalar(in_memory(scalar, self.profile));
        self.module.intern(ty)
    }

    /// A value as memory holds it, widened.
    pub(super) fn widened_from_memory(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        scalar: Scalar,
        wide: Handle<Type>,
        span: Span,
    ) -> Handle<Expression> {
        if in_memory(scalar, self.profile) == scalar {
            return copy.add(ExpressionKind::Convert(value), wide, span);
        }
        let words = self.with(wide, Scalar::U32);
        let low = copy.add(ExpressionKind::Convert(value), words, span);
        self.decoded(copy, low, scalar, span)
    }

    /// A wide value as memory holds it.
    pub(super) fn narrowed_for_memory(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        let wide = copy.new.expressions[value].ty;
        if in_memory(scalar, self.profile) == scalar {
            let held = self.with(wide, scalar);
            return copy.add(ExpressionKind::Convert(value), held, span);
        }
        let low = self.encoded(copy, value, scalar, span);
        let held = self.with(wide, Scalar::U16);
        copy.add(ExpressionKind::Convert(low), held, span)
    }

    /// The shape of a type with another scalar.
    pub(super) fn with(&mut self, ty: Handle<Type>, scalar: Scalar) -> Handle<Type> {
        let ty = self.module.types[ty].with_scalar(scalar);
        self.module.intern(ty)
    }

    /// A shift of every lane by a number.
    pub(super) fn shifted(
        &mut self,
        copy: &mut Copy<'_>,
        operator: B,
        left: Handle<Expression>,
        by: u32,
        span: Span,
    ) -> Handle<Expression> {
        let ty = copy.new.expressions[left].ty;
        let words = self.with(ty, Scalar::U32);
        let right = self.constant(copy, Literal::U32(by), words, span);
        copy.add(ExpressionKind::Binary { operator, left, right }, ty, span)
    }

    /// A constant of that type, in every lane.
    pub(super) fn constant(
        &mut self,
        copy: &mut Copy<'_>,
        literal: Literal,
        ty: Handle<Type>,
        span: Span,
    ) -> Handle<Expression> {
        let scalar = self.scalar(literal.scalar());
        let value = copy.add(ExpressionKind::Literal(literal), scalar, span);
        match self.module.types[ty] {
            Type::Vector { .. } => copy.add(ExpressionKind::Splat(value), ty, span),
            _ => value,
        }
    }

    /// The bits of a wide value's narrow one, in the low bits of a word, the others zero; of a `bf16`, if the value is one.
    pub(super) fn encoded(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        match scalar {
            Scalar::F16 => self.math(copy, MathFunction::PackHalf, value, Scalar::U32, span),
            Scalar::BF16 => {
                let ty = copy.new.expressions[value].ty;
                let words = self.with(ty, Scalar::U32);
                let bits = copy.add(ExpressionKind::Bitcast(value), words, span);
                self.shifted(copy, B::ShiftRight, bits, 16, span)
            }
            _ => {
                let ty = copy.new.expressions[value].ty;
                let words = self.with(ty, Scalar::U32);
                let left = if ty == words { value } else { copy.add(ExpressionKind::Convert(value), words, span) };
                let mask = Literal::U32((1 << scalar.bits()) - 1);
                let right = self.constant(copy, mask, words, span);
                copy.add(ExpressionKind::Binary { operator: B::And, left, right }, words, span)
            }
        }
    }

    /// The wide value of the narrow one whose bits are the low ones of a word.
    pub(super) fn decoded(
        &mut self,
        copy: &mut Copy<'_>,
        bits: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        let words = copy.new.expressions[bits].ty;
        let wide = self.with(words, scalar.widened());
        match scalar {
            Scalar::F16 => self.math(copy, MathFunction::UnpackHalf, bits, Scalar::F32, span),
            Scalar::BF16 => {
                let high = self.shifted(copy, B::ShiftLeft, bits, 16, span);
                copy.add(ExpressionKind::Bitcast(high), wide, span)
            }
            scalar if scalar.is_signed() => {
                let unused = 32 - scalar.bits();
                let high = self.shifted(copy, B::ShiftLeft, bits, unused, span);
                let signed = copy.add(ExpressionKind::Convert(high), wide, span);
                self.shifted(copy, B::ShiftRight, signed, unused, span)
            }
            scalar => {
                let right = self.constant(copy, Literal::U32((1 << scalar.bits()) - 1), words, span);
                copy.add(ExpressionKind::Binary { operator: B::And, left: bits, right }, words, span)
            }
        }
    }

    /// A wide value that is to be a narrow one: rounded or wrapped.
    pub(super) fn narrowed(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        scalar: Scalar,
        span: Span,
    ) -> Handle<Expression> {
        match scalar {
            Scalar::F16 => self.math(copy, MathFunction::NearestHalf, value, Scalar::F32, span),
            Scalar::BF16 => self.math(copy, MathFunction::NearestBrain, value, Scalar::F32, span),
            scalar if scalar.is_signed() => {
                let unused = 32 - scalar.bits();
                let high = self.shifted(copy, B::ShiftLeft, value, unused, span);
                self.shifted(copy, B::ShiftRight, high, unused, span)
            }
            scalar => self.encoded(copy, value, scalar, span),
        }
    }

    /// The same bits as another narrow type, of wide values.
    pub(super) fn bitcast(
        &mut self,
        copy: &mut Copy<'_>,
        value: Handle<Expression>,
        from: Scalar,
        handle: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let Expression { ty, span, .. } = copy.old.expressions[handle];
        let mut inner = self.expression(copy, value)?;
        if is_native(from, self.profile) {
            let old = copy.old.expressions[value].ty;
            let wide = self.with(old, from.widened());
            inner = copy.add(ExpressionKind::Convert(inner), wide, span);
        }
        let Some(to) = self.old_types[ty].scalar() else { return Ok(inner) };
        let bits = self.encoded(copy, inner, from, span);
        let wide = self.decoded(copy, bits, to, span);
        Ok(if is_native(to, self.profile) { copy.add(ExpressionKind::Convert(wide), ty, span) } else { wide })
    }
}
