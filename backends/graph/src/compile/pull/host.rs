//! A pull's expression on the processor itself: at many positions at once, on every thread; runs that are moved as they are are copied byte by byte.
//!
//! | file | what it holds |
//! |---|---|
//! | [`lanes`] | values at several positions |
//! | [`coordinates`] | coordinates there, most of which rise evenly |
//! | [`sources`] | where elements lie that are only moved |
//! | [`calculator`] | the machine that computes with them |
//! | `walk` | positions in order, and where each writes |

pub mod calculator;
pub mod coordinates;
pub mod lanes;
pub mod sources;
mod walk;

use std::sync::Arc;

use rayon::prelude::*;

use self::calculator::Calculation;
use self::coordinates::Whole;
use self::lanes::{LANES, Lanes};
use self::sources::{Source, Sources};
use self::walk::Walk;
use super::plan::Plan;
use crate::dim::Dim;
use crate::op::{CallStep, Callee, Op, OpKind, Slot};
use crate::pull::{Expression, Given, Machine};
use crate::types::ElementType;

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

/// Positions, with all that reads there need.
pub struct Position<'r> {
    plan: &'r Plan,
    numbers: &'r Numbers,
    reads: &'r [&'r [u8]],
    /// For each moved input, the unit at the position's coordinates along the axes that pass through.
    through: &'r [Whole],
}

/// The step that computes a plan on the host.
pub fn step(op: Arc<dyn Op>, name: &'static str, plan: Plan) -> CallStep {
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
        run(&*pull.expression, &plan, &numbers, reads, out)
            .ok_or_else(|| format!("`{name}` reads or writes beyond its tensors"))
    };
    CallStep { name, callee: Callee::Host(Arc::new(function)), reads, writes: vec![Slot::Output(0)], params }
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
        let whole = |numbers: Vec<i64>| numbers.into_iter().map(Whole::of).collect();
        let distances = whole(take(plan.distances.len()));
        let numbers = whole(take(plan.numbers.len()));
        Self { extents, strides, inputs, offset, distances, numbers }
    }
}

/// Bytes that are worth a thread, or as many elements that are computed.
const PIECE: i64 = 1 << 16;

/// Every position; `None` if a read or write is out of range.
fn run(expression: &dyn Expression, plan: &Plan, numbers: &Numbers, reads: &[&[u8]], out: &mut [u8]) -> Option<()> {
    let walk = Walk::new(plan, numbers);
    let of_position = walk.run * plan.unit.bytes;
    if walk.positions <= 0 || of_position <= 0 {
        return Some(());
    }
    // Enough positions for a thread; where an element is computed, each is worth a few bytes that are moved.
    let worth = if plan.computes_in.is_some() { PIECE / 8 } else { (PIECE / of_position).max(1) };
    let threads = rayon::current_num_threads() as i64;
    let count = if walk.ascends() { (walk.positions / worth).clamp(1, 8 * threads) } else { 1 };
    let length = (walk.positions / count + 1).max(LANES as i64).min(walk.positions);
    // The bytes of each piece lie behind those of the one before.
    let (mut pieces, mut rest, mut start) = (Vec::new(), out, 0);
    for first in (0..walk.positions).step_by(usize::try_from(length).ok()?) {
        let end = (first + length).min(walk.positions);
        let behind = if end < walk.positions { walk.output(end) * plan.unit.bytes } else { start + rest.len() as i64 };
        let (piece, others) = rest.split_at_mut_checked(usize::try_from(behind - start).ok()?)?;
        pieces.push((first..end, start, piece));
        (rest, start) = (others, behind);
    }
    let all = |(positions, start, out)| Piece { expression, plan, numbers, reads, start, out }.run(&walk, positions);
    if pieces.len() == 1 { pieces.into_iter().try_for_each(all) } else { pieces.into_par_iter().try_for_each(all) }
}

/// A part of the output.
struct Piece<'r, 'o> {
    expression: &'r dyn Expression,
    plan: &'r Plan,
    numbers: &'r Numbers,
    reads: &'r [&'r [u8]],
    /// The output's byte with which it begins.
    start: i64,
    out: &'o mut [u8],
}

impl Piece<'_, '_> {
    fn run(&mut self, walk: &Walk<'_>, positions: std::ops::Range<i64>) -> Option<()> {
        let (plan, numbers) = (self.plan, self.numbers);
        let bytes = usize::try_from(walk.run * plan.unit.bytes).ok()?;
        let mut batches = walk.batches(positions);
        while let Some(batch) = batches.next() {
            let given = Given { at: &batch.middle, distances: &numbers.distances, numbers: &numbers.numbers };
            let position = Position { plan, numbers, reads: self.reads, through: &batch.through };
            match plan.computes_in {
                None => self.moved(self.expression.find(&position, given), &batch.to, batch.count, bytes)?,
                Some(element) if element.is_float() => {
                    let values = self.expression.real(&Calculation::new(&position), given);
                    match plan.element {
                        ElementType::F32 => self.each(&batch.to, batch.count, |lane, to| {
                            to[..4].copy_from_slice(&(values.at(lane) as f32).to_le_bytes());
                        }),
                        element => self.each(&batch.to, batch.count, |lane, to| put(element, values.at(lane), to)),
                    }?;
                }
                Some(_) => {
                    let values = self.expression.whole(&Calculation::new(&position), given);
                    let element = plan.element;
                    self.each(&batch.to, batch.count, |lane, to| match values.at(lane) {
                        value if element.is_float() => put(element, value as f64, to),
                        value => put_bits(value.cast_unsigned(), to),
                    })?;
                }
            }
        }
        Some(())
    }

