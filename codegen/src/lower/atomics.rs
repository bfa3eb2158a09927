//! Atomics of `f32` where the target has those of integers alone: words with the same bits, and a sum by comparing and exchanging until nobody came
//! between.
//!
//! CUDA adds floats natively; the CPU emitter prints the same loop. Vulkan's extension for it is not asked for: it would make a variant of its own.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::variable;
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    AtomicFunction, BinaryOperator, BindingKind, Expression, ExpressionKind, Function, Handle, Local, Module, Order,
    Ordering, Place, Projection, Root, Scalar, Span, Statement, StatementKind, Type,
};
use crate::target::Target;

/// Replaces atomics of `f32`, and tells what was.
///
/// # Errors
/// An operation that such atomics do not have, which the verifier rules out.
pub fn lower(module: &mut Module, target: Target) -> Result<Option<&'static str>, Diagnostics> {
    if matches!(target, Target::Cuda | Target::Cpu) {
        return Ok(None);
    }
    let float = |module: &Module, ty: Handle<Type>| module.types[ty] == Type::Scalar(Scalar::F32);
    let bindings: Vec<bool> = module
        .bindings
        .iter()
        .map(|binding| binding.kind == BindingKind::Atomic && float(module, binding.element))
        .collect();
    let workgroup: Vec<bool> =
        module.workgroup.iter().map(|(_, variable)| variable.atomic && float(module, variable.element)).collect();
    if !bindings.iter().chain(&workgroup).any(|float| *float) {
        return Ok(None);
    }
    let word = module.intern(Type::Scalar(Scalar::U32));
    for (binding, _) in module.bindings.iter_mut().zip(&bindings).filter(|(_, float)| **float) {
        binding.element = word;
    }
    for ((_, variable), _) in module.workgroup.iter_mut().zip(&workgroup).filter(|(_, float)| **float) {
        variable.element = word;
    }
    let float = module.intern(Type::Scalar(Scalar::F32));
    let bool = module.intern(Type::Scalar(Scalar::Bool));
    let mut pass = Atomics { bindings, workgroup, word, float, bool };
    let handles: Vec<Handle<Function>> = module.functions.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        module.functions[handle] = rewrite(&mut pass, &module.functions[handle])?;
    }
    module.entry = rewrite(&mut pass, &module.entry)?;
    Ok(Some("atomics of f32"))
}

struct Atomics {
    bindings: Vec<bool>,
    workgroup: Vec<bool>,
    word: Handle<Type>,
    float: Handle<Type>,
    bool: Handle<Type>,
}

/// Adds to a copy, statement by statement.
struct Writer<'c, 'o> {
    copy: &'c mut Copy<'o>,
    span: Span,
}

impl Writer<'_, '_> {
    fn fresh(&mut self, name: &str, ty: Handle<Type>, mutable: bool) -> Handle<Local> {
        self.copy.new.locals.add(Local { name: name.to_owned(), ty, mutable, span: self.span })
    }

    fn add(&mut self, kind: ExpressionKind, ty: Handle<Type>) -> Handle<Expression> {
        self.copy.add(kind, ty, self.span)
    }

    fn statement(&self, kind: StatementKind) -> Statement {
        Statement { kind, span: self.span }
    }

    fn bind(
        &mut self,
        name: &str,
        ty: Handle<Type>,
        value: Handle<Expression>,
        out: &mut Vec<Statement>,
    ) -> Handle<Local> {
        let local = self.fresh(name, ty, false);
        out.push(self.statement(StatementKind::Let { local, value: Some(value) }));
        local
    }

    /// The place again, by the same indices.
    fn again(&mut self, place: &Place, indices: &[(Handle<Local>, Handle<Type>)]) -> Place {
        let mut indices = indices.iter();
        let path = place.path.iter().map(|projection| match (projection, indices.next()) {
            (Projection::Index(_), Some((local, ty))) => {
                Projection::Index(self.add(ExpressionKind::Local(*local), *ty))
            }
            (projection, _) => *projection,
        });
        Place { root: place.root, path: path.collect(), guarded: place.guarded }
    }
}

impl Atomics {
    fn is_float(&self, root: Root) -> bool {
        match root {
            Root::Binding(binding) => self.bindings.get(binding as usize).copied().unwrap_or(false),
            Root::Workgroup(variable) => self.workgroup.get(variable.index()).copied().unwrap_or(false),
            Root::Local(_) | Root::Argument(_) => false,
        }
    }

