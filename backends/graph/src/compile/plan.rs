//! Places in memory: each value that lives in activation memory gets a buffer and a byte offset, from its lifetime, after fusion, at the upper bounds of
//! the symbols.
//!
//! Values whose lifetimes overlap never share bytes. Params, constants and states have buffers of their own, and the counters of all nodes one, in which they share nothing; a version of a state lies where the state lies, over the one that it replaces; and what a step writes over an operand lies where that lies. Where a dispatch may not bind one piece of memory both for reading and for writing, what a step reads and what it writes
//! lie in different buffers. Where that lets the host read them sooner, small outputs that no step reads lie in a buffer near it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trefoil_codegen::artefact::Access;
use trefoil_dsl::device::{Device, Limits, Memory};
use trefoil_dsl::error::Result as DeviceResult;

use super::alive::Alive;
use super::program::{Origin, Program, Value, ValueId};
use super::steps::Step;
use crate::error::{Error, Result};

/// Places start at multiples of this many bytes, and take multiples of it.
pub const ALIGNMENT: u64 = 256;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer, by position in [`Plan::buffers`].
    pub buffer: usize,
    /// Its first byte.
    pub offset: u64,
    /// Bytes that are kept for it.
    pub bytes: u64,
}

/// A piece of memory that an executable needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Memory of the executable's own, of that many bytes.
    Activations(u64),
    /// The model's copy of the param that is this value.
    Param(ValueId),
    /// Memory for the constant that is this value.
    Constant(ValueId),
    /// Memory for the state that is this value, and for all of its versions.
    State(ValueId),
    /// Memory for the counters of all nodes, of that many bytes, which are zero before the first run.
    Counters(u64),
}

/// Where everything lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// For each value its place; `None` for one that exists in no memory.
    pub places: Vec<Option<Place>>,
    /// The memory.
    pub buffers: Vec<Buffer>,
    /// The buffer of activations that lies near the host, if there is one: small outputs that no step reads.
    pub near_host: Option<usize>,
}

impl Plan {
    /// Makes the memory of a buffer of activations.
    ///
    /// # Errors
    /// The device has no room, or failed.
    pub(crate) fn allocate(&self, buffer: usize, bytes: u64, device: &Device) -> DeviceResult<Arc<dyn Memory>> {
        let (backend, label) = (device.backend(), "activations");
        let is_near = self.near_host == Some(buffer);
        if is_near { backend.allocate_near_host(bytes, label) } else { backend.allocate(bytes, label) }
    }
}

/// A value to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Bytes that it takes.
    pub bytes: u64,
    /// The moment of the step that makes it; 0 for what is there before the first one.
    pub born: usize,
    /// That of the last step that touches it.
    pub dies: usize,
}

/// What the places must respect.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Bytes of the largest buffer.
    pub max_buffer: u64,
    /// Pairs that must lie in different buffers.
    pub apart: &'a [(usize, usize)],
}

/// The lifetimes of the values in activation memory, where each step runs at a moment counted from 1; steps that run at the same one share no memory but for reading.
pub(crate) fn lifetimes(program: &Program, steps: &[Step], moments: &[usize]) -> BTreeMap<ValueId, Lifetime> {
    let bytes = |value: ValueId| u64::try_from(program.values[value].bytes.bounds().1).unwrap_or(0);
    let given = program.values.iter().enumerate().filter(|(_, info)| info.origin == Origin::Input);
    let mut lifetimes: BTreeMap<ValueId, Lifetime> =
        given.map(|(value, _)| (value, Lifetime { bytes: bytes(value), born: 0, dies: 0 })).collect();
    let elsewhere = |value: ValueId| {
        let origin = &program.values[value].origin;
        matches!(origin, Origin::Param | Origin::Constant(_) | Origin::State | Origin::Version(_) | Origin::Counters)
    };
    for (step, moment) in steps.iter().zip(moments) {
        for used in step.uses.iter().filter(|used| !elsewhere(used.value)) {
            let home = program.home_of(used.value);
            let fresh = Lifetime { bytes: bytes(home), born: *moment, dies: *moment };
            lifetimes.entry(home).or_insert(fresh).dies = *moment;
        }
    }
    let last = moments.last().copied().unwrap_or(0) + 1;
    for value in program.outputs.iter().map(|(_, output)| output.value).chain(program.resident.iter().copied()) {
        if let Some(lifetime) = lifetimes.get_mut(&program.home_of(value)) {
            lifetime.dies = last;
        }
    }
    lifetimes
}

