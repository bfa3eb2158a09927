//! Settling what is known: `if const` is decided, loops over `unroll(..)` are written out, constants are computed.
//!
//! Constants that the author named stay as they are; those that come from an unrolled loop's counter are put in wherever they are used.
//!
//! For the CPU only short loops are written out ([`Unrolling::Short`]): rustc unrolls what is worth it, and would else read and compile every round. CUDA C has a word for the compiler, which writes long ones out
//! ([`Unrolling::Long`]): the text is read and worked over once then, and not once for each round.

use std::cell::RefCell;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::hashing::HashMap;
use crate::ir::rewrite::{Copy, Rewrite, rewrite};
use crate::ir::{
    Arena, Block, Expression, ExpressionKind, Function, Handle, Literal, Local, Module, Statement, StatementKind, Type,
    constant,
};
use crate::target::{Features, Target};

/// The most rounds of one unrolled loop.
const MAX_ROUNDS: u64 = 1024;
/// The most statements that a function may grow to.
const MAX_STATEMENTS: usize = 100_000;

/// The most statements that a loop is written out to by [`Unrolling::Short`] and by [`Unrolling::Long`].
const SHORT: u64 = 24;
const LONG: u64 = 1024;

/// Which loops over `unroll(..)` are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrolling {
    /// All.
    All,
    /// Those that come to [`SHORT`] statements at most, and those whose rounds differ in more than values; others become plain loops.
    Short,
    /// The same with [`LONG`]; others stay loops that the target's compiler unrolls.
    Long,
}

impl Unrolling {
    /// What is done for a target.
    pub const fn of(target: Target) -> Self {
        match target {
            Target::Cpu => Self::Short,
            Target::Cuda => Self::Long,
            Target::Wgsl | Target::Spirv => Self::All,
        }
    }

    /// The most statements that a loop is written out to.
    const fn most(self) -> Option<u64> {
        match self {
            Self::All => None,
            Self::Short => Some(SHORT),
            Self::Long => Some(LONG),
        }
    }
}

/// Settles every function of the module for a device with exactly `features`; gives whether every loop over `unroll(..)` was written out, as [`Unrolling::All`] does.
pub fn settle(module: &mut Module, features: Features, unrolling: Unrolling) -> Result<bool, Diagnostics> {
    let functions = std::mem::take(&mut module.functions);
    let entry = std::mem::take(&mut module.entry);
    let types = &module.types;
    let mut written_out = true;
    let mut one = |function: &Function| {
        let known = HashMap::default();
        let seen = RefCell::new(vec![(0, None); function.expressions.len()]);
        let mut pass = Settle { types, features, unrolling, known, seen, statements: 0, written_out: true };
        let settled = rewrite(&mut pass, function);
        written_out &= pass.written_out;
        settled
    };
    let mut settled = Arena::new();
    for (_, function) in functions.iter() {
        settled.add(one(function)?);
    }
    module.entry = one(&entry)?;
    module.functions = settled;
    Ok(written_out)
}

/// The features that `target::has` asks for anywhere.
pub fn asked(module: &Module) -> Features {
    let functions = module.functions.iter().map(|(_, function)| function).chain([&module.entry]);
    let kinds = functions.flat_map(|function| function.expressions.iter().map(|(_, expression)| &expression.kind));
    kinds.fold(Features::NONE, |asked, kind| match kind {
        ExpressionKind::TargetHas(feature) => asked.union(Features::of(&[*feature])),
        _ => asked,
    })
}

/// What is known of an immutable local.
#[derive(Clone, Copy)]
struct Known {
    literal: Literal,
    /// Whether it comes from an unrolled loop, so that it is put in where it is used.
    inline: bool,
}

struct Settle<'a> {
    types: &'a Arena<Type>,
    features: Features,
    unrolling: Unrolling,
    /// What is known of the locals in sight.
    known: HashMap<Handle<Local>, Known>,
    /// What [`Settle::literal`] gave for each expression, and for which of `statements`: what is known of locals changes between two alone.
    seen: RefCell<Vec<(usize, Option<Known>)>>,
    /// How many were begun.
    statements: usize,
    /// Whether no loop was left one that [`Unrolling::All`] writes out.
    written_out: bool,
}

