//! Subgroup operations that a target lacks, or leaves open for lanes that do not exist: each becomes a call of a small function, made of those that it
//! has.
//!
//! What lanes exist is known without asking where every subgroup is full, which it is if the workgroup is a multiple of the largest subgroup; else
//! a ballot tells.

use std::collections::HashMap;

use super::source::call;
use super::table;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::builder::{FunctionBuilder, variable};
use crate::ir::rewrite::{Copy, Rewrite, RewriteAll, rewrite_all};

use crate::ir::{
    BinaryOperator as B, Builtin, Expression, ExpressionKind, Function, Handle, Literal, Module, Scalar, Statement,
    StatementKind, SubgroupFunction as S, SubgroupOperator, Type, statements,
};
use crate::names::FunctionNames;
use crate::target::{MOST_SUBGROUP, Target};

/// Replaces what is not native on `target`, and names it.
///
/// # Errors
/// An operation cannot be made, which the verifier rules out.
pub fn lower(module: &mut Module, workgroup_size: [u32; 3], target: Target) -> Result<Vec<&'static str>, Diagnostics> {
    // Rust's loops over the lanes give every operation its meaning.
    if target == Target::Cpu {
        return Ok(Vec::new());
    }
    if !has_operations(&module.entry) && !module.functions.iter().any(|(_, function)| has_operations(function)) {
        return Ok(Vec::new());
    }
    let largest = module.subgroup_size().or(target.subgroup_size()).unwrap_or(MOST_SUBGROUP);
    let full = workgroup_size.iter().product::<u32>().is_multiple_of(largest);
    let names = FunctionNames::new(module.functions.iter().map(|(_, function)| function));
    let mut pass = Groups { module, target, full, names, known: HashMap::new() };
    rewrite_all(&mut pass)?;
    let mut made: Vec<&'static str> = pass.known.keys().map(|(function, ..)| function.name()).collect();
    made.sort_unstable();
    made.dedup();
    Ok(made)
}

fn has_operations(function: &Function) -> bool {
    let mut found = false;
    statements(&function.body, &mut |statement| {
        found |= matches!(statement.kind, StatementKind::Subgroup { .. });
    });
    found
}

type Value = Handle<Expression>;

/// An operation on values of a type, with the lane if that is a literal.
type Wanted = (S, Handle<Type>, Option<u32>);

struct Groups<'a> {
    module: &'a mut Module,
    target: Target,
    /// Whether every subgroup has all its lanes.
    full: bool,
    names: FunctionNames,
    known: HashMap<Wanted, Handle<Function>>,
}

impl Groups<'_> {
    /// Whether the target's own operation has the IR's meaning.
    fn is_native(&self, function: S, lane: Option<u32>) -> bool {
        match function {
            S::Reduce(_) | S::Ballot | S::Any | S::All => true,
            S::InclusiveScan(operator) | S::ExclusiveScan(operator) => table::scan(self.target, operator),
            // Lane 0 exists in every subgroup.
            S::Broadcast | S::Shuffle if lane == Some(0) => true,
            // What a warp's shuffles do beyond its lanes is stated for distances and masks below 32.
            S::Broadcast | S::Shuffle | S::ShuffleXor | S::ShuffleUp | S::ShuffleDown => {
                self.target == Target::Cuda && self.full && lane.is_some_and(|lane| lane < 32)
            }
        }
    }

    /// The function that does the operation, made when first wanted.
    fn helper(&mut self, wanted: Wanted) -> Result<Handle<Function>, String> {
        if let Some(known) = self.known.get(&wanted) {
            return Ok(*known);
        }
        let (function, ty, literal) = wanted;
        let name = match literal {
            Some(literal) => format!("{}_{literal}", function.name()),
            None => function.name().to_owned(),
        };
        let name = self.names.fresh(name.trim_start_matches("subgroup_"));
        let full = self.full;
        let mut body = FunctionBuilder::new(self.module, &name);
        body.argument("value", ty);
        body.result(ty);
        if function.takes_lane() {
            if literal.is_none() {
                let word = body.module().intern(Type::Scalar(Scalar::U32));
                body.argument("lane", word);
            }
            moved(&mut body, function, literal, full)?;
        } else {
            scanned(&mut body, function)?;
        }
        let made = body.finish();
        self.known.insert(wanted, made);
        Ok(made)
    }
}

