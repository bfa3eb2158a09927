//! A pull's expression on the processor itself: position by position, and runs that are moved as they are by copies of bytes.

pub mod calculator;

use std::sync::Arc;

use self::calculator::{Calculation, Whole};
use super::plan::Plan;
use crate::dim::Dim;
use crate::op::{HostStep, Op, OpKind, Slot};
use crate::pull::{Given, Machine};
use crate::types::ElementType;

/// Where an element comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An input's bytes from there on.
    At(usize, i64),
    /// An element of these bits.
    Bits(u64),
}

/// Numbers of a run.
struct Numbers {
    extents: Vec<i64>,
    /// For each axis, the output's distance, then the moved inputs'.
    strides: Vec<Vec<i64>>,
    /// For each input, its offset and strides.
    inputs: Vec<Vec<i64>>,
    offset: i64,
    distances: Vec<Whole>,
    numbers: Vec<Whole>,
}

/// A position, with all that reads there need.
pub struct Position<'r> {
    plan: &'r Plan,
    numbers: &'r Numbers,
    reads: &'r [&'r [u8]],
    /// For each moved input, the unit at the position's coordinates along the axes that pass through.
    through: &'r [i64],
}

/// The step that computes a plan on the host.
pub fn step(op: Arc<dyn Op>, name: &'static str, plan: Plan) -> HostStep {
    let mut params: Vec<Dim> = Vec::new();
    for axis in &plan.axes {
        params.push(axis.extent.clone());
        params.push(axis.output.clone());
        params.extend(axis.inputs.iter().cloned());
    }
    for input in &plan.inputs {
        params.push(input.offset.clone());
        params.extend(input.strides.iter().cloned());
    }
    params.push(plan.offset.clone());
    params.extend(plan.distances.iter().chain(&plan.numbers).cloned());
    let reads = (0..plan.inputs.len()).map(Slot::Input).collect();
    let function = move |reads: &[&[u8]], writes: &mut [&mut [u8]], params: &[i64]| {
        let OpKind::Pull(pull) = op.kind() else { return Err(format!("`{name}` is no pull")) };
        let numbers = Numbers::new(&plan, params);
        let [out] = writes else { return Err(format!("`{name}` writes one result, {} given", writes.len())) };
        run(&pull, &plan, &numbers, reads, out).ok_or_else(|| format!("`{name}` reads or writes beyond its tensors"))
    };
    HostStep { name, function: Arc::new(function), reads, writes: vec![Slot::Output(0)], params }
}

impl Numbers {
    fn new(plan: &Plan, params: &[i64]) -> Self {
        let mut left = params.iter().copied();
        let mut take = |count: usize| -> Vec<i64> { left.by_ref().take(count).collect() };
        let (mut extents, mut strides) = (Vec::new(), Vec::new());
        for axis in &plan.axes {
            extents.extend(take(1));
            strides.push(take(1 + axis.inputs.len()));
        }
        let inputs = plan.inputs.iter().map(|input| take(1 + input.strides.len())).collect();
        let offset = take(1).first().copied().unwrap_or(0);
        let whole = |numbers: Vec<i64>| numbers.into_iter().map(Whole).collect();
        let distances = whole(take(plan.distances.len()));
        let numbers = whole(take(plan.numbers.len()));
        Self { extents, strides, inputs, offset, distances, numbers }
    }
}

/// Every position; `None` if a read or write is out of range.
fn run(pull: &crate::pull::Pull<'_>, plan: &Plan, numbers: &Numbers, reads: &[&[u8]], out: &mut [u8]) -> Option<()> {
    let counted = plan.axes.len() - usize::from(plan.run);
    let length = if plan.run { numbers.extents[counted] } else { 1 };
    let positions: i64 = numbers.extents[..counted].iter().product();
    if positions <= 0 || length <= 0 {
        return Some(());
    }
    let moved = plan.inputs.iter().filter(|input| input.moved).count();
    let mut at = vec![0i64; counted];
    let mut to = numbers.offset;
    let mut through: Vec<i64> = numbers.inputs[..moved].iter().map(|input| input[0]).collect();
    let passes = |axis: usize| axis < plan.lead || axis >= plan.lead + plan.middle;
    let mut middle = vec![Whole(0); plan.middle];
    let bytes = usize::try_from(length * plan.unit.bytes).ok()?;
    for _ in 0..positions {
        let given = Given { at: &middle, distances: &numbers.distances, numbers: &numbers.numbers };
        let position = Position { plan, numbers, reads, through: &through };
        let start = usize::try_from(to * plan.unit.bytes).ok()?;
        let target = out.get_mut(start..start + bytes)?;
        match plan.computes_in {
            None => match pull.expression.find(&position, given) {
                Source::At(input, byte) => {
                    let from = usize::try_from(byte).ok()?;
                    copy(target, reads[input].get(from..from + bytes)?);
                }
                Source::Bits(bits) => {
                    let size = plan.element.bytes() as usize;
                    target.chunks_exact_mut(size).for_each(|one| one.copy_from_slice(&bits.to_le_bytes()[..size]));
                }
            },
            Some(element) if element.is_float() => {
                let value = pull.expression.real(&Calculation::new(&position), given);
                put(plan.element, value, value as i64, target);
            }
            Some(_) => {
                let value = pull.expression.whole(&Calculation::new(&position), given);
                put(plan.element, value as f64, value, target);
            }
        }
        for axis in (0..counted).rev() {
            at[axis] += 1;
            let strides = &numbers.strides[axis];
            let done = at[axis] == numbers.extents[axis];
            let steps = if done { 1 - at[axis] } else { 1 };
            to += strides[0] * steps;
            if passes(axis) {
                through.iter_mut().zip(&strides[1..]).for_each(|(unit, stride)| *unit += stride * steps);
            }
            if done {
                at[axis] = 0;
            }
            if !passes(axis) {
                middle[axis - plan.lead] = Whole(at[axis]);
            }
            if !done {
                break;
            }
        }
    }
    Some(())
}