    /// The output from a unit on.
    fn target(&mut self, to: i64, bytes: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(to * self.plan.unit.bytes - self.start).ok()?;
        self.out.get_mut(start..start.checked_add(bytes)?)
    }

    /// Writes the element of each position.
    fn each(&mut self, to: &Whole, count: usize, write: impl Fn(usize, &mut [u8])) -> Option<()> {
        let size = self.plan.element.bytes() as usize;
        (0..count).try_for_each(|lane| {
            write(lane, self.target(to.at(lane), size)?);
            Some(())
        })
    }

    /// Copies what each position moves.
    fn moved(&mut self, sources: Sources, to: &Whole, count: usize, bytes: usize) -> Option<()> {
        let far = bytes as i64;
        // Neighbours that were neighbours are one copy.
        if let (Sources::Input(input, Whole::Line { first, step }), Whole::Line { first: to, step: apart }) =
            (sources, *to)
            && step == far
            && apart * self.plan.unit.bytes == far
        {
            let from = usize::try_from(first).ok()?;
            let source = self.reads[input].get(from..from.checked_add(count * bytes)?)?;
            copy(self.target(to, count * bytes)?, source);
            return Some(());
        }
        let (reads, size) = (self.reads, self.plan.element.bytes() as usize);
        (0..count).try_for_each(|lane| {
            let target = self.target(to.at(lane), bytes)?;
            match sources.at(lane) {
                Source::At(input, byte) => {
                    let from = usize::try_from(byte).ok()?;
                    copy(target, reads[input].get(from..from.checked_add(bytes)?)?);
                }
                Source::Bits(bits) => target.chunks_exact_mut(size).for_each(|one| put_bits(bits, one)),
            }
            Some(())
        })
    }
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

/// Writes an element that is a float.
fn put(element: ElementType, value: f64, to: &mut [u8]) {
    put_bits(element.bits(value), to);
}

/// Writes an element by its bits.
fn put_bits(bits: u64, to: &mut [u8]) {
    match to.len() {
        4 => to[..4].copy_from_slice(&bits.to_le_bytes()[..4]),
        2 => to[..2].copy_from_slice(&bits.to_le_bytes()[..2]),
        1 => to[0] = bits.to_le_bytes()[0],
        _ => to[..8].copy_from_slice(&bits.to_le_bytes()),
    }
}

/// The integer that an element of memory is; 0 of no bytes.
fn whole(element: ElementType, bytes: &[u8]) -> i64 {
    let bits = match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return 0,
    };
    let unused = 64 - 8 * bytes.len() as u32;
    if element.scalar().is_signed() { (bits << unused).cast_signed() >> unused } else { bits.cast_signed() }
}

impl Position<'_> {
    /// The unit of an input at coordinates.
    fn unit(&self, input: usize, at: &[Whole]) -> Whole {
        let known = &self.numbers.inputs[input];
        let start = self.through.get(input).copied().unwrap_or(Whole::of(known[0]));
        at.iter().zip(&known[1..]).fold(start, |sum, (at, stride)| sum + *at * Whole::of(*stride))
    }

    /// What `of` makes of the elements of an input that is no run; it is given no bytes beyond the tensor's end.
    fn load<T: Copy>(&self, input: usize, at: &[Whole], of: impl Fn(ElementType, &[u8]) -> T) -> Lanes<T> {
        let (element, bytes) = (self.plan.inputs[input].element, self.reads[input]);
        let size = element.bytes() as usize;
        self.unit(input, at).lanes().map(|unit| {
            let start = usize::try_from(unit).unwrap_or(usize::MAX).saturating_mul(size);
            of(element, bytes.get(start..start.saturating_add(size)).unwrap_or(&[]))
        })
    }

    fn index_of(&self, input: usize, at: &[Whole]) -> Whole {
        let index = |element, bytes: &[u8]| i32::try_from(whole(element, bytes)).map_or(-1, i64::from);
        Whole::from_lanes(self.load(input, at, index))
    }
}

impl Machine for &Position<'_> {
    type Index = Whole;
    type Truth = calculator::Holds;
    type Value = Sources;

    fn constant(self, value: i32) -> Whole {
        Whole::of(i64::from(value))
    }

    fn index(self, input: usize, at: &[Whole]) -> Whole {
        self.index_of(input, at)
    }

    fn read(self, input: usize, at: &[Whole]) -> Sources {
        Sources::Input(input, self.unit(input, at) * Whole::of(self.plan.unit.bytes))
    }

    fn bits(self, bits: u64) -> Sources {
        Sources::Bits(bits)
    }

    fn choose(
        self,
        condition: Self::Truth,
        accept: impl FnOnce() -> Sources,
        reject: impl FnOnce() -> Sources,
    ) -> Sources {
        condition.0.choose(accept, reject, Sources::mixed)
    }

    fn select(self, condition: Self::Truth, accept: Whole, reject: Whole) -> Whole {
        Whole::select(condition, accept, reject)
    }

    fn less(self, left: Whole, right: Whole) -> Self::Truth {
        Whole::less(left, right)
    }

    fn equal(self, left: Whole, right: Whole) -> Self::Truth {
        Whole::equal(left, right)
    }
}