/// A number in every lane of a value's type.
fn number(body: &mut FunctionBuilder<'_>, like: Value, literal: Literal) -> Value {
    let lanes = body.type_of(like).lanes().unwrap_or(1);
    let value = body.literal(literal);
    if lanes > 1 { body.splat(value, lanes) } else { value }
}

fn word_of(body: &mut FunctionBuilder<'_>, builtin: Builtin) -> Value {
    if let (Builtin::SubgroupSize, Some(size)) = (builtin, body.module().subgroup_size()) {
        return body.u32(size);
    }
    let value = body.builtin(builtin);
    body.convert(value, Scalar::U32)
}

/// The value of another lane, if that exists; else one's own, or zero of a broadcast.
fn moved(body: &mut FunctionBuilder<'_>, function: S, literal: Option<u32>, full: bool) -> Result<(), String> {
    let given = |body: &mut FunctionBuilder<'_>| match literal {
        Some(literal) => body.u32(literal),
        None => body.get_argument(1),
    };
    let source = {
        let lane = given(body);
        match function {
            S::ShuffleXor | S::ShuffleUp | S::ShuffleDown => {
                let here = word_of(body, Builtin::SubgroupLane);
                let operator = match function {
                    S::ShuffleXor => B::Xor,
                    // Below lane 0 the difference wraps to what no lane is.
                    S::ShuffleUp => B::Subtract,
                    _ => B::Add,
                };
                body.binary(operator, here, lane)
            }
            _ => lane,
        }
    };
    let source = body.bind("source", source);
    let exists = if full {
        let (source, size) = (body.local(source), word_of(body, Builtin::SubgroupSize));
        body.binary(B::Less, source, size)
    } else {
        let all = body.literal(Literal::Bool(true));
        let here = body.subgroup("here", S::Ballot, all, None);
        let (base, index, five) = (body.local(here), body.local(source), body.u32(5));
        let index = body.binary(B::ShiftRight, index, five);
        let word = body.expression(ExpressionKind::Element { base, index }, Type::Scalar(Scalar::U32));
        let (bit, mask) = (body.local(source), body.u32(31));
        let bit = body.binary(B::And, bit, mask);
        let word = body.binary(B::ShiftRight, word, bit);
        let one = body.u32(1);
        let bit = body.binary(B::And, word, one);
        let zero = body.u32(0);
        body.binary(B::NotEqual, bit, zero)
    };
    let exists = body.bind("exists", exists);
    let value = body.get_argument(0);
    let other = match (function, literal) {
        (S::Broadcast | S::ShuffleXor | S::ShuffleUp | S::ShuffleDown, Some(literal)) => {
            let lane = body.u32(literal);
            body.subgroup("other", function, value, Some(lane))
        }
        _ => {
            // From one's own lane rather than from one that does not exist.
            let (condition, accept) = (body.local(exists), body.local(source));
            let here = if function == S::Broadcast { body.u32(0) } else { word_of(body, Builtin::SubgroupLane) };
            let lane = body.select(condition, accept, here);
            let shuffle = if function == S::Broadcast { S::Broadcast } else { S::Shuffle };
            body.subgroup("other", shuffle, value, Some(lane))
        }
    };
    let (condition, accept) = (body.local(exists), body.local(other));
    let reject = if function == S::Broadcast {
        let scalar = body.type_of(accept).scalar().ok_or("a broadcast of no number")?;
        let zero = SubgroupOperator::Add.neutral(scalar).ok_or("a broadcast of no number")?;
        number(body, accept, zero)
    } else {
        body.get_argument(0)
    };
    let result = body.select(condition, accept, reject);
    body.return_value(Some(result));
    Ok(())
}

