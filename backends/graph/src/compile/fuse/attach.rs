//! Regions go into the kernels beside them: an epilogue behind the kernel that makes what it reads, a prologue before the one that reads what it makes.
//!
//! The kernels are those of candidates, and of pulls that move elements, such as gathers. These take what kernels of candidates leave, and get a kernel that binds elements rather than words (`pull::by_elements`).
//!
//! **What may.** The value between them is read and written element by element: its elements lie one after the other for both. A prologue's only value is read by that kernel alone. An epilogue may leave the value to others, which then is written beside
//! its own. No third piece of work stands between the two. The kernel is one that touches its buffer by whole elements, as its IR tells, and what comes of it binds no more buffers than the device allows. Epilogues are sought first: they are never computed twice.
//!
//! **What pays.** An epilogue saves the writing and the reading of a value, or the reading alone; into kernels of which nobody says how often they read, such as products, which may be short of registers rather than of memory, none goes by itself. A prologue is computed and its operands are read as often as the kernel reads the element ([`Candidate::passes`]), which is once for most, up to three times where a norm does not hold its
//! rows, and where a gather repeats rows as often as its result is larger than what it reads. It is put there if no more bytes are read and written than before, and if what is computed again is no more than [`AGAIN`] maps an element. Operands of which neighbours lie apart, which a region of its own reads in blocks, are left
//! to it where they are larger than a cache ([`CACHED`]).
//!
//! On the CPU the kernels of candidates are compiled and those that come of this are evaluated, and many candidates are functions of the host: there it is done only if the options ask for it.
//!
//! [`Candidate::passes`]: crate::op::Candidate::passes

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use trefoil_codegen::artefact::Access;
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::{DeviceKind, Properties};

use super::kernel::describe;
use super::splice::{Facts, Joint, Spliced, Touched};
use super::{Region, Stage, is_flat};
use crate::compile::cache::Kernels;
use crate::compile::program::{KernelsWork, Located, ValueId, Work};
use crate::compile::pull::by_elements;
use crate::compile::{IntoKernels, Options};
use crate::op::{KernelStep, Slot, Step as OpStep};

/// Maps that may be computed again for an element where its kernel reads it more than once.
pub const AGAIN: usize = 16;
/// Bytes of which reads in any order come from a cache.
pub const CACHED: i64 = 1 << 16;

/// Where a region stands to its kernel; [`crate::Options::forbid`] takes the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// It computes what the kernel reads.
    Prologue,
    /// It goes on with what the kernel writes.
    Epilogue,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Prologue, Self::Epilogue];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prologue => "prologue",
            Self::Epilogue => "epilogue",
        }
    }
}

/// What was decided for a region and a kernel beside it, for `explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The node with the kernel.
    pub node: String,
    /// On which side.
    pub side: Side,
    /// The maps.
    pub maps: String,
    /// Bytes that are not moved at the upper bounds of the symbols, if they are one.
    pub saved: u64,
    /// Why they are not one, if they are not.
    pub refused: Option<String>,
}

impl fmt::Display for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, side, maps, saved, refused } = self;
        match refused {
            None => write!(f, "{node}: {maps} as its {}, {saved} bytes saved", side.name()),
            Some(reason) => write!(f, "{node}: {maps} not as its {}: {reason}", side.name()),
        }
    }
}

/// A candidate's kernels with regions in them.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The op.
    pub(crate) op: KernelsWork,
    /// Regions that compute inputs.
    pub(crate) before: Vec<(usize, Spliced)>,
    /// The region behind an output, and whether that is written too.
    pub(crate) behind: Option<(usize, Spliced, bool)>,
}

