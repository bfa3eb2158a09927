//! Values of expressions, and places, for one invocation.

use trefoil_codegen::ir::{Builtin, LogicalOperator, Scalar};

use super::{Exits, Machine, is_true, scalar};
use crate::interval::Reject;
use crate::syntax::{Argument, Expr, Kind, Memory, Place, Root, Step, Ty};
use crate::value::{Value, cut};

/// Does something lane by lane, or once where nothing is a vector; what is none is the same for every lane.
pub(super) fn lanes(given: &[Value], of: &mut dyn FnMut(&[Value]) -> Result<Value, Reject>) -> Result<Value, Reject> {
    let count = given.iter().find_map(|value| match value {
        Value::Parts(parts) => Some(parts.len()),
        _ => None,
    });
    let Some(count) = count else { return of(given) };
    let lane = |lane: usize| -> Vec<Value> {
        let of = |value: &Value| match value {
            Value::Parts(parts) => parts[lane].clone(),
            other => other.clone(),
        };
        given.iter().map(of).collect()
    };
    Ok(Value::Parts((0..count).map(|number| of(&lane(number))).collect::<Result<_, _>>()?))
}

/// The part of a value that a path leads to, if there is one.
pub(super) fn part_mut<'v>(value: &'v mut Value, path: &[u64]) -> Option<&'v mut Value> {
    let mut value = value;
    for step in path {
        let Value::Parts(parts) = value else { return None };
        value = parts.get_mut(usize::try_from(*step).ok()?)?;
    }
    Some(value)
}

