//! What statements ask of their operands.

use super::{BOOL, Checker};
use crate::ir::{
    Asynchronous, BindingKind, Expression, Handle, Local, Place, Root, Scalar, Span, Statement, StatementKind, Type,
};

impl Checker<'_> {
    pub(super) fn statement(&self, statement: &Statement) -> Result<(), (Span, String)> {
        let at = statement.span;
        let span_of = |value: Handle<Expression>| self.function.expressions[value].span;
        let expect = |value: Handle<Expression>, ty: &Type| {
            if self.of(value) == ty {
                Ok(())
            } else {
                Err((span_of(value), format!("expected {}, found {}", self.name(ty), self.name(self.of(value)))))
            }
        };
        let place = |place: &Place| self.place(place).map_err(|message| (at, message));
        match &statement.kind {
            StatementKind::Let { local, value } => {
                if let Some(value) = value {
                    expect(*value, &self.module.types[self.function.locals[*local].ty])?;
                }
                Ok(())
            }
            StatementKind::Store { place: target, value } => {
                match target.root {
                    Root::Binding(binding) if self.module.bindings[binding as usize].kind == BindingKind::Shared => {
                        let name = &self.module.bindings[binding as usize].name;
                        return Err((
                            at,
                            format!("`{name}` is a shared slice, and cannot be written; declare it as `&mut`"),
                        ));
                    }
                    root if self.is_atomic(root) => {
                        return Err((at, "an atomic is written with `.store(v)`".to_owned()));
                    }
                    _ => {}
                }
                expect(*value, &place(target)?)
            }
            StatementKind::If { condition, .. } | StatementKind::While { condition, .. } => expect(*condition, &BOOL),
            StatementKind::Switch { selector, .. } => match self.of(*selector) {
                Type::Enum(_) => Ok(()),
                Type::Scalar(scalar) if scalar.is_integer() && scalar.bits() <= 32 => Ok(()),
                ty => Err((span_of(*selector), format!("a match on {} is not part of the language", self.name(ty)))),
            },
            StatementKind::For { local, start, end, step, .. } => {
                let ty = &self.module.types[self.function.locals[*local].ty];
                if !matches!(ty, Type::Scalar(scalar) if scalar.is_integer() && scalar.bits() == 32)
                    && *ty != self.index()
                {
                    return Err((at, format!("a loop counts integers of 32 bits, not {}", self.name(ty))));
                }
                expect(*start, ty)?;
                expect(*end, ty)?;
                expect(*step, ty)
            }
            StatementKind::Return(Some(value)) => match self.function.result {
                Some(result) => expect(*value, &self.module.types[result]),
                None => Ok(()),
            },
            StatementKind::UniformLoad { result, place: source } => {
                if !matches!(source.root, Root::Workgroup(_)) {
                    return Err((at, "`workgroup_uniform_load` reads workgroup memory".to_owned()));
                }
                if self.is_atomic(source.root) {
                    return Err((at, "`workgroup_uniform_load` does not read atomics".to_owned()));
                }
                self.result(*result, &place(source)?, at)
            }
            StatementKind::Atomic { result, place: target, function, value, compare, .. } => {
                if !self.is_atomic(target.root) {
                    return Err((
                        at,
                        format!("`{}` is there for atomics alone: `&[Atomic<u32>]`, `&[Atomic<i32>]`", function.name()),
                    ));
                }
                let ty = place(target)?;
                if !ty.scalar().is_some_and(|scalar| function.takes(scalar)) {
                    let (name, found) = (function.name(), self.name(&ty));
                    return Err((at, format!("`{name}` belongs to atomics of integers, not of {found}")));
                }
                for operand in [value, compare].into_iter().flatten() {
                    expect(*operand, &ty)?;
                }
                result.map_or(Ok(()), |result| self.result(result, &ty, at))
            }
            StatementKind::Asynchronous(Asynchronous::Wait(pending)) => self.constant(*pending).map(|_| ()),
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }) => {
                if !matches!(to.root, Root::Workgroup(_)) || self.is_atomic(to.root) {
                    return Err((at, "`copy_async` writes to a workgroup array, which holds no atomics".to_owned()));
                }
                if !matches!(from.root, Root::Binding(_)) || self.is_atomic(from.root) {
                    return Err((at, "`copy_async` reads from a buffer, which holds no atomics".to_owned()));
                }
                let (target, source) = (place(to)?, place(from)?);
                if target != source {
                    let (target, source) = (self.name(&target), self.name(&source));
                    return Err((at, format!("`copy_async` copies {source} to {target}")));
                }
                let count = self.constant(*count)?;
                let size = match source {
                    Type::Scalar(scalar) | Type::Vector { scalar, .. } => {
                        u64::from(scalar.bytes().unwrap_or(0)) * u64::from(source.lanes().unwrap_or(1))
                    }
                    Type::Array { .. } | Type::Struct(_) | Type::Enum(_) | Type::Matrix(_) => 0,
                };
                if !matches!(size * u64::from(count), 4 | 8 | 16) {
                    let (name, bytes) = (self.name(&source), size * u64::from(count));
                    let found =
                        if size == 0 { format!("not {name}") } else { format!("{count} of {name} are {bytes} bytes") };
                    return Err((
                        at,
                        format!("`copy_async` moves 4, 8 or 16 bytes of scalars or vectors at once: {found}"),
                    ));
                }
                Ok(())
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                let ty = self.of(*value);
                let fits = ty.scalar().is_some_and(|scalar| function.takes(scalar));
                if !fits || (function.takes_bool() && ty.lanes() != Some(1)) {
                    let (name, takes, found) = (function.name(), function.words(), self.name(ty));
                    return Err((span_of(*value), format!("`{name}` takes {takes}, not {found}")));
                }
                if let Some(lane) = lane {
                    expect(*lane, &Type::Scalar(Scalar::U32))?;
                }
                self.result(*result, &function.result(ty), at)
            }
            StatementKind::Matrix { result, operation } => {
                match crate::verify::matrices::result(self.module, self.function, *result, operation) {
                    Err(message) => Err((at, message)),
                    Ok(()) => Ok(()),
                }
            }
            StatementKind::Tile(operation) => {
                crate::verify::tiles::operation(self.module, self.function, operation).map_err(|message| (at, message))
            }
            StatementKind::Report(report) => {
                for value in &report.values {
                    let ty = self.of(*value);
                    if !matches!(ty, Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_)) {
                        let found = self.name(ty);
                        return Err((
                            span_of(*value),
                            format!(
                                "a report shows numbers, bools, vectors of them and enums, not {found}: give its parts"
                            ),
                        ));
                    }
                }
                Ok(())
            }
            StatementKind::Evaluate(_)
            | StatementKind::Reporting(_)
            | StatementKind::Loop { .. }
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Return(None)
            | StatementKind::Barrier
            | StatementKind::Fence(_)
            | StatementKind::Asynchronous(Asynchronous::Commit) => Ok(()),
        }
    }

    /// A number that is an `Index` and known while compiling.
    fn constant(&self, value: Handle<Expression>) -> Result<u32, (Span, String)> {
        let known = crate::copies::number(self.module, self.function, value);
        known.filter(|_| *self.of(value) == Type::Scalar(Scalar::Index)).ok_or_else(|| {
            (
                self.function.expressions[value].span,
                "this number must be known while compiling: a literal or a constant".to_owned(),
            )
        })
    }

    fn result(&self, local: Handle<Local>, ty: &Type, at: Span) -> Result<(), (Span, String)> {
        let local = &self.function.locals[local];
        if self.module.types[local.ty] == *ty {
            return Ok(());
        }
        let stated = self.name(&self.module.types[local.ty]);
        Err((at, format!("`{}` is {stated}, and its value {}", local.name, self.name(ty))))
    }
}
