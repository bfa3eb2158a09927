//! Indices of 64 bits: in such an instance [`Scalar::U64`] stands where the author wrote `usize`, so that arithmetic, comparisons, conversions and shifts are
//! those of 64 bits wherever they are. What stays is told here.
//!
//! * A grid has no more than 2^32 workgroups: what tells an invocation's place in it has 32 bits each, and becomes an index where it is read.
//!   [`Builtin::GlobalIndex`] and [`Builtin::GlobalId`] are computed from these in 64 bits.
//! * A specialisation constant, the number of parts of a matrix, and numbers of copies are [`Scalar::Index`] still; their values are converted.
//! * What is there for integers of 32 bits alone (bit counts, `rem_euclid`, `match`) is made of what there is.

use super::arena::{Arena, Handle};
use super::asynchronous::Asynchronous;
use super::builder::FunctionBuilder;
use super::constant;
use super::expression::{BinaryOperator as B, Builtin, CallArgument, Expression, ExpressionKind, Literal};
use super::math::MathFunction;
use super::module::{Function, Local, Module};
use super::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};
use super::span::Span;
use super::statement::{Block, Case, Statement, StatementKind};
use super::types::{IndexWidth, Scalar, Type};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hashing::HashMap;
use crate::names::FunctionNames;

/// Makes the indices of an instance 64 bits wide.
///
/// # Errors
/// The instance names something that it lacks.
pub(super) fn widen(module: &mut Module) -> Result<(), Diagnostics> {
    module.index = IndexWidth::Bits64;
    let old_types = module.types.clone();
    let types: Vec<_> = old_types.iter().map(|(ty, _)| widened_type(module, ty)).collect();
    let widened = |ty: Handle<Type>| types.get(ty.index()).copied().unwrap_or(ty);
    for (_, item) in module.structs.iter_mut() {
        item.fields.iter_mut().for_each(|(_, field)| *field = widened(*field));
    }
    module.workgroup.iter_mut().for_each(|(_, variable)| variable.element = widened(variable.element));
    for param in module.params.iter_mut().filter(|param| param.specialise.is_none()) {
        param.ty = widened(param.ty);
    }
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Widen { module, old_types, types, names, counts: HashMap::default() };
    rewrite_all(&mut pass)?;
    Ok(())
}

/// The type with `U64` for indices.
fn widened_type(module: &mut Module, ty: Handle<Type>) -> Handle<Type> {
    let wide = match module.types[ty].clone() {
        Type::Array { element, length } => Type::Array { element: widened_type(module, element), length },
        known if known.scalar() == Some(Scalar::Index) => known.with_scalar(Scalar::U64),
        known => known,
    };
    module.intern(wide)
}

struct Widen<'a> {
    module: &'a mut Module,
    old_types: Arena<Type>,
    /// For each old type, what stands for it.
    types: Vec<Handle<Type>>,
    names: FunctionNames,
    /// The bit counts of 64 bits, each made when first wanted.
    counts: HashMap<(MathFunction, u8), Handle<Function>>,
}

type Value = Handle<Expression>;