impl Machine<'_> {
    pub(super) fn index(&mut self, lane: usize, index: &Expr) -> Result<u64, Reject> {
        scalar::word(&self.expr(lane, index)?)
    }

    pub(super) fn path(&mut self, lane: usize, path: &[Step]) -> Result<Vec<u64>, Reject> {
        path.iter()
            .map(|step| match step {
                Step::Member(member) => Ok(*member as u64),
                Step::Index(index) => self.index(lane, index),
            })
            .collect()
    }

    fn resolved(&self, lane: usize, memory: Memory) -> Result<Memory, Reject> {
        match memory {
            Memory::Parameter(var) => match &self.vars[lane][var] {
                Some(Value::Slice(memory)) => Ok(*memory),
                _ => Err("a slice is not bound"),
            },
            other => Ok(other),
        }
    }

    pub(super) fn slice(&mut self, lane: usize, memory: Memory) -> Result<&mut Vec<Value>, Reject> {
        match self.resolved(lane, memory)? {
            Memory::Buffer(index) => Ok(&mut self.buffers[index]),
            Memory::Shared(index) => Ok(&mut self.shared[index]),
            Memory::Parameter(_) => Err("a slice is not bound"),
        }
    }

    pub(super) fn place_type(&self, place: &Place) -> Ty {
        let root = match &place.root {
            Root::Var(var) => self.program.vars[*var].ty.clone(),
            Root::Element(memory, _) => self.program.element(*memory).clone(),
        };
        place.path.iter().fold(root, |ty, step| self.program.part(&ty, step).unwrap_or(ty))
    }

    pub(super) fn load(&mut self, lane: usize, memory: Memory, index: &Expr) -> Result<Value, Reject> {
        let index = self.index(lane, index)?;
        let zero = Value::zero(self.program.element(memory), &self.program.structs);
        let slice = self.slice(lane, memory)?;
        Ok(usize::try_from(index).ok().and_then(|index| slice.get(index)).cloned().unwrap_or(zero))
    }

    pub(super) fn read(&mut self, lane: usize, place: &Place) -> Result<Value, Reject> {
        let path = self.path(lane, &place.path)?;
        let mut base = match &place.root {
            Root::Var(var) => self.vars[lane][*var].clone().ok_or("an unset variable")?,
            Root::Element(memory, index) => self.load(lane, *memory, index)?,
        };
        match part_mut(&mut base, &path) {
            Some(part) => Ok(part.clone()),
            // Past the end there are zeros.
            None => Ok(Value::zero(&self.place_type(place), &self.program.structs)),
        }
    }

    pub(super) fn expr(&mut self, lane: usize, expr: &Expr) -> Result<Value, Reject> {
        self.step(0)?;
        let number = |value: u64| Ok(Value::Word(value));
        let scalar_of = |expr: &Expr| expr.ty.scalar().ok_or("an operator on what is no number");
        match &expr.kind {
            Kind::Literal(bits) => Ok(Value::of_bits(expr.ty.scalar().unwrap_or(Scalar::U32), *bits)),
            Kind::Read(place) => self.read(lane, place),
            Kind::Part(base, step) => {
                let mut value = self.expr(lane, base)?;
                let path = self.path(lane, std::slice::from_ref(step))?;
                let found = part_mut(&mut value, &path).cloned();
                Ok(found.unwrap_or_else(|| Value::zero(&expr.ty, &self.program.structs)))
            }
            Kind::Negate(value) => {
                let (scalar, value) = (scalar_of(value)?, self.expr(lane, value)?);
                lanes(&[value], &mut |given| scalar::negate(scalar, &given[0]))
            }
            Kind::Not(value) => {
                let (scalar, value) = (scalar_of(value)?, self.expr(lane, value)?);
                lanes(&[value], &mut |given| Ok(Value::Word(cut(scalar, !scalar::word(&given[0])?))))
            }
            Kind::Binary(operator, left, right) => {
                let scalar = scalar_of(left)?;
                let given = [self.expr(lane, left)?, self.expr(lane, right)?];
                lanes(&given, &mut |given| scalar::binary(*operator, scalar, &given[0], &given[1]))
            }
            Kind::Logical(operator, left, right) => {
                let decided = is_true(&self.expr(lane, left)?)?;
                if decided == (*operator == LogicalOperator::Or) {
                    return number(decided.into());
                }
                self.expr(lane, right)
            }
            Kind::Math(function, arguments) => {
                let scalar = scalar_of(&arguments[0])?;
                let given = arguments.iter().map(|one| self.expr(lane, one)).collect::<Result<Vec<_>, _>>()?;
                if function.is_lanewise() {
                    lanes(&given, &mut |given| scalar::math(*function, scalar, given))
                } else if matches!(given[0], Value::Parts(_)) || matches!(expr.ty, Ty::Vector(..)) {
                    scalar::whole(*function, scalar, &given)
                } else {
                    scalar::math(*function, scalar, &given)
                }
            }
            Kind::Convert(value) => {
                let (from, to) = (scalar_of(value)?, scalar_of(expr)?);
                let value = self.expr(lane, value)?;
                lanes(&[value], &mut |given| scalar::convert(from, to, &given[0]))
            }
            Kind::Bitcast(value) => {
                let (from, to) = (scalar_of(value)?, scalar_of(expr)?);
                let value = self.expr(lane, value)?;
                lanes(&[value], &mut |given| scalar::bitcast(from, to, &given[0]))
            }
            Kind::Compose(parts) => {
                Ok(Value::Parts(parts.iter().map(|part| self.expr(lane, part)).collect::<Result<_, _>>()?))
            }
            Kind::Splat(value) => {
                let count = match &expr.ty {
                    Ty::Array(_, length) => *length as usize,
                    ty => ty.lanes().into(),
                };
                Ok(Value::Parts(vec![self.expr(lane, value)?; count]))
            }
            // Both sides of a choice may be evaluated: a rounding that decides something in either says nothing.
            Kind::Select(parts) => {
                let [condition, accept, reject] = &**parts;
                let (condition, accept) = (is_true(&self.expr(lane, condition)?)?, self.expr(lane, accept)?);
                let reject = self.expr(lane, reject)?;
                Ok(if condition { accept } else { reject })
            }
            Kind::If(parts) => {
                let [condition, accept, reject] = &**parts;
                let way = if is_true(&self.expr(lane, condition)?)? { accept } else { reject };
                self.expr(lane, way)
            }
            Kind::Match(selector, arms, default) => {
                let value = scalar::word(&self.expr(lane, selector)?)? as u32;
                let arm = arms.iter().find(|(values, _)| values.contains(&value)).map(|(_, arm)| arm);
                self.expr(lane, arm.unwrap_or(default))
            }
            Kind::Call(function, arguments) => self.call(lane, *function, arguments),
            Kind::Length(memory) => {
                let length = self.slice(lane, *memory)?.len();
                number(length as u64)
            }
            Kind::GlobalIndex => number(u64::from(self.group * self.program.workgroup) + lane as u64),
            Kind::LocalIndex => number(lane as u64),
            Kind::GroupIndex => number(self.group.into()),
            Kind::GroupCount => number(self.program.groups.into()),
            Kind::SubgroupLane => number(lane as u64 % u64::from(self.subgroup)),
            Kind::SubgroupSize => number(self.subgroup.into()),
            Kind::SubgroupIndex => number(lane as u64 / u64::from(self.subgroup)),
            // Grids and workgroups are lines.
            Kind::Axes(builtin) => {
                let [first, others] = match builtin {
                    Builtin::GlobalId => [u64::from(self.group * self.program.workgroup) + lane as u64, 0],
                    Builtin::LocalId => [lane as u64, 0],
                    Builtin::GroupId => [self.group.into(), 0],
                    _ => [self.program.groups.into(), 1],
                };
                Ok(Value::Parts([first, others, others].map(Value::Word).to_vec()))
            }
            Kind::Several(memory, index) => {
                let (index, count) = (self.index(lane, index)?, u64::from(expr.ty.lanes()));
                let zero = Value::zero(&expr.ty, &self.program.structs);
                let from = self.slice(lane, *memory)?;
                // If one of its lanes is past the end, all are zero.
                if (index + 1) * count > from.len() as u64 {
                    return Ok(zero);
                }
                let first = (index * count) as usize;
                Ok(Value::Parts(from[first..first + count as usize].to_vec()))
            }
        }
    }

    fn call(&mut self, lane: usize, function: usize, arguments: &[Argument]) -> Result<Value, Reject> {
        let program = self.program;
        let function = &program.functions[function];
        let mut given = Vec::new();
        for argument in arguments {
            given.push(match argument {
                Argument::Value(value) => self.expr(lane, value)?,
                Argument::Mutable(var) => self.vars[lane][*var].clone().ok_or("an unset variable")?,
                Argument::Slice(memory) => Value::Slice(self.resolved(lane, *memory)?),
            });
        }
        for ((param, _), value) in function.params.iter().zip(given) {
            self.vars[lane][*param] = Some(value);
        }
        let mut exits = Exits::default();
        self.block(&function.body, vec![lane], &mut exits)?;
        let result = match exits.returned {
            Some(value) => value,
            None => self.expr(lane, &function.result)?,
        };
        for ((param, _), argument) in function.params.iter().zip(arguments) {
            if let Argument::Mutable(var) = argument {
                self.vars[lane][*var] = self.vars[lane][*param].clone();
            }
        }
        Ok(result)
    }
}