impl Joined {
    /// What is put into a step; nothing into one that touches none of it.
    pub(crate) fn joint(&self, step: &KernelStep, facts: &Facts) -> Option<Joint<'_>> {
        let at = |slot: Slot| {
            let own = step.bindings.iter().enumerate();
            own.filter(move |(_, own)| **own == slot).map(|(at, _)| at)
        };
        let mut before = Vec::new();
        for (input, region) in &self.before {
            before.extend(at(Slot::Input(*input)).map(|binding| (binding, region)));
        }
        let behind = self.behind.as_ref();
        let behind =
            behind.and_then(|(output, region, keeps)| Some((at(Slot::Output(*output)).next()?, region, *keeps)));
        if before.is_empty() && behind.is_none() {
            return None;
        }
        let reads = |binding: &usize| matches!(facts.touched.get(*binding), Some(Touched::Read(_)));
        let empty = at(Slot::Empty).filter(reads).map(|binding| binding as u32).collect();
        Some(Joint { before, behind, empty })
    }

    /// Why this cannot be, if it cannot.
    fn check(&self, kernels: Kernels<'_>, device: &Properties, most: usize) -> Result<(), String> {
        let Some(chosen) = &self.op.chosen else { return Err("nothing was chosen for it".to_owned()) };
        let touches = |slot: &Slot| {
            self.before.iter().any(|(input, _)| *slot == Slot::Input(*input))
                || self.behind.as_ref().is_some_and(|(output, ..)| *slot == Slot::Output(*output))
        };
        for region in
            self.before.iter().map(|(_, region)| region).chain(self.behind.iter().map(|(_, region, _)| region))
        {
            if !region.computes {
                return Err(format!("{} lacks a type of its elements", device.name));
            }
        }
        if self.before.iter().any(|(_, region)| region.reads.is_empty()) {
            return Err("it reads nothing".to_owned());
        }
        for step in &chosen.implementation.steps {
            let step = match step {
                OpStep::Kernel(step) => step,
                OpStep::Call(call) if call.reads.iter().chain(&call.writes).any(touches) => {
                    return Err(format!("`{}` is no kernel", call.name));
                }
                OpStep::Call(_) => continue,
            };
            let facts = kernels.facts(&step.kernel);
            for (slot, binding) in step.bindings.iter().zip(&*step.kernel.bindings) {
                if matches!(slot, Slot::Output(_)) && touches(slot) && binding.access != Access::Write {
                    return Err(format!("`{}` reads what it wrote to `{}`", step.kernel.name, binding.name));
                }
            }
            let twice = |slot: &&Slot| step.bindings.iter().filter(|own| own == slot).count() > 1;
            if step
                .bindings
                .iter()
                .filter(|slot| matches!(slot, Slot::Output(_)) && touches(slot))
                .any(|slot| twice(&slot))
            {
                return Err(format!("`{}` binds the output twice", step.kernel.name));
            }
            let Some(joint) = self.joint(step, &facts) else { continue };
            let name = |binding: usize| &step.kernel.bindings[binding].name;
            for (binding, region) in &joint.before {
                let Some(Touched::Read(lanes)) = facts.touched.get(*binding) else {
                    let kernel = &step.kernel.name;
                    return Err(format!("`{kernel}` does not read `{}` by whole elements alone", name(*binding)));
                };
                fits(&step.kernel.bindings[*binding].element.name, region)?;
                scattered(region, lanes)?;
            }
            if let Some((binding, region, _)) = &joint.behind {
                let Some(Touched::Written(lanes)) = facts.touched.get(*binding) else {
                    let kernel = &step.kernel.name;
                    return Err(format!("`{kernel}` does not write `{}` by whole elements alone", name(*binding)));
                };
                fits(&step.kernel.bindings[*binding].element.name, region)?;
                scattered(region, lanes)?;
            }
            let bound = joint.held(step.kernel.bindings.len()).len();
            if bound > most {
                return Err(format!("it would bind {bound} buffers, of which there may be {most}"));
            }
        }
        Ok(())
    }
}

/// Whether a kernel's elements are those of a region, or other integers of as many bits.
fn fits(element: &str, region: &Spliced) -> Result<(), String> {
    let stored = region.element.stored();
    let same = match element {
        "u32" => matches!(stored, Scalar::U32 | Scalar::I32),
        "i32" => matches!(stored, Scalar::I32 | Scalar::U32),
        "u64" | "i64" => matches!(stored, Scalar::U64 | Scalar::I64),
        other => stored.rust_name() == other,
    };
    if same { Ok(()) } else { Err(format!("the kernel takes its {} as {element}", region.element)) }
}

/// Whether reads of a region that lie apart are few enough.
fn scattered(region: &Spliced, lanes: &[u8]) -> Result<(), String> {
    let by_vectors = lanes.iter().any(|lanes| *lanes > 1);
    match region.scattered(by_vectors).find(|bytes| *bytes > CACHED) {
        Some(bytes) => Err(format!("it reads {bytes} bytes of which neighbours lie apart")),
        None => Ok(()),
    }
}

impl<'p> Stage<'p> {
    /// Puts regions into kernels, and tells what was decided.
    pub(super) fn attach_all(&mut self, kernels: Kernels<'_>, options: &Options, device: &Properties) -> Vec<Merge> {
        let mut told = Vec::new();
        let maker = Maker { kernels, options, device };
        let works = || self.program.works.iter().enumerate();
        let ops = works().filter(|(_, work)| matches!(work, Work::Kernels(op) if op.chosen.is_some()));
        // Pulls take what kernels of candidates leave.
        let pulls = works().filter(|(_, work)| matches!(work, Work::Pull(_)));
        for all in [ops.map(|(at, _)| at).collect::<Vec<_>>(), pulls.map(|(at, _)| at).collect()] {
            for side in [Side::Epilogue, Side::Prologue] {
                for at in &all {
                    match side {
                        Side::Epilogue => self.epilogue(*at, &maker, &mut told),
                        Side::Prologue => self.prologues(*at, &maker, &mut told),
                    }
                }
            }
        }
        told
    }