/// Plans the memory of a program, whose steps run at these moments.
///
/// # Errors
/// A value is larger than the device allows in one allocation or binding.
pub fn plan(program: &Program, steps: &[Step], moments: &[usize], limits: &Limits, device: &str) -> Result<Plan> {
    let mut planned = Plan { places: vec![None; program.values.len()], ..Plan::default() };
    let lifetimes = lifetimes(program, steps, moments);
    let mut counters = Vec::new();
    for (value, info) in program.values.iter().enumerate() {
        let own = match info.origin {
            Origin::Param => Buffer::Param(value),
            Origin::Constant(_) => Buffer::Constant(value),
            Origin::State => Buffer::State(value),
            Origin::Version(state) => {
                planned.places[value] = planned.places[state];
                continue;
            }
            Origin::Counters => {
                counters.push((value, fitting(info, limits, device)?.max(1).next_multiple_of(ALIGNMENT)));
                continue;
            }
            Origin::Input | Origin::Computed | Origin::Over(_) => {
                // What was fused away is in no memory, and may be of any size.
                if lifetimes.contains_key(&value) {
                    fitting(info, limits, device)?;
                }
                continue;
            }
        };
        let bytes = fitting(info, limits, device)?;
        planned.places[value] = Some(Place { buffer: planned.buffers.len(), offset: 0, bytes });
        planned.buffers.push(own);
    }
    if !counters.is_empty() {
        let mut end = 0;
        for (value, bytes) in counters {
            planned.places[value] = Some(Place { buffer: planned.buffers.len(), offset: end, bytes });
            end += bytes;
        }
        planned.buffers.push(Buffer::Counters(end));
    }
    let values: Vec<ValueId> = lifetimes.keys().copied().collect();
    let lifetimes: Vec<Lifetime> = lifetimes.into_values().collect();
    let apart =
        if limits.shares_memory_within_dispatch { Vec::new() } else { read_and_written(program, steps, &values) };
    let near = near_host(program, steps, &values, &lifetimes, limits.near_host_bytes);
    let far: Vec<usize> = (0..values.len()).filter(|position| !near.contains(position)).collect();
    let of_far = |position: usize| far.binary_search(&position).ok();
    let between: Vec<_> = apart.iter().filter_map(|(a, b)| Some((of_far(*a)?, of_far(*b)?))).collect();
    let rules = Rules { max_buffer: limits.max_allocation_bytes, apart: &between };
    let (places, sizes) = place(&far.iter().map(|position| lifetimes[*position].clone()).collect::<Vec<_>>(), rules);
    let first = planned.buffers.len();
    planned.buffers.extend(sizes.into_iter().map(Buffer::Activations));
    for (position, place) in far.into_iter().zip(places) {
        planned.places[values[position]] = Some(Place { buffer: place.buffer + first, ..place });
    }
    let mut end = 0;
    for position in &near {
        let bytes = taken(&lifetimes[*position]);
        planned.places[values[*position]] = Some(Place { buffer: planned.buffers.len(), offset: end, bytes });
        end += bytes;
    }
    if end > 0 {
        planned.near_host = Some(planned.buffers.len());
        planned.buffers.push(Buffer::Activations(end));
    }
    over(program, &mut planned);
    super::checked("plan", || check(&lifetimes, &planned, &values, &apart))?;
    Ok(planned)
}

/// The positions of the values that lie near the host: outputs that steps write and none reads, as long as all of them take at most so many bytes.
fn near_host(
    program: &Program,
    steps: &[Step],
    values: &[ValueId],
    lifetimes: &[Lifetime],
    most: u64,
) -> BTreeSet<usize> {
    let read: BTreeSet<ValueId> = steps
        .iter()
        .flat_map(|step| &step.uses)
        .filter(|used| used.access != Access::Write)
        .map(|used| program.home_of(used.value))
        .collect();
    let (mut near, mut left) = (BTreeSet::new(), most);
    for (_, output) in &program.outputs {
        let is_written_once = program.values[output.value].origin == Origin::Computed && !read.contains(&output.value);
        let Some(position) = values.binary_search(&output.value).ok().filter(|_| is_written_once) else { continue };
        let bytes = taken(&lifetimes[position]);
        if bytes <= left && near.insert(position) {
            left -= bytes;
        }
    }
    near
}

