//! What a program means: a walk over its syntax, which shares nothing with the compiler.
//!
//! A workgroup runs in lockstep, each statement for all invocations that get there. Integers are exact; floats are intervals ([`crate::interval`]), and a program in which a
//! rounding decides what is done says nothing ([`Reject`]).

mod elementary;
mod expression;
mod scalar;

use trefoil_codegen::ir::{AtomicFunction, BinaryOperator, MathFunction, Scalar, SubgroupFunction};

use crate::interval::Reject;
use crate::syntax::{Block, Expr, Memory, Place, Program, Root, Stmt};
use crate::value::Value;

/// Steps after which a program is taken to be too long.
const MOST_STEPS: u64 = 4_000_000;

/// What the buffers hold after a program has run, with subgroups of a size.
///
/// # Errors
/// Why nothing can be said.
pub fn outcome(program: &Program, subgroup: u32) -> Result<Vec<Vec<Value>>, Reject> {
    let mut machine = Machine {
        program,
        subgroup,
        buffers: program.buffers.iter().map(|buffer| buffer.data.clone()).collect(),
        shared: Vec::new(),
        vars: Vec::new(),
        group: 0,
        steps: 0,
    };
    let mut initial = vec![None; program.vars.len()];
    for param in &program.params {
        initial[param.var] = Some(param.value.clone());
    }
    for group in 0..program.groups {
        machine.group = group;
        machine.shared = program
            .shared
            .iter()
            .map(|shared| vec![Value::zero(&shared.element, &program.structs); shared.length as usize])
            .collect();
        machine.vars = vec![initial.clone(); program.workgroup as usize];
        let lanes = (0..program.workgroup as usize).collect();
        machine.block(&program.body, lanes, &mut Exits::default())?;
    }
    Ok(machine.buffers)
}

/// Who left a block, and how.
#[derive(Default)]
struct Exits {
    breaks: Vec<usize>,
    continues: Vec<usize>,
    /// What a function gives; functions run for one invocation at a time.
    returned: Option<Value>,
}

struct Machine<'p> {
    program: &'p Program,
    subgroup: u32,
    buffers: Vec<Vec<Value>>,
    shared: Vec<Vec<Value>>,
    /// The variables of each invocation.
    vars: Vec<Vec<Option<Value>>>,
    group: u32,
    steps: u64,
}

fn is_true(value: &Value) -> Result<bool, Reject> {
    Ok(scalar::word(value)? != 0)
}