impl Widen<'_> {
    fn scalar(&mut self, scalar: Scalar) -> Handle<Type> {
        self.module.intern(Type::Scalar(scalar))
    }

    fn add(&mut self, copy: &mut Copy<'_>, kind: ExpressionKind, scalar: Scalar, span: Span) -> Value {
        let ty = self.scalar(scalar);
        copy.add(kind, ty, span)
    }

    fn index(&mut self, copy: &mut Copy<'_>, value: u32, span: Span) -> Value {
        self.add(copy, ExpressionKind::Literal(Literal::U64(value.into())), Scalar::U64, span)
    }

    fn binary(&mut self, copy: &mut Copy<'_>, operator: B, left: Value, right: Value, span: Span) -> Value {
        let ty = copy.new.expressions[left].ty;
        copy.add(ExpressionKind::Binary { operator, left, right }, ty, span)
    }

    /// Whether an expression of the old function is an index, or a vector of such.
    fn is_index(&self, function: &Function, value: Value) -> bool {
        self.old_types[function.expressions[value].ty].scalar() == Some(Scalar::Index)
    }

    /// A builtin, which has 32 bits, as an index; of a vector the lane, if one is meant.
    fn builtin(&mut self, copy: &mut Copy<'_>, builtin: Builtin, lane: Option<u32>, span: Span) -> Value {
        let own = if builtin.is_vector() { Type::vector(3, Scalar::Index) } else { Type::Scalar(Scalar::Index) };
        let ty = self.module.intern(own.clone());
        let mut value = copy.add(ExpressionKind::Builtin(builtin), ty, span);
        let mut wide = own.with_scalar(Scalar::U64);
        if let Some(index) = lane {
            value = self.add(copy, ExpressionKind::Member { base: value, index }, Scalar::Index, span);
            wide = Type::Scalar(Scalar::U64);
        }
        let ty = self.module.intern(wide);
        copy.add(ExpressionKind::Convert(value), ty, span)
    }

    /// The invocations of a workgroup along an axis.
    fn along(&self, axis: u32) -> u32 {
        self.module.workgroup_size.get(axis as usize).and_then(super::Size::literal).unwrap_or(1)
    }

    /// A builtin as the author knows it, in 64 bits.
    fn place_in_grid(&mut self, copy: &mut Copy<'_>, builtin: Builtin, lane: Option<u32>, span: Span) -> Value {
        let (group, local, size) = match (builtin, lane) {
            (Builtin::GlobalIndex, _) => {
                let invocations = (0..3).map(|axis| self.along(axis)).fold(1, u32::wrapping_mul);
                (Builtin::GroupIndex, Builtin::LocalIndex, self.index(copy, invocations, span))
            }
            (Builtin::GlobalId, Some(axis)) => {
                let along = self.along(axis);
                (Builtin::GroupId, Builtin::LocalId, self.index(copy, along, span))
            }
            (Builtin::GlobalId, None) => {
                let parts = [0, 1, 2].map(|axis| {
                    let along = self.along(axis);
                    self.index(copy, along, span)
                });
                let ty = self.module.intern(Type::vector(3, Scalar::U64));
                let size = copy.add(ExpressionKind::Compose(parts.to_vec()), ty, span);
                (Builtin::GroupId, Builtin::LocalId, size)
            }
            _ => return self.builtin(copy, builtin, lane, span),
        };
        let group = self.builtin(copy, group, lane, span);
        let before = self.binary(copy, B::Multiply, group, size, span);
        let local = self.builtin(copy, local, lane, span);
        self.binary(copy, B::Add, before, local, span)
    }

    /// A bit count of so many lanes of 64 bits, by those of their words.
    fn count(&mut self, function: MathFunction, lanes: u8) -> Handle<Function> {
        if let Some(known) = self.counts.get(&(function, lanes)) {
            return *known;
        }
        let suffix = if lanes == 1 { String::new() } else { format!("_vec{lanes}") };
        let name = self.names.fresh(&format!("{}_usize{suffix}", function.name()));
        let of = |scalar| if lanes == 1 { Type::Scalar(scalar) } else { Type::vector(lanes, scalar) };
        let (wide, word) = (self.module.intern(of(Scalar::U64)), self.module.intern(of(Scalar::U32)));
        let mut body = FunctionBuilder::new(self.module, &name);
        body.argument("x", wide);
        body.result(word);
        let number = |body: &mut FunctionBuilder<'_>, number: u32| {
            let value = body.u32(number);
            if lanes == 1 { value } else { body.splat(value, lanes) }
        };
        let half = |body: &mut FunctionBuilder<'_>, upper: bool| {
            let mut value = body.get_argument(0);
            if upper {
                let by = number(body, 32);
                value = body.binary(B::ShiftRight, value, by);
            }
            body.convert(value, Scalar::U32)
        };
        let counts = [true, false].map(|upper| {
            let word = half(&mut body, upper);
            let count = body.math(function, vec![word]);
            body.bind(if upper { "upper" } else { "lower" }, count)
        });
        let [upper, lower] = counts.map(|count| body.local(count));
        let result = if function == MathFunction::CountOnes {
            body.binary(B::Add, upper, lower)
        } else {
            // Where the word that is looked at first is zero, the count goes on in the other.
            let leading = function == MathFunction::LeadingZeros;
            let (first, second) = if leading { (upper, lower) } else { (lower, upper) };
            let (word, zero) = (half(&mut body, leading), number(&mut body, 0));
            let decides = body.binary(B::NotEqual, word, zero);
            let bits = number(&mut body, 32);
            let beyond = body.binary(B::Add, bits, second);
            body.select(decides, first, beyond)
        };
        body.return_value(Some(result));
        let made = body.finish();
        self.counts.insert((function, lanes), made);
        made
    }

    /// A number that must be known while compiling, which stays as it is.
    fn number(&mut self, copy: &mut Copy<'_>, value: Value) -> Result<Value, Diagnostic> {
        let span = copy.old.expressions[value].span;
        let old = Module { types: self.old_types.clone(), ..Module::default() };
        let known = constant::evaluate(&old, copy.old, value, &|_| None).and_then(Literal::as_integer);
        match known.and_then(|known| u32::try_from(known).ok()) {
            Some(known) => Ok(self.add(copy, ExpressionKind::Literal(Literal::Index(known)), Scalar::Index, span)),
            // Which the verifier tells the author.
            None => self.expression(copy, value),
        }
    }

    /// A choice by an index, of which cases know 32 bits: what does not fit is a number that no case has.
    fn switch(
        &mut self,
        copy: &mut Copy<'_>,
        (selector, cases, default): (Value, &[Case], &Block),
        span: Span,
        out: &mut Block,
    ) -> Result<(), Diagnostic> {
        let value = self.expression(copy, selector)?;
        let (wide, bool) = (self.scalar(Scalar::U64), self.scalar(Scalar::Bool));
        let local = Local { name: "selector".to_owned(), ty: wide, mutable: false, span };
        let local = copy.new.locals.add(local);
        out.push(Statement { kind: StatementKind::Let { local, value: Some(value) }, span });
        let read = |copy: &mut Copy<'_>| copy.add(ExpressionKind::Local(local), wide, span);
        let taken = |number: &u32| cases.iter().any(|case| case.values.contains(number));
        let none = (0..=u32::MAX).rev().find(|number| !taken(number)).unwrap_or(u32::MAX);
        let left = read(copy);
        let right = self.index(copy, u32::MAX, span);
        let fits = copy.add(ExpressionKind::Binary { operator: B::LessEqual, left, right }, bool, span);
        let low = read(copy);
        let accept = self.add(copy, ExpressionKind::Convert(low), Scalar::U32, span);
        let reject = self.add(copy, ExpressionKind::Literal(Literal::U32(none)), Scalar::U32, span);
        let kind = ExpressionKind::Select { condition: fits, accept, reject };
        let selector = self.add(copy, kind, Scalar::U32, span);
        let mut copied = Vec::with_capacity(cases.len());
        for case in cases {
            copied.push(Case { values: case.values.clone(), body: copy.block(self, &case.body)? });
        }
        let default = copy.block(self, default)?;
        out.push(Statement { kind: StatementKind::Switch { selector, cases: copied, default }, span });
        Ok(())
    }
}