/// The bytes of a value that the device can hold and bind.
fn fitting(value: &Value, limits: &Limits, device: &str) -> Result<u64> {
    let bytes = u64::try_from(value.bytes.bounds().1).unwrap_or(0);
    let too_large =
        |limit, what| Error::TooLarge { tensor: value.name.clone(), bytes, limit, what, device: device.to_owned() };
    if bytes > limits.max_binding_bytes {
        return Err(too_large(limits.max_binding_bytes, "binding"));
    }
    if bytes.next_multiple_of(ALIGNMENT) > limits.max_allocation_bytes {
        return Err(too_large(limits.max_allocation_bytes, "allocation"));
    }
    Ok(bytes)
}

/// Gives each value that a step or an output touches a buffer of its own, in the order of the values: whoever runs the steps brings the memory.
///
/// # Errors
/// As [`plan`].
pub fn apart(program: &Program, steps: &[Step], limits: &Limits, device: &str) -> Result<Plan> {
    let mut touched = vec![false; program.values.len()];
    for used in steps.iter().flat_map(|step| &step.uses) {
        touched[program.home_of(used.value)] = true;
    }
    for (_, output) in &program.outputs {
        touched[program.home_of(output.value)] = true;
    }
    let mut planned = Plan { places: vec![None; program.values.len()], ..Plan::default() };
    for (value, info) in program.values.iter().enumerate().filter(|(value, _)| touched[*value]) {
        let bytes = fitting(info, limits, device)?;
        planned.places[value] = Some(Place { buffer: planned.buffers.len(), offset: 0, bytes });
        planned.buffers.push(Buffer::Activations(bytes));
    }
    over(program, &mut planned);
    Ok(planned)
}

/// What is written over something lies where that lies.
fn over(program: &Program, planned: &mut Plan) {
    for (value, info) in program.values.iter().enumerate() {
        if let Origin::Over(_) = info.origin {
            planned.places[value] = planned.places[program.home_of(value)];
        }
    }
}

/// Pairs of positions in `values` of which a step reads one and writes the other.
fn read_and_written(program: &Program, steps: &[Step], values: &[ValueId]) -> Vec<(usize, usize)> {
    let position = |value: ValueId| values.binary_search(&program.home_of(value)).ok();
    let mut apart = Vec::new();
    for step in steps {
        for read in step.uses.iter().filter(|used| !used.access.writes()) {
            for written in step.uses.iter().filter(|used| used.access.writes()) {
                if let (Some(a), Some(b)) = (position(read.value), position(written.value)) {
                    apart.push((a, b));
                }
            }
        }
    }
    apart
}

/// Free bytes of a buffer, as ranges by their starts, none touching the next.
#[derive(Debug, Default)]
struct Free {
    ranges: BTreeMap<u64, u64>,
    end: u64,
}

impl Free {
    /// The smallest range that holds `bytes`, as its start and size.
    fn best(&self, bytes: u64) -> Option<(u64, u64)> {
        self.ranges
            .iter()
            .filter(|(_, size)| **size >= bytes)
            .min_by_key(|(start, size)| (**size, **start))
            .map(|(start, size)| (*start, *size))
    }

    fn take(&mut self, start: u64, size: u64, bytes: u64) {
        self.ranges.remove(&start);
        if size > bytes {
            self.ranges.insert(start + bytes, size - bytes);
        }
    }

    /// Where the buffer would grow from: its end, or the free range that reaches it.
    fn tail(&self) -> u64 {
        match self.ranges.last_key_value() {
            Some((start, size)) if start + size == self.end => *start,
            _ => self.end,
        }
    }

    fn grow(&mut self, bytes: u64) -> u64 {
        let start = self.tail();
        self.ranges.remove(&start);
        self.end = start + bytes;
        start
    }

    fn give(&mut self, mut start: u64, mut bytes: u64) {
        if let Some((before, size)) = self.ranges.range(..start).next_back().map(|(start, size)| (*start, *size))
            && before + size == start
        {
            self.ranges.remove(&before);
            (start, bytes) = (before, bytes + size);
        }
        if let Some(size) = self.ranges.remove(&(start + bytes)) {
            bytes += size;
        }
        self.ranges.insert(start, bytes);
    }
}

