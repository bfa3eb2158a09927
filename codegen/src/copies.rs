//! Asynchronous copies as the target has them: aligned ones where it copies by itself, loads and stores elsewhere.
//!
//! A piece of several elements is one access if both ends start at a multiple of it, which is proved from how the indices are made, or asked at run
//! time; the launch sees to the start of the slice. Else, and where a piece lies across an end, it goes element by element.

use std::collections::HashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, Asynchronous, BinaryOperator as B, Block, Expression, ExpressionKind, Function, Handle, Local,
    LogicalOperator, Module, Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type, constant,
    statements,
};
use crate::layout;

type Value = Handle<Expression>;

/// Replaces what the target has no form for. One that copies aligned pieces of 4, 8 and 16 bytes by itself is `native`, and says of which narrow types its
/// workgroup memory holds the same bytes as a buffer. Says whether there is any copy.
///
/// # Errors
/// The rewriting of a function fails, which the verifier rules out.
pub(crate) fn legalise(module: &mut Module, native: Option<&dyn Fn(Scalar) -> bool>) -> Result<bool, Diagnostics> {
    if !has_copies(module) {
        return Ok(false);
    }
    let index = module.intern(Type::Scalar(module.index.scalar()));
    let bool = module.intern(Type::Scalar(Scalar::Bool));
    let functions = std::mem::take(&mut module.functions);
    let entry = std::mem::take(&mut module.entry);
    let mut one = |function: &Function| {
        let mut pass = Copies { module, native, index, bool, origins: origins(function) };
        rewrite(&mut pass, function)
    };
    let mut rewritten = Arena::new();
    for (_, function) in functions.iter() {
        rewritten.add(one(function)?);
    }
    let entry = one(&entry)?;
    module.functions = rewritten;
    module.entry = entry;
    Ok(true)
}

/// Whether there are such copies, or anything that waits for them.
pub(crate) fn has_copies(module: &Module) -> bool {
    let mut any = false;
    for function in module.functions.iter().map(|(_, function)| function).chain([&module.entry]) {
        statements(&function.body, &mut |statement| any |= matches!(statement.kind, StatementKind::Asynchronous(_)));
    }
    any
}

/// The constant that an expression is, as a number.
pub(crate) fn number(module: &Module, function: &Function, value: Value) -> Option<u32> {
    constant::evaluate(module, function, value, &|_| None)?.as_integer()?.try_into().ok()
}

/// Whether pieces of such elements are accesses of vectors: 64-bit types have vectors on few devices.
pub(crate) const fn in_vectors(element: &Type) -> bool {
    matches!(element, Type::Scalar(scalar) if !scalar.is_wide())
}

/// Where the value of an immutable local comes from.
#[derive(Clone, Copy)]
enum Origin {
    Value(Value),
    Counter { start: Value, step: Value },
}

fn origins(function: &Function) -> HashMap<Handle<Local>, Origin> {
    let mut found = HashMap::new();
    statements(&function.body, &mut |statement| match &statement.kind {
        StatementKind::Let { local, value: Some(value) } if !function.locals[*local].mutable => {
            found.insert(*local, Origin::Value(*value));
        }
        StatementKind::For { local, start, step, .. } => {
            found.insert(*local, Origin::Counter { start: *start, step: *step });
        }
        _ => {}
    });
    found
}

struct Copies<'a> {
    module: &'a mut Module,
    native: Option<&'a dyn Fn(Scalar) -> bool>,
    index: Handle<Type>,
    bool: Handle<Type>,
    origins: HashMap<Handle<Local>, Origin>,
}

/// A copy whose indices are computed.
struct Piece<'p> {
    to: &'p Place,
    from: &'p Place,
    at: Handle<Local>,
    first: Handle<Local>,
    count: u32,
    element: Handle<Type>,
    /// Whether the target copies it by itself.
    by_itself: bool,
    span: Span,
}

/// A place's index, if it is an element of memory.
fn index_of(place: &Place, span: Span) -> Result<Value, Diagnostic> {
    match place.path.as_slice() {
        [Projection::Index(index)] => Ok(*index),
        _ => Err(Diagnostic::new(span, "an asynchronous copy of something that is no element")),
    }
}