impl RewriteAll for Widen<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Widen<'_> {
    fn ty(&mut self, ty: Handle<Type>) -> Result<Handle<Type>, Diagnostic> {
        Ok(self.types.get(ty.index()).copied().unwrap_or(ty))
    }

    fn expression(&mut self, copy: &mut Copy<'_>, handle: Value) -> Result<Value, Diagnostic> {
        let old: &Function = copy.old;
        let Expression { kind, ty, span } = &old.expressions[handle];
        let span = *span;
        match kind {
            ExpressionKind::Literal(Literal::Index(value)) => Ok(self.index(copy, *value, span)),
            ExpressionKind::Builtin(builtin) => Ok(self.place_in_grid(copy, *builtin, None, span)),
            ExpressionKind::Member { base, index } => match old.expressions[*base].kind {
                ExpressionKind::Builtin(builtin) => Ok(self.place_in_grid(copy, builtin, Some(*index), span)),
                _ => copy.expression(self, handle),
            },
            ExpressionKind::MatrixLength(_) | ExpressionKind::Param(_) if self.is_index(old, handle) => {
                let stays = match kind {
                    ExpressionKind::Param(param) => {
                        self.module.params.get(*param as usize).is_some_and(|param| param.specialise.is_some())
                    }
                    _ => true,
                };
                if !stays {
                    return copy.expression(self, handle);
                }
                let kind = match kind {
                    ExpressionKind::MatrixLength(ty) => ExpressionKind::MatrixLength(self.ty(*ty)?),
                    kind => kind.clone(),
                };
                let value = self.add(copy, kind, Scalar::Index, span);
                Ok(self.add(copy, ExpressionKind::Convert(value), Scalar::U64, span))
            }
            // `x as u64` of an index is x.
            ExpressionKind::Convert(value) if self.ty(*ty)? == self.ty(old.expressions[*value].ty)? => {
                self.expression(copy, *value)
            }
            ExpressionKind::Math { function: MathFunction::RemEuclid, arguments }
                if let ([left, right], true) = (arguments.as_slice(), self.is_index(old, handle)) =>
            {
                let (left, right) = (self.expression(copy, *left)?, self.expression(copy, *right)?);
                Ok(self.binary(copy, B::Remainder, left, right, span))
            }
            ExpressionKind::Math {
                function:
                    function @ (MathFunction::CountOnes | MathFunction::LeadingZeros | MathFunction::TrailingZeros),
                arguments,
            } if let ([value], true) =
                (arguments.as_slice(), arguments.iter().all(|value| self.is_index(old, *value))) =>
            {
                let lanes = self.old_types[*ty].lanes().unwrap_or(1);
                let value = self.expression(copy, *value)?;
                let function = self.count(*function, lanes);
                let arguments = vec![CallArgument::Value(value)];
                let ty = self.ty(*ty)?;
                Ok(copy.add(ExpressionKind::Call { function, arguments }, ty, span))
            }
            _ => copy.expression(self, handle),
        }
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Switch { selector, cases, default } if self.is_index(copy.old, *selector) => {
                self.switch(copy, (*selector, cases, default), span, out)
            }
            StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }) => {
                let count = self.number(copy, *count)?;
                let (to, from) = (copy.place(self, to, span)?, copy.place(self, from, span)?);
                out.push(Statement { kind: StatementKind::Asynchronous(Asynchronous::Copy { to, from, count }), span });
                Ok(())
            }
            StatementKind::Asynchronous(Asynchronous::Wait(pending)) => {
                let pending = self.number(copy, *pending)?;
                out.push(Statement { kind: StatementKind::Asynchronous(Asynchronous::Wait(pending)), span });
                Ok(())
            }
            _ => copy.statement(self, statement, out),
        }
    }
}