    /// A work as kernels: those of its candidate, or that of a pull which moves elements, made where regions may go into it.
    fn op(&self, at: usize, side: Side, maker: &Maker<'_>) -> Option<Cow<'p, KernelsWork>> {
        match &self.program.works[at] {
            Work::Kernels(op) => Some(Cow::Borrowed(op)),
            Work::Pull(_) if maker.allowed(side).is_err() => None,
            Work::Pull(pull) => by_elements(self.program, pull, maker.kernels, maker.device).map(Cow::Owned),
            Work::Map(_) | Work::Fill(_) | Work::Update(_) => None,
        }
    }

    /// Whether a group is a region.
    pub(super) fn is_region(&self, group: usize) -> bool {
        self.members
            .get(&group)
            .is_some_and(|members| members.iter().all(|member| matches!(self.program.works[*member], Work::Map(_))))
    }

    /// The region of a group, which gives these values out.
    fn region(&self, group: usize, outputs: Vec<ValueId>) -> Region {
        let maps: Vec<_> = self.maps(group).cloned().collect();
        Region { maps, outputs, elements: self.elements_of(group) }
    }

    fn joined(&self, at: usize, op: &KernelsWork) -> Joined {
        let fresh = || Joined { op: op.clone(), before: Vec::new(), behind: None };
        self.joined.get(&at).cloned().unwrap_or_else(fresh)
    }

    fn bytes(&self, value: ValueId) -> u64 {
        u64::try_from(self.program.values[value].bytes.bounds().1).unwrap_or(0)
    }

    fn epilogue(&mut self, at: usize, maker: &Maker<'_>, told: &mut Vec<Merge>) {
        let Some(own) = self.group[at] else { return };
        for (output, value) in self.program.works[at].writes().iter().enumerate() {
            let readers = self.readers.get(value).map_or(&[][..], Vec::as_slice);
            let groups: BTreeSet<usize> = readers
                .iter()
                .filter_map(|reader| self.group[*reader])
                .filter(|group| self.is_region(*group))
                .collect();
            for group in groups {
                let Some(op) = self.op(at, Side::Epilogue, maker) else { return };
                let keeps = self.leaves(*value, &[own, group]);
                let made = self.behind(&op, (at, own), (output, *value), group, keeps, maker);
                let saved = self.bytes(*value) * if keeps { 1 } else { 2 };
                told.extend(self.tell(&op, Side::Epilogue, group, saved, made.as_ref().err()));
                if let Ok(joined) = made {
                    self.joined.insert(at, joined);
                    self.merge(own, group);
                    return;
                }
            }
        }
    }

    fn behind(
        &self,
        op: &KernelsWork,
        (at, own): (usize, usize),
        (output, value): (usize, ValueId),
        group: usize,
        keeps: bool,
        maker: &Maker<'_>,
    ) -> Result<Joined, String> {
        maker.allowed(Side::Epilogue)?;
        if op.chosen.iter().any(|chosen| !chosen.over.is_empty()) {
            return Err("its kernels write over an operand, of which they leave a part as it is".to_owned());
        }
        let known = op.chosen.iter().flat_map(|chosen| &chosen.passes).any(Option::is_some);
        if !known && maker.options.into_kernels != IntoKernels::Everywhere {
            return Err("what that costs its kernels is not known".to_owned());
        }
        let of_op = |read: &&Located| op.outputs.contains(&read.value);
        let reads = || self.maps(group).flat_map(|map| &map.inputs).filter(of_op);
        if !reads().all(|read| read.value == value && is_flat(self.program, read)) {
            return Err("it reads it otherwise than element by element".to_owned());
        }
        let elements = self.program.values[value].ty.as_ref().map(|ty| ty.elements());
        if self.maps(group).next().map(|map| self.elements(map)) != elements {
            return Err("it has another number of elements".to_owned());
        }
        if self.roundabout(own, group) {
            return Err("other work stands between them".to_owned());
        }
        let made = self.maps(group).map(|map| map.output);
        let outputs: Vec<ValueId> = made.filter(|made| self.leaves(*made, &[group])).collect();
        let region = self.region(group, outputs);
        let spliced = Spliced::new(self.program, &region, self.fills, maker.device, Some(value));
        let mut joined = self.joined(at, op);
        joined.behind = Some((output, spliced, keeps));
        joined.check(maker.kernels, maker.device, self.max_buffers)?;
        Ok(joined)
    }

    fn prologues(&mut self, at: usize, maker: &Maker<'_>, told: &mut Vec<Merge>) {
        for (input, located) in self.program.works[at].reads().enumerate() {
            let Some(own) = self.group[at] else { return };
            let producer = self.producer.get(&located.value).and_then(|producer| self.group[*producer]);
            let Some(group) = producer.filter(|group| *group != own && self.is_region(*group)) else { continue };
            let Some(op) = self.op(at, Side::Prologue, maker) else { return };
            let made = self.before(&op, (at, own), (input, located), group, maker);
            let saved = 2 * self.bytes(located.value);
            told.extend(self.tell(&op, Side::Prologue, group, saved, made.as_ref().err()));
            if let Ok(joined) = made {
                self.joined.insert(at, joined);
                self.merge(own, group);
            }
        }
    }

    fn before(
        &self,
        op: &KernelsWork,
        (at, own): (usize, usize),
        (input, located): (usize, &Located),
        group: usize,
        maker: &Maker<'_>,
    ) -> Result<Joined, String> {
        maker.allowed(Side::Prologue)?;
        let value = located.value;
        if op.chosen.iter().any(|chosen| chosen.over.contains(&value)) {
            return Err("its kernels write over it".to_owned());
        }
        if !is_flat(self.program, located) {
            return Err("its elements are read in another order".to_owned());
        }
        let others = self.maps(group).map(|map| map.output).any(|made| made != value && self.leaves(made, &[group]));
        if others || self.leaves(value, &[own, group]) {
            return Err("others read what it makes".to_owned());
        }
        let readers = self.readers.get(&value).map_or(&[][..], Vec::as_slice);
        let mine = op.inputs.iter().filter(|input| input.value == value).count();
        if mine != 1 || readers.iter().any(|reader| *reader != at && self.group[*reader] == Some(own)) {
            return Err("what it makes is read twice".to_owned());
        }
        if self.roundabout(group, own) {
            return Err("other work stands between them".to_owned());
        }
        let region = self.region(group, vec![value]);
        let spliced = Spliced::new(self.program, &region, self.fills, maker.device, None);
        let home = |value: &ValueId| self.program.state_of(self.program.home_of(*value));
        let over: BTreeSet<_> = op.chosen.iter().flat_map(|chosen| &chosen.over).map(home).collect();
        if spliced.reads.iter().any(|read| over.contains(&home(read))) {
            return Err("it reads what its kernels write over".to_owned());
        }
        maker.pays(op, input, &spliced, self.bytes(value), |read| self.bytes(read))?;
        let mut joined = self.joined(at, op);
        joined.before.push((input, spliced));
        joined.check(maker.kernels, maker.device, self.max_buffers)?;
        Ok(joined)
    }

    fn tell(&self, op: &KernelsWork, side: Side, group: usize, saved: u64, refused: Option<&String>) -> Option<Merge> {
        let maps: Vec<_> = self.maps(group).cloned().collect();
        let node = op.outputs.first().map(|output| self.program.values[*output].name.clone())?;
        let refused = refused.cloned();
        let saved = if refused.is_some() { 0 } else { saved };
        Some(Merge { node, side, maps: describe(&maps), saved, refused })
    }
}

/// What decides besides the graph.
struct Maker<'a> {
    kernels: Kernels<'a>,
    options: &'a Options,
    device: &'a Properties,
}