    /// Adds a value that `given` holds, and gives the bits from before in a mutable local.
    fn sum(
        &self,
        writer: &mut Writer<'_, '_>,
        place: &Place,
        given: Handle<Local>,
        ordering: Ordering,
        out: &mut Vec<Statement>,
    ) -> Handle<Local> {
        // Each index is computed once, since memory that it is read from may change meanwhile.
        let mut indices = Vec::new();
        for projection in &place.path {
            if let Projection::Index(index) = projection {
                let ty = writer.copy.new.expressions[*index].ty;
                indices.push((writer.bind("at", ty, *index, out), ty));
            }
        }
        let atomic = |place, result, function, value, compare, order| StatementKind::Atomic {
            result: Some(result),
            place,
            function,
            value,
            compare,
            ordering: Ordering { order, ..ordering },
        };
        let first = writer.fresh("first", self.word, false);
        let here = writer.again(place, &indices);
        out.push(writer.statement(atomic(here, first, AtomicFunction::Load, None, None, Order::Relaxed)));
        let first = writer.add(ExpressionKind::Local(first), self.word);
        let old = writer.fresh("old", self.word, true);
        out.push(writer.statement(StatementKind::Let { local: old, value: Some(first) }));

        let mut body = Vec::new();
        let load = |writer: &mut Writer<'_, '_>| writer.add(ExpressionKind::Load(variable(old)), self.word);
        let bits = load(writer);
        let left = writer.add(ExpressionKind::Bitcast(bits), self.float);
        let right = writer.add(ExpressionKind::Local(given), self.float);
        let operator = BinaryOperator::Add;
        let sum = writer.add(ExpressionKind::Binary { operator, left, right }, self.float);
        let sum = writer.add(ExpressionKind::Bitcast(sum), self.word);
        let compare = load(writer);
        let seen = writer.fresh("seen", self.word, false);
        let here = writer.again(place, &indices);
        let exchange = AtomicFunction::CompareExchange;
        body.push(writer.statement(atomic(here, seen, exchange, Some(sum), Some(compare), ordering.order)));
        let (left, right) = (writer.add(ExpressionKind::Local(seen), self.word), load(writer));
        let operator = BinaryOperator::Equal;
        let condition = writer.add(ExpressionKind::Binary { operator, left, right }, self.bool);
        let accept = vec![writer.statement(StatementKind::Break)];
        body.push(writer.statement(StatementKind::If { condition, accept, reject: Vec::new(), constant: false }));
        let value = writer.add(ExpressionKind::Local(seen), self.word);
        body.push(writer.statement(StatementKind::Store { place: variable(old), value }));
        out.push(writer.statement(StatementKind::Loop { body }));
        old
    }
}

impl Rewrite for Atomics {
    fn statement(
        &mut self,
        copy: &mut Copy<'_>,
        statement: &Statement,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let StatementKind::Atomic { result, place, function, value, ordering, .. } = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        if !self.is_float(place.root) {
            return copy.statement(self, statement, out);
        }
        let span = statement.span;
        let value = value.map(|value| self.expression(copy, value)).transpose()?;
        let place = copy.place(self, place, span)?;
        let result = result.map(|result| copy.declare(self, result)).transpose()?;
        let mut writer = Writer { copy, span };
        let bits = match (function, value) {
            (AtomicFunction::Add, Some(value)) => {
                let given = writer.bind("given", self.float, value, out);
                let old = self.sum(&mut writer, &place, given, *ordering, out);
                writer.add(ExpressionKind::Load(variable(old)), self.word)
            }
            (AtomicFunction::Load, None) | (AtomicFunction::Store | AtomicFunction::Exchange, Some(_)) => {
                let value = value.map(|value| writer.add(ExpressionKind::Bitcast(value), self.word));
                let wanted = *function != AtomicFunction::Store;
                let word = wanted.then(|| writer.fresh("bits", self.word, false));
                let (function, ordering) = (*function, *ordering);
                let kind = StatementKind::Atomic { result: word, place, function, value, compare: None, ordering };
                out.push(writer.statement(kind));
                let Some(word) = word else { return Ok(()) };
                writer.add(ExpressionKind::Local(word), self.word)
            }
            _ => return Err(Diagnostic::new(span, format!("atomics of f32 have no {function:?}"))),
        };
        if let Some(local) = result {
            let value = writer.add(ExpressionKind::Bitcast(bits), self.float);
            out.push(writer.statement(StatementKind::Let { local, value: Some(value) }));
        }
        Ok(())
    }
}