impl Machine<'_> {
    fn step(&mut self, lanes: usize) -> Result<(), Reject> {
        self.steps += 1 + lanes as u64;
        if self.steps > MOST_STEPS { Err("it takes too long") } else { Ok(()) }
    }

    /// Runs a block, and gives the invocations that get to its end.
    fn block(&mut self, block: &Block, mut lanes: Vec<usize>, exits: &mut Exits) -> Result<Vec<usize>, Reject> {
        for statement in block {
            if lanes.is_empty() {
                break;
            }
            lanes = self.statement(statement, lanes, exits)?;
        }
        Ok(lanes)
    }

    /// The invocations for which a condition holds, and those for which it does not.
    fn parted(&mut self, condition: &Expr, lanes: Vec<usize>) -> Result<(Vec<usize>, Vec<usize>), Reject> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for lane in lanes {
            let to = if is_true(&self.expr(lane, condition)?)? { &mut yes } else { &mut no };
            to.push(lane);
        }
        Ok((yes, no))
    }

    /// One round of a loop: gives those who go on to the next.
    fn round(
        &mut self,
        body: &Block,
        lanes: Vec<usize>,
        left: &mut Vec<usize>,
        exits: &mut Exits,
    ) -> Result<Vec<usize>, Reject> {
        let mut own = Exits::default();
        let mut rest = self.block(body, lanes, &mut own)?;
        rest.extend(own.continues);
        rest.sort_unstable();
        left.extend(own.breaks);
        exits.returned = exits.returned.take().or(own.returned);
        Ok(rest)
    }

    fn statement(&mut self, statement: &Stmt, lanes: Vec<usize>, exits: &mut Exits) -> Result<Vec<usize>, Reject> {
        self.step(lanes.len())?;
        match statement {
            Stmt::Let { var, value, .. } => {
                for lane in &lanes {
                    self.vars[*lane][*var] = Some(self.expr(*lane, value)?);
                }
            }
            Stmt::Assign(place, operator, value) => {
                for lane in &lanes {
                    self.assign(*lane, place, *operator, value)?;
                }
            }
            Stmt::SetSeveral(memory, index, value) => {
                for lane in &lanes {
                    let (index, count) = (self.index(*lane, index)?, u64::from(value.ty.lanes()));
                    let Value::Parts(parts) = self.expr(*lane, value)? else { return Err("no vector is written") };
                    let to = self.slice(*lane, *memory)?;
                    // If one of its lanes is past the end, none is written.
                    if (index + 1) * count <= to.len() as u64 {
                        let first = (index * count) as usize;
                        to[first..first + parts.len()].clone_from_slice(&parts);
                    }
                }
            }
            Stmt::Evaluate(value) => {
                for lane in &lanes {
                    self.expr(*lane, value)?;
                }
            }
            Stmt::If(condition, accept, reject) => {
                let (yes, no) = self.parted(condition, lanes)?;
                let mut rest = self.block(accept, yes, exits)?;
                rest.extend(self.block(reject, no, exits)?);
                rest.sort_unstable();
                return Ok(rest);
            }
            Stmt::Match(selector, arms, default) => {
                let mut ways = vec![Vec::new(); arms.len() + 1];
                for lane in lanes {
                    let value = scalar::word(&self.expr(lane, selector)?)? as u32;
                    let way = arms.iter().position(|(values, _)| values.contains(&value)).unwrap_or(arms.len());
                    ways[way].push(lane);
                }
                let mut rest = Vec::new();
                let blocks = arms.iter().map(|(_, body)| body).chain([default]);
                for (block, lanes) in blocks.zip(ways) {
                    rest.extend(self.block(block, lanes, exits)?);
                }
                rest.sort_unstable();
                return Ok(rest);
            }
            Stmt::For { var, start, end, step, reversed, body, .. } => {
                let scalar = start.ty.scalar().unwrap_or(Scalar::U32);
                let mut counts = vec![Vec::new(); self.vars.len()];
                for lane in &lanes {
                    let bound = |value: &Value| Ok::<_, Reject>(crate::value::integer(scalar, scalar::word(value)?));
                    let (start, end) = (bound(&self.expr(*lane, start)?)?, bound(&self.expr(*lane, end)?)?);
                    let mut all: Vec<i128> = (start..end.min(start + 1000)).collect();
                    if *reversed {
                        all.reverse();
                    }
                    counts[*lane] = all.into_iter().step_by(step.unwrap_or(1) as usize).collect();
                }
                let (mut inside, mut left, mut number) = (lanes, Vec::new(), 0);
                while !inside.is_empty() {
                    let (on, out) = inside.into_iter().partition(|lane| counts[*lane].len() > number);
                    left.extend::<Vec<usize>>(out);
                    for lane in &on {
                        let lane: &usize = lane;
                        let bits = crate::value::cut(scalar, counts[*lane][number] as u64);
                        self.vars[*lane][*var] = Some(Value::Word(bits));
                    }
                    number += 1;
                    self.step(1)?;
                    inside = self.round(body, on, &mut left, exits)?;
                }
                return Ok(self.sorted(left, exits));
            }
            Stmt::While { var, times, condition, body } | Stmt::Loop { var, times, condition, body } => {
                let goes_on = matches!(statement, Stmt::While { .. });
                for lane in &lanes {
                    self.vars[*lane][*var] = Some(Value::Word(u64::from(*times)));
                }
                let (mut inside, mut left) = (lanes, Vec::new());
                while !inside.is_empty() {
                    self.step(1)?;
                    let mut on = Vec::new();
                    for lane in inside {
                        let count = self.vars[lane][*var].as_ref().map_or(Ok(0), scalar::word)?;
                        if count > 0 && is_true(&self.expr(lane, condition)?)? == goes_on {
                            self.vars[lane][*var] = Some(Value::Word(count - 1));
                            on.push(lane);
                        } else {
                            left.push(lane);
                        }
                    }
                    inside = self.round(body, on, &mut left, exits)?;
                }
                return Ok(self.sorted(left, exits));
            }
            Stmt::Break => {
                exits.breaks.extend(lanes);
                return Ok(Vec::new());
            }
            Stmt::Continue => {
                exits.continues.extend(lanes);
                return Ok(Vec::new());
            }
            Stmt::Return(value) => {
                exits.returned = Some(self.expr(lanes[0], value)?);
                return Ok(Vec::new());
            }
            Stmt::Barrier => {}
            Stmt::Atomic { var, memory, index, function, values } => {
                for lane in &lanes {
                    let old = self.atomic(*lane, *memory, index, *function, values)?;
                    if let Some(var) = var {
                        self.vars[*lane][*var] = Some(old);
                    }
                }
            }
            Stmt::Subgroup { var, function, value, lane } => {
                self.subgroups(*var, *function, value, lane.as_ref(), &lanes)?;
            }
            Stmt::UniformLoad { var, memory, index } => {
                for lane in &lanes {
                    let value = self.load(*lane, *memory, index)?;
                    self.vars[*lane][*var] = Some(value);
                }
            }
        }
        Ok(lanes)
    }

    /// Who goes on behind a loop; nobody, where the function has returned.
    fn sorted(&self, mut left: Vec<usize>, exits: &Exits) -> Vec<usize> {
        if exits.returned.is_some() {
            return Vec::new();
        }
        left.sort_unstable();
        left
    }

    fn assign(
        &mut self,
        lane: usize,
        place: &Place,
        operator: Option<BinaryOperator>,
        value: &Expr,
    ) -> Result<(), Reject> {
        let mut new = self.expr(lane, value)?;
        let path = self.path(lane, &place.path)?;
        if let Some(operator) = operator {
            let old = self.read(lane, place)?;
            let scalar = value
                .ty
                .scalar()
                .filter(|_| !matches!(operator, BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight));
            let scalar = scalar.or_else(|| self.place_type(place).scalar()).ok_or("no number is assigned")?;
            new = expression::lanes(&[old, new], &mut |given| scalar::binary(operator, scalar, &given[0], &given[1]))?;
        }
        let target = match &place.root {
            Root::Var(var) => {
                let to = self.vars[lane][*var].as_mut().ok_or("an unset variable")?;
                expression::part_mut(to, &path)
            }
            Root::Element(memory, index) => {
                let index = self.index(lane, index)?;
                self.slice(lane, *memory)?
                    .get_mut(usize::try_from(index).unwrap_or(usize::MAX))
                    .and_then(|element| expression::part_mut(element, &path))
            }
        };
        // What is past the end is dropped.
        if let Some(target) = target {
            *target = new;
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        lane: usize,
        memory: Memory,
        index: &Expr,
        function: AtomicFunction,
        values: &[Expr],
    ) -> Result<Value, Reject> {
        use AtomicFunction as A;
        let index = self.index(lane, index)?;
        let given = values.iter().map(|value| self.expr(lane, value)).collect::<Result<Vec<_>, _>>()?;
        let scalar = self.program.element(memory).scalar().unwrap_or(Scalar::U32);
        let slice = self.slice(lane, memory)?;
        let Some(place) = slice.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) else {
            return Ok(Value::of_bits(scalar, 0));
        };
        let old = place.clone();
        let operator = match function {
            A::Add => Some(BinaryOperator::Add),
            A::Subtract => Some(BinaryOperator::Subtract),
            A::And => Some(BinaryOperator::And),
            A::Or => Some(BinaryOperator::Or),
            A::Xor => Some(BinaryOperator::Xor),
            _ => None,
        };
        let of_two = match function {
            A::Min => Some(MathFunction::Min),
            A::Max => Some(MathFunction::Max),
            _ => None,
        };
        *place = match (function, operator, of_two) {
            (_, Some(operator), _) => scalar::binary(operator, scalar, &old, &given[0])?,
            (_, _, Some(of_two)) => scalar::math(of_two, scalar, &[old.clone(), given[0].clone()])?,
            (A::Load, ..) => old.clone(),
            (A::CompareExchange, ..) if old == given[0] => given[1].clone(),
            (A::CompareExchange, ..) => old.clone(),
            _ => given[0].clone(),
        };
        Ok(old)
    }

    fn subgroups(
        &mut self,
        var: usize,
        function: SubgroupFunction,
        value: &Expr,
        lane: Option<&Expr>,
        lanes: &[usize],
    ) -> Result<(), Reject> {
        use SubgroupFunction as F;
        let scalar = value.ty.scalar().ok_or("no number is handed round")?;
        for members in lanes.chunks(self.subgroup as usize) {
            let mut values = Vec::new();
            let mut asked = Vec::new();
            for member in members {
                values.push(self.expr(*member, value)?);
                asked.push(lane.map_or(Ok(0), |lane| scalar::word(&self.expr(*member, lane)?))?);
            }
            let of_two = |a: &Value, b: &Value| {
                let combine = function.operator().map(|operator| operator.of_two());
                expression::lanes(&[a.clone(), b.clone()], &mut |given| match combine {
                    Some(Ok(operator)) => scalar::binary(operator, scalar, &given[0], &given[1]),
                    Some(Err(function)) => scalar::math(function, scalar, given),
                    None => Err("nothing is combined"),
                })
            };
            let neutral = || {
                let literal = function.operator().and_then(|operator| operator.neutral(scalar));
                let bits = literal.ok_or("nothing is neutral")?.bits();
                let one = Value::of_bits(scalar, bits);
                Ok::<_, Reject>(if let Value::Parts(lanes) = &values[0] {
                    Value::Parts(vec![one; lanes.len()])
                } else {
                    one
                })
            };
            let mut running = Vec::new();
            if function.operator().is_some() {
                let mut sum = values[0].clone();
                running.push(sum.clone());
                for value in &values[1..] {
                    sum = of_two(&sum, value)?;
                    running.push(sum.clone());
                }
            }
            let trues: Vec<bool> =
                if function.takes_bool() { values.iter().map(is_true).collect::<Result<_, _>>()? } else { Vec::new() };
            for (number, member) in members.iter().enumerate() {
                let from = |other: Option<u64>| {
                    let other = other.and_then(|other| values.get(usize::try_from(other).ok()?));
                    other.unwrap_or(&values[number]).clone()
                };
                let (own, wanted) = (number as u64, asked[number]);
                let result = match function {
                    F::Reduce(_) => running[running.len() - 1].clone(),
                    F::InclusiveScan(_) => running[number].clone(),
                    F::ExclusiveScan(_) if number == 0 => neutral()?,
                    F::ExclusiveScan(_) => running[number - 1].clone(),
                    F::Broadcast => match values.get(wanted as usize) {
                        Some(value) => value.clone(),
                        None => Value::zero(&value.ty, &self.program.structs),
                    },
                    F::Shuffle => from(Some(wanted)),
                    F::ShuffleXor => from(Some(own ^ wanted)),
                    F::ShuffleUp => from(own.checked_sub(wanted)),
                    F::ShuffleDown => from(Some(own + wanted)),
                    F::Any => Value::Word(trues.contains(&true).into()),
                    F::All => Value::Word((!trues.contains(&false)).into()),
                    F::Ballot => {
                        let word = |part: usize| {
                            let bits = trues.iter().skip(32 * part).take(32).enumerate();
                            Value::Word(bits.fold(0, |all, (bit, set)| all | u64::from(*set) << bit))
                        };
                        Value::Parts((0..4).map(word).collect())
                    }
                };
                self.vars[*member][var] = Some(result);
            }
        }
        Ok(())
    }
}