impl Maker<'_> {
    fn allowed(&self, side: Side) -> Result<(), String> {
        if self.options.forbid.contains(side.name()) {
            return Err("forbidden".to_owned());
        }
        if self.device.kind == DeviceKind::Cpu && self.options.into_kernels != IntoKernels::Everywhere {
            return Err("the processor has the kernel compiled".to_owned());
        }
        Ok(())
    }

    /// Whether a prologue is worth what is read and computed again.
    fn pays(
        &self,
        op: &KernelsWork,
        input: usize,
        region: &Spliced,
        value: u64,
        bytes: impl Fn(ValueId) -> u64,
    ) -> Result<(), String> {
        if self.options.into_kernels == IntoKernels::Everywhere {
            return Ok(());
        }
        let Some(passes) = op.chosen.as_ref().and_then(|chosen| chosen.passes.get(input).copied().flatten()) else {
            return Err("how often its kernel reads an element is not known".to_owned());
        };
        let again = region.region.maps.len() * (passes as usize).saturating_sub(1);
        if again > AGAIN {
            return Err(format!("{again} maps would be computed again for each element"));
        }
        let passes = u64::from(passes);
        let reads: u64 = region.reads.iter().map(|read| bytes(*read)).sum();
        let (apart, together) = (reads + value + passes * value, passes * reads);
        if together > apart {
            return Err(format!("{together} bytes would be read where {apart} are moved"));
        }
        Ok(())
    }
}