/// A scan by shuffles: after the step of distance d, a lane holds what the 2 d lanes up to it hold together.
fn scanned(body: &mut FunctionBuilder<'_>, function: S) -> Result<(), String> {
    let operator = function.operator().ok_or("no scan")?;
    let value = body.get_argument(0);
    let ty = body.type_of(value).clone();
    let scalar = ty.scalar().ok_or("a scan of no number")?;
    let ty = body.module().intern(ty);
    let word = body.module().intern(Type::Scalar(Scalar::U32));
    let sum = body.variable("sum", ty, Some(value));
    let one = body.u32(1);
    let step = body.variable("distance", word, Some(one));
    // From so many lanes before, which is anything where there are not so many.
    let before = |body: &mut FunctionBuilder<'_>, distance: &dyn Fn(&mut FunctionBuilder<'_>) -> Value| {
        let (here, by) = (word_of(body, Builtin::SubgroupLane), distance(body));
        let behind = body.binary(B::GreaterEqual, here, by);
        let behind = body.bind("behind", behind);
        let (given, by) = (body.load(variable(sum)), distance(body));
        (behind, body.subgroup("other", S::ShuffleUp, given, Some(by)))
    };
    let condition = {
        let (step, size) = (body.load(variable(step)), word_of(body, Builtin::SubgroupSize));
        body.binary(B::Less, step, size)
    };
    let round = body.nested(|body| {
        let (behind, other) = before(body, &|body| body.load(variable(step)));
        let (left, right) = (body.local(other), body.load(variable(sum)));
        let together = match operator.of_two() {
            Ok(operator) => body.binary(operator, left, right),
            Err(function) => body.math(function, vec![left, right]),
        };
        let (condition, own) = (body.local(behind), body.load(variable(sum)));
        let next = body.select(condition, together, own);
        body.store(variable(sum), next);
        let (old, one) = (body.load(variable(step)), body.u32(1));
        let doubled = body.binary(B::ShiftLeft, old, one);
        body.store(variable(step), doubled);
    });
    body.statement(StatementKind::While { condition, body: round });
    let result = if let S::ExclusiveScan(_) = function {
        let (behind, other) = before(body, &|body| body.u32(1));
        let neutral = operator.neutral(scalar).ok_or("a scan of no number")?;
        let (condition, accept) = (body.local(behind), body.local(other));
        let reject = number(body, accept, neutral);
        body.select(condition, accept, reject)
    } else {
        body.load(variable(sum))
    };
    body.return_value(Some(result));
    Ok(())
}

impl RewriteAll for Groups<'_> {
    fn module(&mut self) -> &mut Module {
        self.module
    }
}

impl Rewrite for Groups<'_> {
    fn statement(
        &mut self,
        copy: &mut Copy<'_>,
        statement: &Statement,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let StatementKind::Subgroup { result, function, value, lane } = &statement.kind else {
            return copy.statement(self, statement, out);
        };
        let literal = lane.and_then(|lane| match copy.old.expressions[lane].kind {
            ExpressionKind::Literal(Literal::U32(lane)) => Some(lane),
            _ => None,
        });
        if self.is_native(*function, literal) {
            return copy.statement(self, statement, out);
        }
        let span = statement.span;
        let ty = copy.old.expressions[*value].ty;
        let mut arguments = vec![self.expression(copy, *value)?];
        if let (Some(lane), None) = (lane, literal) {
            arguments.push(self.expression(copy, *lane)?);
        }
        let helper = self
            .helper((*function, ty, literal))
            .map_err(|message| Diagnostic::new(span, format!("`{}` cannot be made: {message}", function.name())))?;
        let made = copy.add(call(helper, arguments), ty, span);
        let local = copy.declare(self, *result)?;
        out.push(Statement { kind: StatementKind::Let { local, value: Some(made) }, span });
        Ok(())
    }
}
