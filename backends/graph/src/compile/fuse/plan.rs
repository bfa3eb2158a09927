//! What the kernel of a region reads and writes, how, and how much an invocation does.

use std::collections::BTreeMap;

use trefoil_codegen::artefact::Features;
use trefoil_dsl::device::{DeviceKind, Properties};

use super::kernel::{LANES, computes, there};
use super::read::{Pattern, Wide};
use super::turn::Turn;
use super::work::operations;
use super::{Fills, Region, is_flat};
use crate::compile::program::{Program, ValueId};
use crate::dim::Dim;
use crate::op::ParamValue;
use crate::types::ElementType;

/// Bytes that an invocation of a large region moves at least: a large GPU begins some hundred invocations a nanosecond and moves 4,000 bytes.
const MOVED: u64 = 32;
/// The same where drivers compile SPIR-V or WGSL, whose invocations take longer to begin.
const MOVED_OF_OTHERS: u64 = 48;
/// From so many instructions for each byte on, an invocation moves twice as much: while it computes, it asks for nothing.
const COMPUTES: u64 = 2;
/// From so many on it moves four times as much.
const COMPUTES_LONG: u64 = 8;
/// From so many elements on a region is large.
const LARGE: i64 = 1 << 20;
/// From so many elements on a region is worth cutting in blocks of 16: with fewer there are too few invocations.
const WORTH_BLOCKS: i64 = 1 << 18;

/// Where a map's operand comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// An earlier map of the region.
    Map(usize),
    /// What the kernel that the region is put behind was about to write.
    Given,
    /// A literal of that element type, by its bits in memory.
    Fill(u64, ElementType),
    /// A read of memory.
    Read(usize),
}

/// A read of memory: the binding, how it lies, and where its parameters are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) binding: usize,
    pub(super) pattern: Pattern,
    /// The position among the sets of extents, for a strided read.
    pub(super) extents: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Element types of what is bound for reading.
    pub(super) bound: Vec<ElementType>,
    pub(super) reads: Vec<Read>,
    /// Sets of extents by which strided reads count.
    pub(super) extents: Vec<Vec<Dim>>,
    /// For each map, its operands.
    pub(super) operands: Vec<Vec<Source>>,
    /// The element types of the maps' outputs.
    pub(super) types: Vec<ElementType>,
    /// The maps that are written, in binding order.
    pub(super) written: Vec<usize>,
    pub(super) wide: bool,
    /// How a wide kernel is cut in blocks, if it is.
    pub(super) turn: Option<Turn>,
    /// How many times a wide kernel's invocation computes `LANES` elements.
    pub(super) rounds: u32,
    /// Whether elements are left over when all are taken by fours.
    pub(super) tail: bool,
    /// Those features for the region's element types that the device has.
    pub(super) requires: Features,
}

impl Plan {
    pub(super) fn new(program: &Program, region: &Region, fills: &Fills, device: &Properties) -> (Self, Vec<ValueId>) {
        let (mut plan, values, computes_all) = Self::of_reads(program, region, fills, device, None);
        let wide: Option<Vec<Pattern>> = plan.reads.iter().map(|read| read.pattern.widened()).collect();
        // Fewer elements than that are not worth another kernel; and what a device only moves, it has no vectors of. On the CPU the evaluator takes
        // hundreds of elements at once, and most quickly those that are neighbours in memory.
        let by_four = computes_all && device.kind != DeviceKind::Cpu;
        if let Some(wide) = wide.filter(|_| by_four && region.elements.bounds().1 >= 4) {
            plan.wide = true;
            plan.tail = !region.elements.divides_evenly(i64::from(LANES));
            for (read, pattern) in plan.reads.iter_mut().zip(wide) {
                read.pattern = pattern;
            }
        }
        if by_four
            && !plan.wide
            && region.elements.bounds().0 >= WORTH_BLOCKS
            && let Some((turn, patterns)) = Turn::of(&plan.reads)
        {
            plan.wide = true;
            plan.turn = Some(turn);
            for (read, pattern) in plan.reads.iter_mut().zip(patterns) {
                read.pattern = pattern;
            }
        }
        plan.count();
        plan.rounds = plan.rounds_of(region, device);
        (plan, values)
    }