/// The places of values, and the sizes of the buffers: the smaller of two plans, of which the second is only made where the first takes more than is alive at once. One places values at their births, which wastes little where they come and go like a stack; the other the largest first, which wastes little where
/// large ones come between small ones that live long.
pub fn place(lifetimes: &[Lifetime], rules: Rules<'_>) -> (Vec<Place>, Vec<u64>) {
    let mut apart: Vec<Vec<usize>> = vec![Vec::new(); lifetimes.len()];
    for (a, b) in rules.apart.iter().filter(|(a, b)| a != b) {
        apart[*a].push(*b);
        apart[*b].push(*a);
    }
    let total = |(_, sizes): &(Vec<Place>, Vec<u64>)| sizes.iter().sum::<u64>();
    let first = by_birth(lifetimes, &colours(&apart), rules.max_buffer);
    if total(&first) <= most_alive(lifetimes) {
        return first;
    }
    let second = by_size(lifetimes, &apart, rules.max_buffer);
    if total(&second) < total(&first) { second } else { first }
}

/// Bytes of the values that are alive at the fullest step: no plan takes fewer.
fn most_alive(lifetimes: &[Lifetime]) -> u64 {
    let mut changes: Vec<(usize, bool, u64)> = lifetimes
        .iter()
        .flat_map(|lifetime| {
            [(lifetime.born, true, taken(lifetime)), (lifetime.dies.max(lifetime.born) + 1, false, taken(lifetime))]
        })
        .collect();
    // Of one step, those that are gone before those that come.
    changes.sort_unstable();
    let (mut alive, mut most) = (0, 0);
    for (_, is_born, bytes) in changes {
        alive = if is_born { alive + bytes } else { alive - bytes };
        most = most.max(alive);
    }
    most
}

/// Bytes that a value takes in a buffer.
pub(super) fn taken(lifetime: &Lifetime) -> u64 {
    lifetime.bytes.max(1).next_multiple_of(ALIGNMENT)
}

/// Places values from the largest to the smallest, each in the buffer that grows least by it, in the smallest gap between those that are alive with it.
fn by_size(lifetimes: &[Lifetime], apart: &[Vec<usize>], max_buffer: u64) -> (Vec<Place>, Vec<u64>) {
    // Of each buffer its size so far.
    let mut buffers: Vec<u64> = Vec::new();
    let mut placed = Alive::new(lifetimes);
    let mut places: Vec<Option<Place>> = vec![None; lifetimes.len()];
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    // Of equal ones the long-lived first: the short-lived fit between them.
    order.sort_by_key(|value| {
        let Lifetime { bytes, born, dies } = lifetimes[*value];
        (std::cmp::Reverse((bytes, dies.saturating_sub(born))), born, *value)
    });
    for value in order {
        let (lifetime, bytes) = (&lifetimes[value], taken(&lifetimes[value]));
        let together =
            |other: &usize| lifetime.born <= lifetimes[*other].dies && lifetimes[*other].born <= lifetime.dies;
        let mut together_in: Vec<Vec<Place>> = vec![Vec::new(); buffers.len()];
        for place in placed.about(lifetime).filter(together).filter_map(|other| places[other]) {
            together_in[place.buffer].push(place);
        }
        let is_apart =
            |buffer: usize| apart[value].iter().any(|other| places[*other].is_some_and(|place| place.buffer == buffer));
        // By how much the buffer grows, the size of the gap, the buffer and the place in it.
        let mut best: Option<(u64, u64, usize, u64)> = None;
        for (buffer, (end, mut alive)) in buffers.iter().zip(together_in).enumerate() {
            if is_apart(buffer) {
                continue;
            }
            alive.sort_unstable_by_key(|place| place.offset);
            let mut offer = |offset: u64, gap: u64| {
                let offered = ((offset + bytes).saturating_sub(*end), gap, buffer, offset);
                if offset + bytes <= max_buffer {
                    best = Some(best.map_or(offered, |known| known.min(offered)));
                }
            };
            let mut offset = 0;
            for place in alive {
                if place.offset >= offset + bytes {
                    offer(offset, place.offset - offset);
                }
                offset = offset.max(place.offset + place.bytes);
            }
            offer(offset, end.saturating_sub(offset).max(bytes));
        }
        // Where a buffer would grow by all of it, one of its own takes no more, and leaves more choice to those that must lie apart from it.
        let shared = best.filter(|(growth, ..)| *growth < bytes || apart[value].is_empty());
        let (_, _, buffer, offset) = shared.unwrap_or_else(|| {
            buffers.push(0);
            (bytes, bytes, buffers.len() - 1, 0)
        });
        buffers[buffer] = buffers[buffer].max(offset + bytes);
        placed.place(value, lifetime);
        places[value] = Some(Place { buffer, offset, bytes });
    }
    let nowhere = Place { buffer: 0, offset: 0, bytes: 0 };
    let places = places.into_iter().map(|place| place.unwrap_or(nowhere)).collect();
    (places, buffers)
}

