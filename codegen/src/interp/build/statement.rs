//! Statements: control flow becomes instructions with bodies, under the mask of active lanes.

use super::arithmetic::{binary, extreme};
use super::place::{Walked, is_memory};
use super::{Builder, FIXED, Frame, Result, words_of};
use crate::interp::program::{AtomicOperation, Combine, Comparison, Constant, Held, Instruction, Register, Two, Wide};
use crate::ir::{
    AtomicFunction, Expression, ExpressionKind, Function, Handle, Literal, LogicalOperator, Scalar, Statement,
    StatementKind, SubgroupFunction, SubgroupOperator, UnaryOperator,
};

/// What is computed of a loop's counter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Sum,
    Most,
}

fn assign(to: &[Register], from: &[Register], out: &mut Vec<Instruction>) {
    out.extend(to.iter().zip(from).map(|(to, from)| Instruction::Assign { to: *to, from: *from }));
}

impl<'a> Builder<'a> {
    pub(super) fn block(
        &mut self,
        frame: &mut Frame<'_>,
        block: &[Statement],
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        let top = self.top;
        for statement in block {
            self.statement(frame, &statement.kind, out)?;
            if matches!(statement.kind, StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)) {
                break;
            }
        }
        self.top = top;
        Ok(())
    }

    pub(super) fn statement(
        &mut self,
        frame: &mut Frame<'_>,
        kind: &StatementKind,
        out: &mut Vec<Instruction>,
    ) -> Result<()> {
        // Locals stay after the statement, what it computes on the way does not.
        let mut keep = self.top;
        match kind {
            StatementKind::Let { local, value } => {
                let declared = &frame.function.locals[*local];
                let words = self.words(declared.ty)?;
                match value {
                    Some(value) if !declared.mutable => {
                        // Computed in place, so that it stays; or nothing to compute, if it is a constant or another value.
                        let registers = self.take(words);
                        keep = self.top;
                        let found = self.expression(frame, *value, Some(&registers), out)?;
                        // What lies above is given to the next statement.
                        let stays = found.registers.iter().all(|register| *register < keep || *register >= FIXED);
                        frame.locals[local.index()] = if found.stable && stays {
                            found.registers
                        } else {
                            self.copy(&found.registers, &registers, out);
                            registers
                        };
                    }
                    Some(value) => {
                        let registers = self.take(words);
                        keep = self.top;
                        let found = self.expression(frame, *value, None, out)?;
                        for (to, from) in registers.iter().zip(&found.registers) {
                            out.push(Instruction::Assign { to: *to, from: *from });
                        }
                        frame.locals[local.index()] = registers;
                    }
                    None => {
                        let registers = self.take(words);
                        keep = self.top;
                        // Unspecified until written; in range and without surprises all the same.
                        frame.locals[local.index()] = registers;
                    }
                }
            }
            StatementKind::Store { place, value } => {
                let function = frame.function;
                // Memory takes a float as the half that is nearest to it.
                let (value, held) = match function.expressions[*value].kind {
                    ExpressionKind::Convert(float)
                        if is_memory(place.root)
                            && self.scalar_of(function, *value)? == Scalar::F16
                            && self.scalar_of(function, float)? == Scalar::F32 =>
                    {
                        (float, Some(Held::Float))
                    }
                    _ => (*value, None),
                };
                let value = self.expression(frame, value, None, out)?;
                self.store(frame, place, &value.registers, held, out)?;
            }
            StatementKind::Evaluate(value) => {
                self.expression(frame, *value, None, out)?;
            }
            StatementKind::If { condition, accept, reject, constant } => {
                if let (true, Some(known)) = (*constant, self.known(frame.function, *condition)) {
                    self.block(frame, if known { accept } else { reject }, out)?;
                } else {
                    let condition = self.expression(frame, *condition, None, out)?.registers[0];
                    let (mut yes, mut no) = (Vec::new(), Vec::new());
                    self.block(frame, accept, &mut yes)?;
                    self.block(frame, reject, &mut no)?;
                    out.push(Instruction::If { condition, accept: yes, reject: no });
                }
            }
            StatementKind::Switch { selector, cases, default } => {
                let selector = self.expression(frame, *selector, None, out)?;
                let selector = self.keep_value(selector, out).registers[0];
                // Which lanes no case has taken; each lane runs one body.
                let mut tests = Vec::new();
                for case in cases {
                    let mut any = None;
                    for value in &case.values {
                        let literal = self.constant(Constant::Literal(*value));
                        let mut test = self.two(Two::Compare(Comparison::Equal), selector, literal, out);
                        if let Some(before) = any {
                            test = self.two(Two::Or, before, test, out);
                        }
                        any = Some(test);
                    }
                    if let Some(test) = any {
                        tests.push((test, &case.body));
                    }
                }
                let mut rest = Vec::new();
                self.block(frame, default, &mut rest)?;
                for (condition, body) in tests.into_iter().rev() {
                    let mut accept = Vec::new();
                    self.block(frame, body, &mut accept)?;
                    rest = vec![Instruction::If { condition, accept, reject: rest }];
                }
                out.extend(rest);
            }
            StatementKind::For { local, start, end, step, body, .. } => {
                let scalar = self.scalar_of(frame.function, *start)?;
                let counter = self.take(words_of(scalar));
                frame.locals[local.index()].clone_from(&counter);
                let (left, continued, condition) = (self.one(), self.one(), self.one());
                let start = self.expression(frame, *start, None, out)?.registers;
                assign(&counter, &start, out);
                let end = self.expression(frame, *end, None, out)?;
                let end = self.keep_value(end, out).registers;
                let step = self.expression(frame, *step, None, out)?.registers;
                let one: Vec<_> =
                    (0..words_of(scalar)).map(|word| self.constant(Constant::Literal(1 >> word))).collect();
                // A step of 0 is taken as 1.
                let step = self.counted(Count::Most, scalar, &step, &one, out);
                let mut test = Vec::new();
                self.compared(scalar, condition, &counter, &end, &mut test);
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                // If the step passes the largest number, the loop is at its end.
                let mut advance = Vec::new();
                let next = self.counted(Count::Sum, scalar, &counter, &step, &mut advance);
                let wrapped = self.one();
                self.compared(scalar, wrapped, &next, &counter, &mut advance);
                advance.push(Instruction::If {
                    condition: wrapped,
                    accept: vec![Instruction::Leave { into: Some(left) }],
                    reject: Vec::new(),
                });
                assign(&counter, &next, &mut advance);
                out.push(Instruction::Loop {
                    test,
                    condition: Some(condition),
                    body: inner,
                    step: advance,
                    left,
                    continued,
                });
            }
            StatementKind::While { condition, body } => {
                let (left, continued) = (self.one(), self.one());
                let mut test = Vec::new();
                let condition = self.expression(frame, *condition, None, &mut test)?.registers[0];
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                out.push(Instruction::Loop {
                    test,
                    condition: Some(condition),
                    body: inner,
                    step: Vec::new(),
                    left,
                    continued,
                });
            }
            StatementKind::Loop { body } => {
                let (left, continued) = (self.one(), self.one());
                frame.loops.push((left, continued));
                let mut inner = Vec::new();
                self.block(frame, body, &mut inner)?;
                frame.loops.pop();
                out.push(Instruction::Loop {
                    test: Vec::new(),
                    condition: None,
                    body: inner,
                    step: Vec::new(),
                    left,
                    continued,
                });
            }
            StatementKind::Break | StatementKind::Continue => {
                let (left, continued) =
                    *frame.loops.last().ok_or_else(|| self.error("`break` or `continue` outside of a loop"))?;
                let into = if matches!(kind, StatementKind::Break) { left } else { continued };
                out.push(Instruction::Leave { into: Some(into) });
            }
            StatementKind::Return(value) => {
                if let Some(value) = value {
                    let value = self.expression(frame, *value, None, out)?;
                    for (to, from) in frame.result.iter().zip(&value.registers) {
                        out.push(Instruction::Assign { to: *to, from: *from });
                    }
                }
                out.push(Instruction::Leave { into: frame.returned });
            }
            // A batch is one workgroup, which runs in step.
            StatementKind::Barrier => self.together = true,
            StatementKind::UniformLoad { result, place } => {
                self.together = true;
                let registers = self.take(self.words(frame.function.locals[*result].ty)?);
                keep = self.top;
                let loaded = self.load(frame, place, None, out)?;
                for (to, from) in registers.iter().zip(&loaded.registers) {
                    out.push(Instruction::Uniform { to: *to, from: *from });
                }
                frame.locals[result.index()] = registers;
            }
            StatementKind::Asynchronous(kind) => return Err(self.error(format!("a `{}` is left", kind.name()))),
            StatementKind::Fence(_) => {
                self.together = true;
                out.push(Instruction::Fence);
            }
            StatementKind::Atomic { result, place, function, value, compare, ordering } => {
                // Who waits for another workgroup must not be in step with it.
                self.together |= kind.orders_memory();
                let to = match result {
                    Some(result) => {
                        let registers = self.take(self.words(frame.function.locals[*result].ty)?);
                        keep = self.top;
                        frame.locals[result.index()].clone_from(&registers);
                        registers
                    }
                    None => Vec::new(),
                };
                let mut operand = |builder: &mut Self, value: &Option<Handle<Expression>>| match value {
                    Some(value) => Ok(builder.expression(frame, *value, None, out)?.registers),
                    None => Ok(vec![builder.constant(Constant::Literal(0)); 2]),
                };
                let compare = operand(self, compare)?;
                let value = operand(self, value)?;
                let (address, ty) = self.address(frame, place, out)?;
                let scalar = match ty {
                    Walked::Known(ty) => self.module.types[ty].scalar(),
                    _ => None,
                };
                let (signed, float) =
                    (scalar.is_some_and(Scalar::is_signed) && scalar != Some(Scalar::F32), scalar == Some(Scalar::F32));
                let operation = match function {
                    AtomicFunction::Load => AtomicOperation::Load,
                    AtomicFunction::Store => AtomicOperation::Store,
                    AtomicFunction::Add if float => AtomicOperation::AddFloat,
                    AtomicFunction::Add => AtomicOperation::Add,
                    AtomicFunction::Subtract => AtomicOperation::Subtract,
                    AtomicFunction::Min if signed => AtomicOperation::MinSigned,
                    AtomicFunction::Min => AtomicOperation::MinUnsigned,
                    AtomicFunction::Max if signed => AtomicOperation::MaxSigned,
                    AtomicFunction::Max => AtomicOperation::MaxUnsigned,
                    AtomicFunction::And => AtomicOperation::And,
                    AtomicFunction::Or => AtomicOperation::Or,
                    AtomicFunction::Xor => AtomicOperation::Xor,
                    AtomicFunction::Exchange => AtomicOperation::Exchange,
                    AtomicFunction::CompareExchange => AtomicOperation::CompareExchange,
                };
                let order = ordering.order;
                if scalar.is_some_and(Scalar::is_wide) {
                    let pair = |registers: &[crate::interp::program::Register]| [registers[0], registers[1]];
                    let (value, compare) = (pair(&value), pair(&compare));
                    let to = (!to.is_empty()).then(|| pair(&to));
                    out.push(Instruction::WideAtomic { operation, order, address, to, value, compare });
                } else {
                    let (to, value, compare) = (to.first().copied(), value[0], compare[0]);
                    out.push(Instruction::Atomic { operation, order, address, to, value, compare });
                }
            }
            StatementKind::Subgroup { result, function, value, lane } => {
                self.together = true;
                let scalar = self.scalar_of(frame.function, *value)?;
                let registers = self.take(self.words(frame.function.locals[*result].ty)?);
                keep = self.top;
                let value = self.expression(frame, *value, None, out)?;
                let lane = match lane {
                    Some(lane) => self.expression(frame, *lane, None, out)?.registers[0],
                    None => self.constant(Constant::Literal(0)),
                };
                let with = |operator: SubgroupOperator| match operator.of_two() {
                    Ok(operator) => binary(operator, scalar).0,
                    Err(function) => extreme(function, scalar),
                };
                let combine = match function {
                    SubgroupFunction::Reduce(operator) => Combine::Reduce(with(*operator)),
                    SubgroupFunction::InclusiveScan(operator) => Combine::Inclusive(with(*operator)),
                    SubgroupFunction::ExclusiveScan(operator) => {
                        let neutral = operator.neutral(scalar).ok_or_else(|| self.error("a scan of no number"))?;
                        Combine::Exclusive(with(*operator), neutral.bits() as u32)
                    }
                    SubgroupFunction::Broadcast => Combine::Broadcast,
                    SubgroupFunction::Shuffle => Combine::Lane,
                    SubgroupFunction::ShuffleXor => Combine::Xor,
                    SubgroupFunction::ShuffleUp => Combine::Up,
                    SubgroupFunction::ShuffleDown => Combine::Down,
                    SubgroupFunction::Any => Combine::Any,
                    SubgroupFunction::All => Combine::All,
                    SubgroupFunction::Ballot => Combine::Ballot(0),
                };
                for (index, to) in registers.iter().enumerate() {
                    // The words of a ballot come from one truth.
                    let (combine, from) = match combine {
                        Combine::Ballot(_) => (Combine::Ballot(index as u32), value.registers[0]),
                        combine => (combine, value.registers[index]),
                    };
                    out.push(Instruction::Subgroup { combine, to: *to, value: from, lane });
                }
                frame.locals[result.index()] = registers;
            }
            StatementKind::Matrix { .. } => return Err(self.error("a matrix is left")),
            StatementKind::Tile(operation) => return Err(self.error(format!("a `{}` is left", operation.name()))),
            StatementKind::Reporting(_) | StatementKind::Report(_) => return Err(self.error("a report is left")),
        }
        self.top = keep;
        Ok(())
    }

    /// The sum of two numbers that a loop counts, or the larger of them without a sign.
    fn counted(
        &mut self,
        count: Count,
        scalar: Scalar,
        a: &[Register],
        b: &[Register],
        out: &mut Vec<Instruction>,
    ) -> Vec<Register> {
        let to = self.take(words_of(scalar));
        out.push(if scalar.is_wide() {
            let operation = if count == Count::Sum { Wide::Add } else { Wide::MaxUnsigned };
            Instruction::Wide { operation, to: to.clone(), from: [a, b].concat() }
        } else {
            let operation = if count == Count::Sum { Two::Add } else { Two::MaxUnsigned };
            Instruction::Two { operation, to: to[0], a: a[0], b: b[0] }
        });
        to
    }

    /// `to = a < b`
    fn compared(&self, scalar: Scalar, to: Register, a: &[Register], b: &[Register], out: &mut Vec<Instruction>) {
        out.push(match scalar {
            scalar if scalar.is_wide() => {
                let operation = if scalar.is_signed() { Wide::LessSigned } else { Wide::LessUnsigned };
                Instruction::Wide { operation, to: vec![to], from: [a, b].concat() }
            }
            scalar => {
                let operation =
                    Two::Compare(if scalar.is_signed() { Comparison::LessSigned } else { Comparison::LessUnsigned });
                Instruction::Two { operation, to, a: a[0], b: b[0] }
            }
        });
    }

    /// The value of a condition made of constants.
    pub(super) fn known(&self, function: &Function, condition: Handle<Expression>) -> Option<bool> {
        match &function.expressions[condition].kind {
            ExpressionKind::TargetHas(feature) => Some(self.features.has(*feature)),
            ExpressionKind::Literal(Literal::Bool(value)) => Some(*value),
            ExpressionKind::Unary { operator: UnaryOperator::Not, value } => Some(!self.known(function, *value)?),
            ExpressionKind::Logical { operator, left, right } => {
                let (left, right) = (self.known(function, *left)?, self.known(function, *right)?);
                Some(match operator {
                    LogicalOperator::And => left && right,
                    LogicalOperator::Or => left || right,
                })
            }
            // Comparisons of constants are computed as any others.
            _ => None,
        }
    }
}