    /// What a region reads and how, element by element, and whether the device computes with all of its types. A region that is put behind a kernel is `given` the elements of that value.
    pub(super) fn of_reads(
        program: &Program,
        region: &Region,
        fills: &Fills,
        device: &Properties,
        given: Option<ValueId>,
    ) -> (Self, Vec<ValueId>, bool) {
        let mut plan = Self::default();
        // What is read as two types is bound twice.
        let mut values: Vec<(ValueId, ElementType)> = Vec::new();
        let inside: BTreeMap<ValueId, usize> =
            region.maps.iter().enumerate().map(|(index, map)| (map.output, index)).collect();
        let element = |value: ValueId| program.values[value].ty.as_ref().map_or(ElementType::U32, |ty| ty.element);
        for map in &region.maps {
            let operands = map.inputs.iter().map(|input| {
                if let Some(bits) = fills.get(&input.value) {
                    return Source::Fill(*bits, input.ty.element);
                }
                if given == Some(input.value) && is_flat(program, input) {
                    return Source::Given;
                }
                if let Some(producer) = inside.get(&input.value).filter(|_| is_flat(program, input)) {
                    return Source::Map(*producer);
                }
                let wanted = (input.value, input.ty.element);
                let binding = values.iter().position(|known| *known == wanted).unwrap_or_else(|| {
                    values.push(wanted);
                    plan.bound.push(input.ty.element);
                    values.len() - 1
                });
                let read = Read { binding, pattern: Pattern::of(&input.ty.shape, &input.layout), extents: 0 };
                Source::Read(plan.reads.iter().position(|known| *known == read).unwrap_or_else(|| {
                    plan.reads.push(read);
                    plan.reads.len() - 1
                }))
            });
            let operands = operands.collect();
            plan.operands.push(operands);
            plan.types.push(element(map.output));
        }
        plan.written = region.outputs.iter().filter_map(|value| inside.get(value).copied()).collect();
        let filled = plan.operands.iter().flatten().filter_map(|source| match source {
            Source::Fill(_, element) => Some(element),
            Source::Map(_) | Source::Given | Source::Read(_) => None,
        });
        let elements: Vec<ElementType> =
            plan.bound.iter().chain(&plan.types).chain(filled).copied().chain(given.map(element)).collect();
        let computes_all = elements.iter().all(|element| computes(device, *element));
        plan.requires = elements.iter().fold(Features::NONE, |all, element| all.union(there(device, *element)));
        (plan, values.into_iter().map(|(value, _)| value).collect(), computes_all)
    }

    /// Gathers the sets of extents by which strided reads count.
    pub(super) fn count(&mut self) {
        for read in &mut self.reads {
            if let Pattern::Strided(strided) = &read.pattern
                && strided.wide != Wide::Turned
            {
                let known = self.extents.iter().position(|known| *known == strided.extents);
                read.extents = known.unwrap_or_else(|| {
                    self.extents.push(strided.extents.clone());
                    self.extents.len() - 1
                });
            }
        }
    }

    /// The binding of a read that goes farther than indices of 32 bits, if there is one.
    pub(super) fn uncounted(&self) -> Option<usize> {
        let far = self.reads.iter().find(|read| read.pattern.farthest() > i64::from(u32::MAX));
        far.map(|read| read.binding)
    }

    /// How often an invocation computes four elements, so that it moves enough.
    fn rounds_of(&self, region: &Region, device: &Properties) -> u32 {
        let elements = &region.elements;
        if !self.wide || self.turn.is_some() || device.kind == DeviceKind::Cpu || elements.bounds().0 < LARGE {
            return 1;
        }
        let read = self.reads.iter().filter(|read| match &read.pattern {
            Pattern::Flat => true,
            Pattern::One { .. } => false,
            Pattern::Strided(strided) => strided.wide == Wide::Vector,
        });
        let read: u64 = read.map(|read| self.bound[read.binding].bytes()).sum();
        let written: u64 = self.written.iter().map(|map| self.types[*map].bytes()).sum();
        let bytes = (read + written).max(1);
        // Whatever it computes, one round moves enough.
        if u64::from(LANES) * bytes >= 4 * MOVED {
            return 1;
        }
        let moved = match operations(region, self) / bytes {
            COMPUTES_LONG.. => 4 * MOVED,
            COMPUTES.. => 2 * MOVED,
            _ if device.kind == DeviceKind::Cuda => MOVED,
            _ => MOVED_OF_OTHERS,
        };
        let enough = moved.div_ceil(u64::from(LANES) * bytes);
        // What is left over would want another kernel.
        let even = |rounds: &u32| elements.divides_evenly(i64::from(LANES) * i64::from(*rounds));
        [4, 2].into_iter().find(|rounds| u64::from(*rounds) <= enough.next_power_of_two() && even(rounds)).unwrap_or(1)
    }

    /// The values of the parameters, in the order in which [`Names`] declares them.
    pub(super) fn params(&self) -> Vec<ParamValue> {
        let inner = self.extents.iter().filter(|extents| extents.len() > 1);
        let inner = inner.map(|extents| ParamValue::Dims(extents[1..].to_vec()));
        let mut params: Vec<_> = self.turn.iter().map(Turn::param).chain(inner).collect();
        for read in &self.reads {
            match &read.pattern {
                Pattern::Flat => {}
                Pattern::One { offset } if offset.is(0) => {}
                Pattern::One { offset } => params.push(ParamValue::Dim(offset.clone())),
                Pattern::Strided(strided) => {
                    let mut numbers = vec![strided.offset.clone()];
                    numbers.extend(strided.strides.iter().cloned());
                    params.push(ParamValue::Dims(numbers));
                }
            }
        }
        params
    }
}