impl Settle<'_> {
    /// What is known of an expression, which is asked for at each level of it.
    fn literal(&self, function: &Function, handle: Handle<Expression>) -> Option<Known> {
        let seen = self.seen.borrow()[handle.index()];
        if seen.0 == self.statements {
            return seen.1;
        }
        let found = self.evaluated(function, handle);
        self.seen.borrow_mut()[handle.index()] = (self.statements, found);
        found
    }

    fn evaluated(&self, function: &Function, handle: Handle<Expression>) -> Option<Known> {
        let expression = &function.expressions[handle];
        let of = |handle: Handle<Expression>| self.literal(function, handle);
        let known = |literal: Option<Literal>, inline: bool| literal.map(|literal| Known { literal, inline });
        match &expression.kind {
            // A value of an enum is a number with another type.
            ExpressionKind::Literal(literal) => matches!(self.types[expression.ty], Type::Scalar(_))
                .then_some(Known { literal: *literal, inline: false }),
            ExpressionKind::TargetHas(feature) => {
                Some(Known { literal: Literal::Bool(self.features.has(*feature)), inline: true })
            }
            ExpressionKind::Local(local) => self.known.get(local).copied(),
            ExpressionKind::Unary { operator, value } => {
                let value = of(*value)?;
                known(constant::unary(*operator, value.literal), value.inline)
            }
            ExpressionKind::Binary { operator, left, right } => {
                let (left, right) = (of(*left)?, of(*right)?);
                known(constant::binary(*operator, left.literal, right.literal), left.inline || right.inline)
            }
            ExpressionKind::Logical { operator, left, right } => {
                let left = of(*left)?;
                let Literal::Bool(first) = left.literal else { return None };
                if constant::logical(*operator, first, true) == constant::logical(*operator, first, false) {
                    let result = constant::logical(*operator, first, true);
                    return Some(Known { literal: Literal::Bool(result), inline: left.inline });
                }
                let right = of(*right)?;
                Some(Known { literal: right.literal, inline: left.inline || right.inline })
            }
            ExpressionKind::Convert(value) => {
                let value = of(*value)?;
                let Type::Scalar(scalar) = &self.types[expression.ty] else { return None };
                known(constant::convert(value.literal, *scalar), value.inline)
            }
            _ => None,
        }
    }

    /// How many statements so many rounds of a body come to when all loops in it are written out; `None` if that hangs on which round it is.
    fn written_out(&self, function: &Function, body: &Block, rounds: u64) -> Option<u64> {
        let mut size = 0_u64;
        for statement in body {
            let more = match &statement.kind {
                StatementKind::For { start, end, step, body, unroll: true, .. } => {
                    let [first, end, step] =
                        [*start, *end, *step].map(|bound| self.literal(function, bound)?.literal.as_integer());
                    self.written_out(function, body, self::rounds(first?, end?, step?.max(1)))?
                }
                StatementKind::If { condition, constant: true, .. } if self.literal(function, *condition).is_none() => {
                    return None;
                }
                kind => {
                    let mut inner = 1_u64;
                    for block in kind.blocks() {
                        inner = inner.saturating_add(self.written_out(function, block, 1)?);
                    }
                    inner
                }
            };
            size = size.saturating_add(more);
        }
        Some(size.saturating_mul(rounds))
    }

    /// Writes an unrolled loop out.
    fn unroll(
        &mut self,
        copy: &mut Copy<'_>,
        local: Handle<Local>,
        range: [Handle<Expression>; 3],
        body: &Block,
        out: &mut Block,
        span: crate::ir::Span,
    ) -> Result<(), Diagnostic> {
        let integer = |pass: &Self, handle| pass.literal(copy.old, handle).and_then(|known| known.literal.as_integer());
        let [Some(first), Some(end), Some(by)] = range.map(|bound| integer(self, bound)) else {
            return Err(Diagnostic::new(
                span,
                "the range of `unroll(..)` is made of constants alone: literals, consts, const generics and counters of outer unrolled loops",
            ));
        };
        let step = by.max(1);
        let rounds = rounds(first, end, step);
        if rounds > MAX_ROUNDS {
            return Err(Diagnostic::new(
                span,
                format!(
                    "`unroll(..)` would write the loop's body {rounds} times; {MAX_ROUNDS} is the most: leave `unroll` away"
                ),
            ));
        }
        if let Some(most) = self.unrolling.most()
            && by == step
            && self.written_out(copy.old, body, rounds).is_some_and(|size| size > most)
        {
            self.written_out = false;
            let body = body.clone();
            let kind =
                StatementKind::For { local, start: range[0], end: range[1], step: range[2], body, unroll: false };
            copy.statement(self, &Statement { kind, span }, out)?;
            if let Some(StatementKind::For { unroll, .. }) = out.last_mut().map(|last| &mut last.kind) {
                *unroll = self.unrolling == Unrolling::Long;
            }
            return Ok(());
        }
        let scalar = self.types[copy.old.locals[local].ty].scalar();
        for round in 0..rounds {
            let value = first + i128::from(round) * step;
            let literal = scalar
                .and_then(|scalar| Literal::integer(scalar, value as u64))
                .ok_or_else(|| Diagnostic::new(span, "a loop over `unroll(..)` counts integers"))?;
            self.known.insert(local, Known { literal, inline: true });
            for statement in body {
                self.statement(copy, statement, out)?;
            }
        }
        Ok(())
    }
}