impl Copies<'_> {
    /// Whether a value is a multiple of `unit`, a power of two, by how it is made; wrapping does not change that.
    fn is_multiple(&self, function: &Function, value: Value, unit: u32) -> bool {
        let of = |value: Value| self.is_multiple(function, value, unit);
        if let Some(known) = number(self.module, function, value) {
            return known.is_multiple_of(unit);
        }
        match &function.expressions[value].kind {
            ExpressionKind::Binary { operator: B::Add | B::Subtract, left, right } => of(*left) && of(*right),
            ExpressionKind::Binary { operator: B::Multiply, left, right } => of(*left) || of(*right),
            ExpressionKind::Local(local) => match self.origins.get(local) {
                Some(Origin::Value(value)) => of(*value),
                // A step of 0 is taken as 1, so that it must be known.
                Some(Origin::Counter { start, step }) => {
                    let step = number(self.module, function, *step);
                    of(*start) && step.is_some_and(|step| step != 0 && step.is_multiple_of(unit))
                }
                None => false,
            },
            _ => false,
        }
    }

    fn literal(&self, copy: &mut Copy<'_>, value: u32, span: Span) -> Value {
        copy.add(ExpressionKind::Literal(self.module.index.literal(value)), self.index, span)
    }

    fn binary(&self, copy: &mut Copy<'_>, operator: B, left: Value, right: Value, span: Span) -> Value {
        let ty = if operator.is_comparison() { self.bool } else { self.index };
        copy.add(ExpressionKind::Binary { operator, left, right }, ty, span)
    }

    fn local(&self, copy: &mut Copy<'_>, local: Handle<Local>, span: Span) -> Value {
        copy.add(ExpressionKind::Local(local), self.index, span)
    }

    /// The element `offset` behind an index.
    fn behind(&self, copy: &mut Copy<'_>, local: Handle<Local>, offset: u32, span: Span) -> Value {
        let index = self.local(copy, local, span);
        if offset == 0 {
            return index;
        }
        let offset = self.literal(copy, offset, span);
        self.binary(copy, B::Add, index, offset, span)
    }

    /// How many elements a piece of memory has.
    fn length(&self, copy: &mut Copy<'_>, root: Root, span: Span) -> Result<Value, Diagnostic> {
        let size = match root {
            Root::Binding(binding) => return Ok(copy.add(ExpressionKind::Length(binding), self.index, span)),
            Root::Workgroup(variable) => {
                let variable = &self.module.workgroup[variable];
                variable.exact.as_ref().unwrap_or(&variable.length).clone()
            }
            Root::Local(_) | Root::Argument(_) => {
                return Err(Diagnostic::new(span, "an asynchronous copy of private memory"));
            }
        };
        self.size(copy, &size, span)
    }

    fn size(&self, copy: &mut Copy<'_>, size: &crate::ir::Size, span: Span) -> Result<Value, Diagnostic> {
        use crate::ir::Size;
        match size {
            Size::Literal(value) => Ok(self.literal(copy, *value, span)),
            Size::Param(param) => {
                let ty = self.module.params[*param as usize].ty;
                let value = copy.add(ExpressionKind::Param(*param), ty, span);
                Ok(if ty == self.index { value } else { copy.add(ExpressionKind::Convert(value), self.index, span) })
            }
            Size::Binary(operator, left, right) => {
                let (left, right) = (self.size(copy, left, span)?, self.size(copy, right, span)?);
                Ok(self.binary(copy, operator.binary(), left, right, span))
            }
            Size::Generic(_) => Err(Diagnostic::new(span, "the length of a workgroup array is not known")),
        }
    }

    /// `index < length && length - index >= count`
    fn fits(
        &self,
        copy: &mut Copy<'_>,
        index: Handle<Local>,
        piece: &Piece<'_>,
        root: Root,
    ) -> Result<Value, Diagnostic> {
        let span = piece.span;
        let (left, length) = (self.local(copy, index, span), self.length(copy, root, span)?);
        let inside = self.binary(copy, B::Less, left, length, span);
        let (length, index) = (self.length(copy, root, span)?, self.local(copy, index, span));
        let rest = self.binary(copy, B::Subtract, length, index, span);
        let count = self.literal(copy, piece.count, span);
        let enough = self.binary(copy, B::GreaterEqual, rest, count, span);
        Ok(self.both(copy, inside, enough, span))
    }

    fn both(&self, copy: &mut Copy<'_>, left: Value, right: Value, span: Span) -> Value {
        copy.add(ExpressionKind::Logical { operator: LogicalOperator::And, left, right }, self.bool, span)
    }

    /// `(at | first) & (count - 1) == 0`, of the indices that are not known to be multiples.
    fn aligned(&self, copy: &mut Copy<'_>, indices: &[Handle<Local>], piece: &Piece<'_>) -> Option<Value> {
        let span = piece.span;
        let mut bits = None;
        for index in indices {
            let index = self.local(copy, *index, span);
            bits = Some(match bits {
                None => index,
                Some(bits) => self.binary(copy, B::Or, bits, index, span),
            });
        }
        let bits = bits?;
        let mask = self.literal(copy, piece.count - 1, span);
        let bits = self.binary(copy, B::And, bits, mask, span);
        let zero = self.literal(copy, 0, span);
        Some(self.binary(copy, B::Equal, bits, zero, span))
    }

    /// Element by element.
    fn elements(&self, copy: &mut Copy<'_>, piece: &Piece<'_>, out: &mut Block) {
        let span = piece.span;
        let by_itself = piece.by_itself && !piece.to.guarded && self.bytes(piece.element) >= 4;
        for offset in 0..piece.count {
            let (at, first) = (self.behind(copy, piece.at, offset, span), self.behind(copy, piece.first, offset, span));
            let place = |of: &Place, index: Value| Place { path: vec![Projection::Index(index)], ..of.clone() };
            let (to, from) = (place(piece.to, at), place(piece.from, first));
            let kind = if by_itself {
                let count = self.literal(copy, 1, span);
                StatementKind::Asynchronous(Asynchronous::Copy { to, from, count })
            } else {
                let value = copy.add(ExpressionKind::Load(from), piece.element, span);
                StatementKind::Store { place: to, value }
            };
            out.push(Statement { kind, span });
        }
    }

    /// All of it at once; both ends are aligned and, but for the read of a copy that goes on by itself, in range.
    fn whole(&mut self, copy: &mut Copy<'_>, piece: &Piece<'_>, out: &mut Block) {
        let span = piece.span;
        if piece.by_itself {
            let (at, first) = (self.local(copy, piece.at, span), self.local(copy, piece.first, span));
            let to = Place { path: vec![Projection::Index(at)], guarded: false, ..piece.to.clone() };
            let from = Place { path: vec![Projection::Index(first)], ..piece.from.clone() };
            let count = self.literal(copy, piece.count, span);
            let kind = StatementKind::Asynchronous(Asynchronous::Copy { to, from, count });
            return out.push(Statement { kind, span });
        }
        let lanes = piece.count.min(4);
        let vector = self.module.types[piece.element].scalar().unwrap_or(Scalar::U32);
        let vector = self.module.intern(Type::vector(lanes as u8, vector));
        for part in 0..piece.count / lanes {
            let mut place = |of: &Place, local: Handle<Local>| {
                let index = self.local(copy, local, span);
                let unit = self.literal(copy, lanes, span);
                let mut index = self.binary(copy, B::Divide, index, unit, span);
                if part > 0 {
                    let part = self.literal(copy, part, span);
                    index = self.binary(copy, B::Add, index, part, span);
                }
                let path = vec![Projection::Vector { index, lanes: lanes as u8 }];
                Place { root: of.root, path, guarded: false }
            };
            let (to, from) = (place(piece.to, piece.at), place(piece.from, piece.first));
            let value = copy.add(ExpressionKind::Load(from), vector, span);
            out.push(Statement { kind: StatementKind::Store { place: to, value }, span });
        }
    }

    /// Whether the target copies such elements by itself: bytes as they are, so that both memories must hold them alike.
    fn copies_by_itself(&self, element: Handle<Type>) -> bool {
        let scalar = self.module.types[element].scalar().filter(|scalar| scalar.is_narrow());
        self.native.is_some_and(|holds_alike| scalar.is_none_or(holds_alike))
    }

    fn bytes(&self, ty: Handle<Type>) -> u32 {
        layout::of(self.module, ty).map_or(0, |layout| layout.size)
    }
}

