//! Replacing operations that the target lacks or means otherwise, as the [`super::table`] says.

use super::library::{self, name_for, with_number};
use super::source::{Library, Wanted, call};
use super::table::{self, Cheaper};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use crate::ir::{
    BinaryOperator, Block, Builtin, Expression, ExpressionKind, Function, Handle, Literal, MathFunction, Module,
    Precision, Root, Scalar, Span, Statement, StatementKind, Type, UnaryOperator,
};
use crate::names::FunctionNames;
use crate::target::{Profile, Target};

/// Replaces what is not native where there is what `profile` has, and names the functions that stand in.
pub fn legalise(module: &mut Module, profile: &Profile) -> Result<Vec<&'static str>, Diagnostics> {
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Meaning { module, profile, library: Library::new(profile.clone(), names) };
    rewrite_all(&mut pass)?;
    let stand_ins = pass.library.names();
    Ok(stand_ins)
}

struct Meaning<'a> {
    module: &'a mut Module,
    profile: &'a Profile,
    library: Library,
}

impl Meaning<'_> {
    fn shape(&self, ty: Handle<Type>) -> Option<(Scalar, u8)> {
        let ty = &self.module.types[ty];
        Some((ty.scalar()?, ty.lanes()?))
    }

    /// A call of a library function on copies of the operands.
    fn replace(
        &mut self,
        copy: &mut Copy<'_>,
        handle: Handle<Expression>,
        wanted: Wanted,
        operands: &[Handle<Expression>],
    ) -> Result<Handle<Expression>, Diagnostic> {
        let Expression { ty, span, .. } = copy.old.expressions[handle];
        let mut arguments = Vec::with_capacity(operands.len());
        for operand in operands {
            arguments.push(self.expression(copy, *operand)?);
        }
        let function = self.library.function(self.module, wanted).map_err(|message| Diagnostic::new(span, message))?;
        Ok(copy.add(call(function, arguments), ty, span))
    }

    /// The literals that a value is made of, if it is made of such alone.
    fn literals(function: &Function, value: Handle<Expression>) -> Option<Vec<Literal>> {
        match &function.expressions[value].kind {
            ExpressionKind::Literal(literal) => Some(vec![*literal]),
            ExpressionKind::Splat(value) => Self::literals(function, *value),
            ExpressionKind::Compose(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(Self::literals(function, *part)?);
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// How many lanes an expression has that makes halves of `f32`.
    fn narrows(&self, function: &Function, handle: Handle<Expression>) -> Option<u8> {
        let ExpressionKind::Convert(value) = function.expressions[handle].kind else { return None };
        let (from, to) = (self.shape(function.expressions[value].ty), self.shape(function.expressions[handle].ty));
        matches!((from, to), (Some((Scalar::F32, _)), Some((Scalar::F16, _)))).then_some(from?.1)
    }

    /// Whether the value is made of literals that are no NaN.
    fn is_number(function: &Function, value: Handle<Expression>) -> bool {
        Self::literals(function, value).is_some_and(|literals| {
            literals.iter().all(|literal| literal.as_float().is_some_and(|value| !value.is_nan()))
        })
    }

    /// Whether a division by the value has the same meaning everywhere.
    fn divides_plainly(function: &Function, value: Handle<Expression>) -> bool {
        Self::literals(function, value).is_some_and(|literals| {
            literals.iter().all(|literal| literal.as_integer().is_some_and(|value| value != 0 && value != -1))
        })
    }

    /// Whether a shift by the value has the same meaning everywhere: a small literal, or something masked by one.
    fn shifts_plainly(function: &Function, value: Handle<Expression>, bits: u32) -> bool {
        let small = |value| {
            Self::literals(function, value).is_some_and(|literals| {
                literals
                    .iter()
                    .all(|literal| literal.as_integer().is_some_and(|value| (0..i128::from(bits)).contains(&value)))
            })
        };
        match function.expressions[value].kind {
            ExpressionKind::Binary { operator: BinaryOperator::And, left, right } => small(left) || small(right),
            _ => small(value),
        }
    }

    /// Whether an operation is `-x` or `0 - x`.
    fn negates(function: &Function, kind: &ExpressionKind) -> bool {
        match kind {
            ExpressionKind::Unary { operator, .. } => *operator == UnaryOperator::Negate,
            ExpressionKind::Binary { operator: BinaryOperator::Subtract, left, .. } => Self::literals(function, *left)
                .is_some_and(|literals| literals.iter().all(|literal| literal.as_integer() == Some(0))),
            _ => false,
        }
    }

    /// A number of 32 bits, of which the target's compiler cannot tell how it was made: it may be another one where there is no workgroup.
    fn hidden(
        &mut self,
        copy: &mut Copy<'_>,
        number: Handle<Expression>,
        ty: Handle<Type>,
        span: Span,
    ) -> Handle<Expression> {
        let mut scalar = |scalar| self.module.intern(Type::Scalar(scalar));
        let (index, truth, word) = (scalar(Scalar::Index), scalar(Scalar::Bool), scalar(Scalar::I32));
        let left = copy.add(ExpressionKind::Builtin(Builtin::GroupCount), index, span);
        let right = copy.add(ExpressionKind::Literal(Literal::Index(0)), index, span);
        let none = copy.add(ExpressionKind::Binary { operator: BinaryOperator::Equal, left, right }, truth, span);
        let mut zero = copy.add(ExpressionKind::Convert(none), word, span);
        if ty != word {
            zero = copy.add(ExpressionKind::Splat(zero), ty, span);
        }
        let kind = ExpressionKind::Binary { operator: BinaryOperator::Xor, left: number, right: zero };
        copy.add(kind, ty, span)
    }

    /// The amount modulo the bits of what is shifted.
    fn masked(
        &mut self,
        copy: &mut Copy<'_>,
        amount: Handle<Expression>,
        bits: u32,
        span: Span,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let ty = copy.old.expressions[amount].ty;
        let literal = match copy.old.expressions[amount].kind {
            ExpressionKind::Literal(literal) => literal.as_integer(),
            _ => None,
        };
        if let Some(value) = literal {
            return Ok(copy.add(ExpressionKind::Literal(Literal::U32(value as u32 & (bits - 1))), ty, span));
        }
        let left = self.expression(copy, amount)?;
        let word = self.module.intern(Type::Scalar(Scalar::U32));
        let mut right = copy.add(ExpressionKind::Literal(Literal::U32(bits - 1)), word, span);
        if self.shape(ty).is_some_and(|(_, lanes)| lanes > 1) {
            right = copy.add(ExpressionKind::Splat(right), ty, span);
        }
        Ok(copy.add(ExpressionKind::Binary { operator: BinaryOperator::And, left, right }, ty, span))
    }
}

impl RewriteAll for Meaning<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Meaning<'_> {
    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        handle: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        if !table::negation(self.profile.target)
            && self.shape(*ty).is_some_and(|(scalar, _)| scalar == Scalar::I32)
            && Self::negates(old, kind)
        {
            let negative = copy.expression(self, handle)?;
            return Ok(self.hidden(copy, negative, *ty, *span));
        }
        match kind {
            ExpressionKind::Math { function, arguments } => {
                let shape = arguments.first().and_then(|first| self.shape(old.expressions[*first].ty));
                if let (Precision::Fast, Some((Scalar::F32, lanes))) = (old.precision, shape) {
                    match table::cheaper(self.profile.target, *function) {
                        Some(Cheaper::Native) => return copy.expression(self, handle),
                        Some(Cheaper::Library(name)) => {
                            let wanted =
                                Wanted { name, lanes, index: false, double: false, precision: Precision::Fast };
                            return self.replace(copy, handle, wanted, arguments);
                        }
                        None => {}
                    }
                }
                if let Some((scalar, lanes)) = shape
                    && !table::math(self.profile, *function, scalar)
                {
                    let number = arguments.last().is_some_and(|last| Self::is_number(old, *last));
                    let name = if number { with_number } else { name_for }(self.profile.target, *function, scalar);
                    // What takes a scalar may give a vector.
                    let lanes = self.shape(*ty).map_or(lanes, |(_, given)| lanes.max(given));
                    let (index, double) = (scalar == Scalar::Index, scalar == Scalar::F64);
                    let wanted = Wanted { name, lanes, index, double, precision: old.precision };
                    return self.replace(copy, handle, wanted, arguments);
                }
            }
            ExpressionKind::Binary { operator, left, right } => {
                let Some((scalar, lanes)) = self.shape(*ty) else { return copy.expression(self, handle) };
                match operator {
                    BinaryOperator::Divide | BinaryOperator::Remainder
                        if scalar.is_integer()
                            && !table::division(self.profile.target)
                            && !(Self::divides_plainly(old, *right)
                                && (*operator == BinaryOperator::Divide
                                    || !scalar.is_signed()
                                    || table::signed_remainder(self.profile.target))) =>
                    {
                        let plainly =
                            table::division_of_longs(self.profile.target) || Self::divides_plainly(old, *right);
                        let name = match (operator, scalar) {
                            (BinaryOperator::Divide, Scalar::I32) => "div_i32",
                            (BinaryOperator::Divide, Scalar::I64) if plainly => "div_i64",
                            (BinaryOperator::Divide, Scalar::I64) => "div_i64_by_digits",
                            (BinaryOperator::Divide, Scalar::U64) if plainly => "div_u64",
                            (BinaryOperator::Divide, Scalar::U64) => "div_u64_by_digits",
                            (BinaryOperator::Divide, _) => "div_u32",
                            (_, Scalar::I32) => "rem_i32",
                            (_, Scalar::I64) if plainly => "rem_i64",
                            (_, Scalar::I64) => "rem_i64_by_digits",
                            (_, Scalar::U64) if plainly => "rem_u64",
                            (_, Scalar::U64) => "rem_u64_by_digits",
                            _ => "rem_u32",
                        };
                        let index = scalar == Scalar::Index;
                        let wanted = Wanted { name, lanes, index, double: false, precision: Precision::Usual };
                        return self.replace(copy, handle, wanted, &[*left, *right]);
                    }
                    // Of a value by itself it is said where it is printed as WGSL.
                    BinaryOperator::Remainder
                        if self.profile.target != Target::Wgsl
                            || old.expressions[*left].kind != old.expressions[*right].kind =>
                    {
                        if let Some(name) = library::remainder(self.profile.target, scalar, old.precision) {
                            let double = scalar == Scalar::F64;
                            let wanted = Wanted { name, lanes, index: false, double, precision: old.precision };
                            return self.replace(copy, handle, wanted, &[*left, *right]);
                        }
                    }
                    BinaryOperator::Less
                    | BinaryOperator::LessEqual
                    | BinaryOperator::Greater
                    | BinaryOperator::GreaterEqual
                        if self.shape(old.expressions[*left].ty).is_some_and(|(scalar, _)| scalar == Scalar::I64)
                            && !table::order_of_longs(self.profile.target) =>
                    {
                        let (name, sides) = match operator {
                            BinaryOperator::Less => ("less_i64", [*left, *right]),
                            BinaryOperator::LessEqual => ("less_equal_i64", [*left, *right]),
                            BinaryOperator::Greater => ("less_i64", [*right, *left]),
                            _ => ("less_equal_i64", [*right, *left]),
                        };
                        let wanted = Wanted { name, lanes, index: false, double: false, precision: Precision::Usual };
                        return self.replace(copy, handle, wanted, &sides);
                    }
                    BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight
                        if !table::shift(self.profile.target) && !Self::shifts_plainly(old, *right, scalar.bits()) =>
                    {
                        let left = self.expression(copy, *left)?;
                        let right = self.masked(copy, *right, scalar.bits(), *span)?;
                        return Ok(copy.add(ExpressionKind::Binary { operator: *operator, left, right }, *ty, *span));
                    }
                    _ => {}
                }
            }
            ExpressionKind::Convert(value) => {
                let from = self.shape(old.expressions[*value].ty);
                if let Some(lanes) = self.narrows(old, handle)
                    && !table::narrowing(self.profile.target)
                {
                    let name = MathFunction::NearestHalf.name();
                    let wanted = Wanted { name, lanes, index: false, double: false, precision: Precision::Usual };
                    let half = self.replace(copy, *value, wanted, &[*value])?;
                    return Ok(copy.add(ExpressionKind::Convert(half), *ty, *span));
                }
                if let (Some((from @ (Scalar::F32 | Scalar::F64), _)), Some((to, lanes))) = (from, self.shape(*ty))
                    && to.is_integer()
                    && !table::float_to_integer(self.profile.target, from, to)
                {
                    let name = match to {
                        Scalar::I32 => "to_i32",
                        Scalar::I64 => "to_i64",
                        Scalar::U64 => "to_u64",
                        _ => "to_u32",
                    };
                    let (index, double) = (to == Scalar::Index, from == Scalar::F64);
                    let wanted = Wanted { name, lanes, index, double, precision: Precision::Usual };
                    return self.replace(copy, handle, wanted, &[*value]);
                }
            }
            _ => {}
        }
        copy.expression(self, handle)
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        if let StatementKind::Store { place, value } = &statement.kind
            && matches!(place.root, Root::Binding(_) | Root::Workgroup(_))
            && self.narrows(copy.old, *value).is_some()
            && table::narrowing_to_memory(self.profile.target)
        {
            let place = self.place(copy, place, statement.span)?;
            let value = copy.expression(self, *value)?;
            out.push(Statement { kind: StatementKind::Store { place, value }, span: statement.span });
            return Ok(());
        }
        copy.statement(self, statement, out)
    }
}