/// How often a loop goes round.
fn rounds(first: i128, end: i128, step: i128) -> u64 {
    if end > first { ((end - first) as u64).div_ceil(step as u64) } else { 0 }
}

impl Rewrite for Settle<'_> {
    fn expression(
        &mut self,
        copy: &mut Copy<'_>,
        expression: Handle<Expression>,
    ) -> Result<Handle<Expression>, Diagnostic> {
        let old = &copy.old.expressions[expression];
        match self.literal(copy.old, expression) {
            Some(Known { literal, inline: true }) => {
                let (ty, span) = (old.ty, old.span);
                Ok(copy.add(ExpressionKind::Literal(literal), ty, span))
            }
            _ => copy.expression(self, expression),
        }
    }

    fn statement(&mut self, copy: &mut Copy<'_>, statement: &Statement, out: &mut Block) -> Result<(), Diagnostic> {
        if out.last().is_some_and(|statement| statement.kind.is_jump()) {
            return Ok(());
        }
        self.statements += 1;
        if self.statements > MAX_STATEMENTS {
            return Err(Diagnostic::new(
                statement.span,
                format!("unrolling makes `{}` longer than {MAX_STATEMENTS} statements", copy.old.name),
            ));
        }
        match &statement.kind {
            StatementKind::If { condition, accept, reject, constant } => {
                let value = match self.literal(copy.old, *condition) {
                    Some(Known { literal: Literal::Bool(value), .. }) => Some(value),
                    _ => None,
                };
                let Some(value) = value else {
                    if *constant {
                        return Err(Diagnostic::new(
                            statement.span,
                            "the condition of this `if const` is not known while building",
                        ));
                    }
                    return copy.statement(self, statement, out);
                };
                for inner in if value { accept } else { reject } {
                    self.statement(copy, inner, out)?;
                }
                Ok(())
            }
            StatementKind::For { local, start, end, step, body, unroll: true } => {
                // What a loop declares is nothing that is known where it is looked at in a later round of one around it.
                let known = self.known.clone();
                let unrolled = self.unroll(copy, *local, [*start, *end, *step], body, out, statement.span);
                self.known = known;
                unrolled
            }
            StatementKind::Let { local, value: Some(value) } if !copy.old.locals[*local].mutable => {
                match self.literal(copy.old, *value) {
                    Some(known) => {
                        self.known.insert(*local, known);
                        if known.inline {
                            return Ok(());
                        }
                    }
                    None => {
                        self.known.remove(local);
                    }
                }
                copy.statement(self, statement, out)
            }
            _ => copy.statement(self, statement, out),
        }
    }
}