/// Places values by best fit: at its birth each gets the smallest free range that holds it, and ranges that become free grow together.
fn by_birth(lifetimes: &[Lifetime], colours: &[usize], max_buffer: u64) -> (Vec<Place>, Vec<u64>) {
    let mut buffers: Vec<(usize, Free)> = Vec::new();
    let mut places = vec![Place { buffer: 0, offset: 0, bytes: 0 }; lifetimes.len()];
    let mut births: Vec<usize> = (0..lifetimes.len()).collect();
    births.sort_by_key(|value| (lifetimes[*value].born, std::cmp::Reverse(lifetimes[*value].bytes), *value));
    let mut alive: Vec<usize> = Vec::new();
    for value in births {
        let lifetime = &lifetimes[value];
        alive.retain(|other| {
            let over = lifetimes[*other].dies < lifetime.born;
            if over {
                let Place { buffer, offset, bytes } = places[*other];
                buffers[buffer].1.give(offset, bytes);
            }
            !over
        });
        let bytes = taken(lifetime);
        let fit = buffers
            .iter()
            .enumerate()
            .filter(|(_, (colour, _))| *colour == colours[value])
            .filter_map(|(buffer, (_, free))| free.best(bytes).map(|(start, size)| (size, buffer, start)))
            .min();
        let (buffer, offset) = if let Some((size, buffer, start)) = fit {
            buffers[buffer].1.take(start, size, bytes);
            (buffer, start)
        } else {
            let room = |(colour, free): &(usize, Free)| *colour == colours[value] && free.tail() + bytes <= max_buffer;
            let buffer = buffers.iter().position(room).unwrap_or_else(|| {
                buffers.push((colours[value], Free::default()));
                buffers.len() - 1
            });
            (buffer, buffers[buffer].1.grow(bytes))
        };
        places[value] = Place { buffer, offset, bytes };
        alive.push(value);
    }
    (places, buffers.into_iter().map(|(_, free)| free.end).collect())
}

/// The smallest colour for each that none of those has from which it must be apart.
fn colours(apart: &[Vec<usize>]) -> Vec<usize> {
    let mut colours: Vec<Option<usize>> = vec![None; apart.len()];
    for (value, neighbours) in apart.iter().enumerate() {
        let mut colour = 0;
        while neighbours.iter().any(|other| colours[*other] == Some(colour)) {
            colour += 1;
        }
        colours[value] = Some(colour);
    }
    colours.into_iter().map(|colour| colour.unwrap_or(0)).collect()
}

/// What this stage leaves: no two values that are alive together share bytes, and pairs that must be apart are.
fn check(lifetimes: &[Lifetime], plan: &Plan, values: &[ValueId], apart: &[(usize, usize)]) -> Result<(), String> {
    let place = |position: usize| plan.places[values[position]].ok_or_else(|| format!("value {position} has no place"));
    for a in 0..values.len() {
        let here = place(a)?;
        let Some(Buffer::Activations(size)) = plan.buffers.get(here.buffer) else {
            return Err(format!("value {a} is not in activation memory"));
        };
        if here.offset % ALIGNMENT != 0 || here.offset + here.bytes > *size || here.bytes < lifetimes[a].bytes {
            return Err(format!("value {a} is not within its buffer"));
        }
        for b in 0..a {
            let there = place(b)?;
            let together = lifetimes[a].born <= lifetimes[b].dies && lifetimes[b].born <= lifetimes[a].dies;
            let touching = here.buffer == there.buffer
                && here.offset < there.offset + there.bytes
                && there.offset < here.offset + here.bytes;
            if together && touching {
                return Err(format!("values {a} and {b} are alive together and share bytes"));
            }
        }
    }
    for (a, b) in apart {
        if a != b && place(*a)?.buffer == place(*b)?.buffer {
            return Err(format!("values {a} and {b} are read and written by one step and share a buffer"));
        }
    }
    Ok(())
}