impl Rewrite for Copies<'_> {
    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let StatementKind::Asynchronous(kind) = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        let Asynchronous::Copy { to, from, count } = kind else {
            return if self.native.is_some() { copy.statement(self, statement, out) } else { Ok(()) };
        };
        let (old, span) = (copy.old, statement.span);
        let unknown = || Diagnostic::new(span, "the number of elements that are copied is no constant");
        let count = number(self.module, old, *count).ok_or_else(unknown)?;
        let (at, first) = (index_of(to, span)?, index_of(from, span)?);
        let known = [at, first].map(|index| self.is_multiple(old, index, count));
        let Root::Binding(binding) = from.root else {
            return Err(Diagnostic::new(span, "an asynchronous copy from something that is no buffer"));
        };
        let element = self.module.bindings[binding as usize].element;
        let mut bind = |copy: &mut Copy<'_>, name: &str, value: Value, out: &mut Block| {
            let value = copy.expression(self, value)?;
            let local = Local { name: name.to_owned(), ty: self.index, mutable: false, span };
            let local = copy.new.locals.add(local);
            out.push(Statement { kind: StatementKind::Let { local, value: Some(value) }, span });
            Ok::<_, Diagnostic>(local)
        };
        let (at, first) = (bind(copy, "at", at, out)?, bind(copy, "first", first, out)?);
        let by_itself = self.copies_by_itself(element);
        let piece = Piece { to, from, at, first, count, element, by_itself, span };
        if count == 1 || !(by_itself || (self.native.is_none() && in_vectors(&self.module.types[element]))) {
            self.elements(copy, &piece, out);
            return Ok(());
        }
        let mut conditions = Vec::new();
        let asked: Vec<Handle<Local>> =
            [at, first].into_iter().zip(known).filter(|(_, known)| !known).map(|(index, _)| index).collect();
        conditions.extend(self.aligned(copy, &asked, &piece));
        if from.guarded && !by_itself {
            conditions.push(self.fits(copy, first, &piece, from.root)?);
        }
        if to.guarded {
            conditions.push(self.fits(copy, at, &piece, to.root)?);
        }
        let mut accept = Block::new();
        self.whole(copy, &piece, &mut accept);
        let Some(condition) = conditions.into_iter().reduce(|left, right| self.both(copy, left, right, span)) else {
            out.append(&mut accept);
            return Ok(());
        };
        let mut reject = Block::new();
        self.elements(copy, &piece, &mut reject);
        out.push(Statement { kind: StatementKind::If { condition, accept, reject, constant: false }, span });
        Ok(())
    }
}
