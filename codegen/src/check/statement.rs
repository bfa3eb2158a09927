//! Statements, over all invocations of a workgroup at once.

use std::rc::Rc;

use super::lanes::{Lanes, blend, divide, join, sorted, split};
use super::machine::{Frame, Leaving, Machine, Run, Stop};
use super::report::{Finding, Kind, Same};
use super::scalar;
use crate::ir::{Block, Expression, ExpressionKind, Handle, Local, Root, Scalar, Span, Statement, StatementKind};

/// What a loop asks before each round.
enum Rounds {
    While(Handle<Expression>),
    For { local: Handle<Local>, counter: Vec<u64>, end: Vec<u64>, step: Vec<u64>, scalar: Scalar },
    Always,
}

impl<'m> Machine<'m> {
    /// Runs a block; gives the lanes that get to its end.
    pub(super) fn block(&mut self, frame: &mut Frame<'m>, block: &'m Block, mut lanes: Lanes) -> Run<Lanes> {
        for statement in block {
            if lanes.is_empty() {
                break;
            }
            lanes = self.statement(frame, statement, lanes)?;
        }
        Ok(lanes)
    }

    fn statement(&mut self, frame: &mut Frame<'m>, statement: &'m Statement, lanes: Lanes) -> Run<Lanes> {
        self.here = self.at(statement.span);
        self.work += self.count as u64;
        match &statement.kind {
            StatementKind::Let { local, value: Some(value) } => {
                let words = self.root_value(frame, *value, &lanes)?;
                self.declare(frame, *local, words);
            }
            StatementKind::Let { local, value: None } => {
                let words = self.shape(frame.function.locals[*local].ty).count() * self.count;
                let zeros = self.take(words);
                self.declare(frame, *local, zeros);
                if self.options.uninitialised {
                    frame.unwritten[local.index()] = vec![true; words];
                }
            }
            StatementKind::Store { place, value } => {
                let words = self.root_value(frame, *value, &lanes)?;
                self.store(frame, place, &words, &lanes, self.here)?;
                self.give(words);
            }
            StatementKind::Evaluate(value) => {
                let words = self.root_value(frame, *value, &lanes)?;
                self.give(words);
            }
            StatementKind::If { condition, accept, reject, .. } => {
                let words = self.value(frame, *condition, &lanes)?;
                let (yes, no) = divide(&words, &lanes);
                self.give(words);
                let yes = self.block(frame, accept, yes)?;
                self.here = self.at(statement.span);
                let no = self.block(frame, reject, no)?;
                return Ok(join(&yes, &no));
            }
            StatementKind::Switch { selector, cases, default } => {
                let scalar = self.scalar(frame.function.expressions[*selector].ty);
                let words = self.value(frame, *selector, &lanes)?;
                let mut rest = lanes;
                let mut after: Lanes = Rc::default();
                for case in cases {
                    let (chosen, others) = split(&rest, |lane| {
                        let word = words[lane as usize];
                        case.values.iter().any(|value| word == scalar::canonical(scalar, u64::from(*value)))
                    });
                    rest = others;
                    let end = self.block(frame, &case.body, chosen)?;
                    after = join(&after, &end);
                }
                self.give(words);
                let end = self.block(frame, default, rest)?;
                return Ok(join(&after, &end));
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let scalar = self.scalar(frame.function.locals[*local].ty);
                let counter = self.value(frame, *start, &lanes)?;
                let end = self.value(frame, *end, &lanes)?;
                let mut step = self.value(frame, *step, &lanes)?;
                step.iter_mut().for_each(|step| *step = (*step).max(1));
                let rounds = Rounds::For { local: *local, counter, end, step, scalar };
                return self.rounds(frame, rounds, body, lanes, statement.span);
            }
            StatementKind::While { condition, body } => {
                return self.rounds(frame, Rounds::While(*condition), body, lanes, statement.span);
            }
            StatementKind::Loop { body } => {
                return self.rounds(frame, Rounds::Always, body, lanes, statement.span);
            }
            StatementKind::Break => {
                if let Some(leaving) = frame.loops.last_mut() {
                    leaving.broken.extend(lanes.iter());
                }
                return Ok(Rc::default());
            }
            StatementKind::Continue => {
                if let Some(leaving) = frame.loops.last_mut() {
                    leaving.continued.extend(lanes.iter());
                }
                return Ok(Rc::default());
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    let words = self.value(frame, *value, &lanes)?;
                    blend(&mut frame.result, &words, &lanes, self.count);
                    self.give(words);
                }
                return Ok(Rc::default());
            }
            StatementKind::Barrier => self.barrier("barrier", &lanes)?,
            StatementKind::UniformLoad { result, place } => {
                self.barrier("uniform_load", &lanes)?;
                let words = self.load(frame, place, &lanes, self.here)?;
                self.declare(frame, *result, words);
                self.barrier("uniform_load", &lanes)?;
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                let operands = [*value, *compare];
                let words = self.atomic(frame, place, *function, operands, *ordering, &lanes)?;
                match result {
                    Some(result) => self.declare(frame, *result, words),
                    None => self.give(words),
                }
            }
            StatementKind::Asynchronous(operation) => self.asynchronous(frame, operation, &lanes)?,
            StatementKind::Fence(_) => {}
            StatementKind::Subgroup { result, function, value, lane } => {
                self.all_here(function.name(), &lanes)?;
                let words = self.subgroup(frame, *function, *value, *lane, &lanes)?;
                self.declare(frame, *result, words);
            }
            StatementKind::Reporting(body) => {
                // What is done for reports leaves nothing out.
                self.block(frame, body, lanes.clone())?;
            }
            StatementKind::Report(report) => self.report(frame, report, statement.span, &lanes)?,
            StatementKind::Matrix { .. } | StatementKind::Tile(_) => {
                return Err(Stop::Broken("an operation on matrices or tiles was not spelled out".to_owned()));
            }
        }
        Ok(lanes)
    }

    fn rounds(
        &mut self,
        frame: &mut Frame<'m>,
        mut kind: Rounds,
        body: &'m Block,
        lanes: Lanes,
        span: Span,
    ) -> Run<Lanes> {
        let mut left: Vec<u32> = Vec::new();
        let mut active = lanes.clone();
        let mut rounds = 0;
        loop {
            self.here = self.at(span);
            let (stay, done) = match &mut kind {
                Rounds::Always => (active, Lanes::default()),
                Rounds::While(condition) => {
                    let words = self.value(frame, *condition, &active)?;
                    let divided = divide(&words, &active);
                    self.give(words);
                    divided
                }
                Rounds::For { local, counter, end, scalar, .. } => {
                    let signed = scalar.is_signed();
                    let divided = split(&active, |lane| {
                        let (at, end) = (counter[lane as usize], end[lane as usize]);
                        if signed { at.cast_signed() < end.cast_signed() } else { at < end }
                    });
                    let words = self.copy(counter);
                    self.declare(frame, *local, words);
                    divided
                }
            };
            left.extend(done.iter());
            let Some(first) = stay.first() else { break };
            if rounds >= self.options.most_rounds {
                let (at, invocation) = (self.at(span), self.invocation(*first));
                let at = self.module.locations.describe(Span(at));
                let same = Same { kind: Kind::Endless, span: span.0, other: 0, memory: 0 };
                self.findings.add(same, || Finding::Endless { rounds, invocation, at });
                return Err(Stop::Enough);
            }
            rounds += 1;
            self.work += self.count as u64;
            frame.loops.push(Leaving::default());
            let end = self.block(frame, body, stay)?;
            let leaving = frame.loops.pop().unwrap_or_default();
            left.extend(leaving.broken);
            active = if leaving.continued.is_empty() { end } else { join(&end, &Rc::new(sorted(leaving.continued))) };
            if let Rounds::For { counter, step, scalar, .. } = &mut kind {
                for (at, step) in counter.iter_mut().zip(step.iter()) {
                    // One of 64 bits may come to the last number, which is not below any end.
                    *at = if scalar.is_signed() {
                        at.cast_signed().saturating_add(step.cast_signed()).cast_unsigned()
                    } else {
                        at.saturating_add(*step)
                    };
                }
            }
        }
        if let Rounds::For { counter, end, step, .. } = kind {
            [counter, end, step].into_iter().for_each(|words| self.give(words));
        }
        Ok(if left.len() == lanes.len() { lanes } else { Rc::new(sorted(left)) })
    }

    /// All invocations of the workgroup must be here.
    pub(super) fn all_here(&mut self, operation: &str, lanes: &Lanes) -> Run<()> {
        if lanes.len() == self.count || !self.options.divergence {
            return Ok(());
        }
        let missing = (0..self.count as u32).find(|lane| lanes.binary_search(lane).is_err()).unwrap_or(0);
        let same = Same { kind: Kind::Divergent, span: self.here, other: 0, memory: 0 };
        let finding = Finding::Divergent {
            operation: operation.to_owned(),
            arrived: lanes.len() as u32,
            of: self.count as u32,
            missing: self.invocation(missing),
            at: self.module.locations.describe(Span(self.here)),
        };
        self.found(same, || finding)
    }

    fn barrier(&mut self, operation: &str, lanes: &Lanes) -> Run<()> {
        self.all_here(operation, lanes)?;
        self.now.stretch += 1;
        self.learned_lanes.clear();
        Ok(())
    }

    /// The value of an expression that is the root of a statement: a call may change what it is given by reference.
    fn root_value(&mut self, frame: &mut Frame<'m>, value: Handle<Expression>, lanes: &Lanes) -> Run<Vec<u64>> {
        let expression = &frame.function.expressions[value];
        let ExpressionKind::Call { function, arguments } = &expression.kind else {
            return self.value(frame, value, lanes);
        };
        let (result, changed) = self.call(frame, *function, arguments, lanes, expression.span)?;
        for (root, words) in changed {
            match root {
                Root::Local(local) => self.declare(frame, local, words),
                Root::Argument(index) => {
                    let old = std::mem::replace(&mut frame.arguments[index as usize], words);
                    self.give(old);
                }
                Root::Binding(_) | Root::Workgroup(_) => self.give(words),
            }
        }
        Ok(result)
    }
}