/// Copies that are as short as an element need no call.
fn copy(to: &mut [u8], from: &[u8]) {
    match to.len() {
        4 => to[..4].copy_from_slice(&from[..4]),
        2 => to[..2].copy_from_slice(&from[..2]),
        1 => to[0] = from[0],
        8 => to[..8].copy_from_slice(&from[..8]),
        16 => to[..16].copy_from_slice(&from[..16]),
        _ => to.copy_from_slice(from),
    }
}

/// Writes an element.
fn put(element: ElementType, real: f64, whole: i64, to: &mut [u8]) {
    let bits = if element.is_float() { element.bits(real) } else { whole.cast_unsigned() };
    let size = to.len().min(8);
    to[..size].copy_from_slice(&bits.to_le_bytes()[..size]);
}

/// The integer that an element of memory is.
fn whole(element: ElementType, bytes: &[u8]) -> i64 {
    let bits = bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    if element.scalar().is_signed() { (bits << unused).cast_signed() >> unused } else { bits.cast_signed() }
}

impl Position<'_> {
    /// The unit of an input at coordinates.
    fn unit(&self, input: usize, at: &[Whole]) -> i64 {
        let known = &self.numbers.inputs[input];
        let start = self.through.get(input).copied().unwrap_or(known[0]);
        at.iter().zip(&known[1..]).fold(start, |sum, (coordinate, stride)| sum + coordinate.0 * stride)
    }

    /// The bytes of an element that is no run; empty beyond the tensor's end.
    fn element(&self, input: usize, at: &[Whole]) -> (&[u8], ElementType) {
        let element = self.plan.inputs[input].element;
        let size = element.bytes() as usize;
        let start = usize::try_from(self.unit(input, at)).unwrap_or(usize::MAX / 16) * size;
        (self.reads[input].get(start..start + size).unwrap_or(&[]), element)
    }

    fn index_of(&self, input: usize, at: &[Whole]) -> Whole {
        let (bytes, element) = self.element(input, at);
        let value = whole(element, bytes);
        let fits = value >= i64::from(i32::MIN) && value <= i64::from(i32::MAX);
        Whole(if fits { value } else { -1 })
    }
}

impl Machine for &Position<'_> {
    type Index = Whole;
    type Truth = calculator::Holds;
    type Value = Source;

    fn constant(self, value: i32) -> Whole {
        Whole(i64::from(value))
    }

    fn index(self, input: usize, at: &[Whole]) -> Whole {
        self.index_of(input, at)
    }

    fn read(self, input: usize, at: &[Whole]) -> Source {
        Source::At(input, self.unit(input, at) * self.plan.unit.bytes)
    }

    fn bits(self, bits: u64) -> Source {
        Source::Bits(bits)
    }

    fn choose(
        self,
        condition: Self::Truth,
        accept: impl FnOnce() -> Source,
        reject: impl FnOnce() -> Source,
    ) -> Source {
        if condition.0 { accept() } else { reject() }
    }

    fn select(self, condition: Self::Truth, accept: Whole, reject: Whole) -> Whole {
        if condition.0 { accept } else { reject }
    }

    fn less(self, left: Whole, right: Whole) -> Self::Truth {
        calculator::Holds(left.0 < right.0)
    }

    fn equal(self, left: Whole, right: Whole) -> Self::Truth {
        calculator::Holds(left.0 == right.0)
    }
}
