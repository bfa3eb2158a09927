//! Maps become regions; each region is one generated kernel.
//!
//! A region is a set of maps with equally many elements that read each other element by element, so that an invocation computes all of
//! them for its position. What is read otherwise (through a view that moves elements, or broadcast) comes from memory, by strides. Fills are literals. A
//! value that only its own region reads never exists in memory. Then regions go into the kernels beside them ([`attach`]), and small ones that need nothing of each other share a kernel ([`beside`]).

pub mod attach;
pub mod beside;
mod between;
mod features;
pub mod kernel;
mod plan;
mod read;
pub(crate) mod splice;
mod turn;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use trefoil_codegen::target::Profile;
use trefoil_dsl::device::Properties;

use self::attach::{Joined, Merge, Side};
use self::beside::Beside;
use self::between::Places;
use super::cache::Kernels;
use super::program::{FillWork, Located, MapWork, Program, ValueId, Work};
use super::{Options, checked};
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::ops::map::Contiguous;
use crate::types::ElementType;

/// Maps in a region, at most: three times as many as the longest that tests and measurements fuse have, and few enough for the compilers of drivers, which may take far longer or give up where a kernel is longer still.
pub const MOST_MAPS: usize = 256;

/// Maps that one kernel computes.
#[derive(Clone, Debug)]
pub struct Region {
    /// In an order in which they can be computed.
    pub maps: Vec<MapWork>,
    /// The values that others read, in the order of the maps.
    pub outputs: Vec<ValueId>,
    /// How many elements each map has.
    pub elements: Dim,
}

/// What is left after fusion: work that is done by kernels, in an order in which it can be done.
#[derive(Clone, Debug)]
pub enum Group {
    /// A generated kernel.
    Region(Region),
    /// The chosen candidate of the op at that position of [`Program::works`].
    Kernels(usize),
    /// A candidate with regions in its kernels.
    Joined(Box<Joined>),
    /// The pull at that position.
    Pull(usize),
    /// The update at that position.
    Update(usize),
}

/// The bits of the fills of a program, by their values.
pub type Fills = BTreeMap<ValueId, u64>;

/// What this stage leaves.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The work.
    pub groups: Vec<Group>,
    /// The bits of the fills.
    pub fills: Fills,
    /// What was decided of regions beside kernels.
    pub merges: Vec<Merge>,
    /// Small regions that share a kernel.
    pub beside: Vec<Beside>,
}

/// Puts the maps of a program together.
///
/// # Errors
/// The checker finds a fault of this stage.
pub fn fuse(program: &Program, options: &Options, kernels: Kernels<'_>, device: &Properties) -> Result<Fused> {
    let fills: Fills = program
        .works
        .iter()
        .filter_map(|work| match work {
            Work::Fill(fill) => Some((fill.output, fill.bits)),
            Work::Map(_) | Work::Pull(_) | Work::Update(_) | Work::Kernels(_) => None,
        })
        .collect();
    let mut stage = Stage::new(program, &fills, max_buffers(device));
    let (mut merges, mut beside) = (Vec::new(), Vec::new());
    if options.fuse {
        stage.merge_all();
        merges = stage.attach_all(kernels, options, device);
        checked("fuse", || stage.check_places())?;
        beside = stage.beside_all(options)?;
    }
    let groups = stage.groups()?;
    checked("fuse", || check(program, &groups, &fills))?;
    Ok(Fused { groups, fills, merges, beside })
}

/// What [`Options::forbid`] takes of regions beside the names of candidates.
pub(crate) fn forbidden_names() -> impl Iterator<Item = &'static str> {
    Side::ALL.map(Side::name).into_iter().chain([beside::NAME])
}

/// How many buffers a generated kernel may bind: it is compiled for every device of the target, whatever more this one has.
pub(super) fn max_buffers(device: &Properties) -> usize {
    let portable = Profile::portable(device.kind.target()).max_storage_buffers;
    device.limits.max_storage_buffers.min(portable) as usize
}

/// Whether element `i` of what is read is element `i` of the memory, as the value's maker computed it: not its bits as another type.
pub(super) fn is_flat(program: &Program, read: &Located) -> bool {
    let same = program.values[read.value].ty.as_ref().is_some_and(|ty| ty.element == read.ty.element);
    same && read.layout.is_contiguous(&read.ty.shape)
}

struct Stage<'p> {
    program: &'p Program,
    fills: &'p Fills,
    max_buffers: usize,
    /// For each work, the group that it is in, named by its first member; `None` for a fill that nothing needs in memory.
    group: Vec<Option<usize>>,
    members: BTreeMap<usize, Vec<usize>>,
    producer: BTreeMap<ValueId, usize>,
    /// For each value, the works that read it.
    readers: BTreeMap<ValueId, Vec<usize>>,
    /// For each work, those that read what it makes, or replace what it reads.
    after: Vec<Vec<usize>>,
    places: Places,
    given_out: BTreeSet<ValueId>,
    /// Ops with regions in their kernels, by their works, after which their groups are named.
    joined: BTreeMap<usize, Joined>,
}

impl<'p> Stage<'p> {
    fn new(program: &'p Program, fills: &'p Fills, max_buffers: usize) -> Self {
        let mut stage = Self {
            program,
            fills,
            max_buffers,
            group: Vec::new(),
            members: BTreeMap::new(),
            producer: BTreeMap::new(),
            readers: BTreeMap::new(),
            after: Vec::new(),
            places: Places::new(program.works.len()),
            given_out: program.outputs.iter().map(|(_, output)| output.value).collect(),
            joined: BTreeMap::new(),
        };
        // For each version of a state, and each operand, that is written over, the work that does it.
        let mut replaced: BTreeMap<ValueId, usize> = BTreeMap::new();
        for (index, work) in program.works.iter().enumerate() {
            for read in work.reads() {
                stage.readers.entry(read.value).or_default().push(index);
            }
            for value in work.writes() {
                stage.producer.insert(*value, index);
            }
            replaced.extend(work.replaces().iter().map(|gone| (*gone, index)));
        }
        let after = program.works.iter().map(|work| {
            let readers = work.writes().iter().filter_map(|value| stage.readers.get(value)).flatten();
            let replacing = work.reads().filter_map(|read| replaced.get(&read.value));
            let mut after: Vec<usize> = readers.chain(replacing).copied().collect();
            after.sort_unstable();
            after.dedup();
            after
        });
        stage.after = after.collect();
        for (index, work) in program.works.iter().enumerate() {
            let needed = match work {
                Work::Fill(fill) => stage.fill_in_memory(fill),
                Work::Map(_) | Work::Pull(_) | Work::Update(_) | Work::Kernels(_) => true,
            };
            stage.group.push(needed.then_some(index));
            if needed {
                stage.members.insert(index, vec![index]);
            }
        }
        stage
    }

    /// Maps read fills as literals; everybody else reads memory.
    fn fill_in_memory(&self, fill: &FillWork) -> bool {
        self.given_out.contains(&fill.output)
            || self.readers.get(&fill.output).is_some_and(|readers| {
                readers.iter().any(|reader| !matches!(self.program.works[*reader], Work::Map(_)))
            })
    }

    fn merge_all(&mut self) {
        for (index, work) in self.program.works.iter().enumerate() {
            let Work::Map(map) = work else { continue };
            for input in &map.inputs {
                let producer = self.producer.get(&input.value).copied();
                let Some(producer) = producer.filter(|producer| matches!(self.program.works[*producer], Work::Map(_)))
                else {
                    continue;
                };
                if let (Some(first), Some(second)) = (self.group[producer], self.group[index])
                    && first != second
                    && self.may_merge(first, second)
                {
                    self.merge(first, second);
                }
            }
        }
    }

    fn elements(&self, map: &MapWork) -> Dim {
        self.program.values[map.output].ty.as_ref().map_or(Dim::from(0i64), |ty| ty.elements())
    }

    /// How many elements the maps of a group have.
    fn elements_of(&self, group: usize) -> Dim {
        self.maps(group).next().map_or(Dim::from(0i64), |map| self.elements(map))
    }

    fn maps(&self, group: usize) -> impl Iterator<Item = &'p MapWork> + '_ {
        self.members[&group].iter().filter_map(|member| match &self.program.works[*member] {
            Work::Map(map) => Some(map),
            Work::Fill(_) | Work::Pull(_) | Work::Update(_) | Work::Kernels(_) => None,
        })
    }

    /// Whether `first`, of which `second` reads something, can be computed in one kernel with it.
    fn may_merge(&self, first: usize, second: usize) -> bool {
        let (Some(a), Some(b)) = (self.maps(first).next(), self.maps(second).next()) else {
            return false;
        };
        let maps = self.members[&first].len() + self.members[&second].len();
        if maps > MOST_MAPS || self.elements(a) != self.elements(b) {
            return false;
        }
        let all_flat = self
            .maps(second)
            .flat_map(|map| &map.inputs)
            .filter(|read| self.is_made(read.value, &[first]))
            .all(|read| is_flat(self.program, read));
        all_flat && self.buffers(&[first, second]) <= self.max_buffers && !self.roundabout(first, second)
    }

    /// Buffers that a kernel for these groups together would bind.
    fn buffers(&self, groups: &[usize]) -> usize {
        let maps = || groups.iter().flat_map(|group| self.maps(*group));
        // What is read as two types is bound twice.
        let read: BTreeSet<(ValueId, ElementType)> = maps()
            .flat_map(|map| &map.inputs)
            .map(|read| (read.value, read.ty.element))
            .filter(|(value, _)| !self.is_made(*value, groups) && !self.fills.contains_key(value))
            .collect();
        let written = maps().filter(|map| self.leaves(map.output, groups)).count();
        read.len() + written
    }

    /// Whether one of these groups makes a value.
    fn is_made(&self, value: ValueId, groups: &[usize]) -> bool {
        let maker = self.producer.get(&value).and_then(|producer| self.group[*producer]);
        maker.is_some_and(|maker| groups.contains(&maker))
    }

    /// Whether a value is read outside these groups.
    fn leaves(&self, value: ValueId, groups: &[usize]) -> bool {
        self.given_out.contains(&value)
            || self.readers.get(&value).is_some_and(|readers| {
                readers.iter().any(|reader| self.group[*reader].is_none_or(|group| !groups.contains(&group)))
            })
    }

    fn groups(&self) -> Result<Vec<Group>> {
        Ok(self.in_order()?.into_iter().map(|group| self.group_of(group)).collect())
    }

    /// The groups, each after those that it reads; otherwise in the order of their last members.
    fn in_order(&self) -> Result<Vec<usize>> {
        let mut waiting: BTreeMap<usize, usize> = self.members.keys().map(|group| (*group, 0)).collect();
        for group in self.members.keys() {
            for next in self.successors(*group) {
                *waiting.entry(next).or_default() += 1;
            }
        }
        let key = |group: usize| (self.members[&group].last().copied().unwrap_or(group), group);
        let mut ready: BTreeSet<(usize, usize)> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(group, _)| key(*group)).collect();
        let mut groups = Vec::new();
        while let Some((_, group)) = ready.pop_first() {
            groups.push(group);
            for next in self.successors(group) {
                let count = waiting.entry(next).or_default();
                *count -= 1;
                if *count == 0 {
                    ready.insert(key(next));
                }
            }
        }
        if groups.len() != self.members.len() {
            return Err(Error::Stage { stage: "fuse", defect: "groups read each other in a circle".to_owned() });
        }
        Ok(groups)
    }

    fn group_of(&self, group: usize) -> Group {
        let members = &self.members[&group];
        if let Some(joined) = self.joined.get(&group) {
            return Group::Joined(Box::new(joined.clone()));
        }
        let maps: Vec<MapWork> = match &self.program.works[members[0]] {
            Work::Kernels(_) => return Group::Kernels(members[0]),
            Work::Pull(_) => return Group::Pull(members[0]),
            Work::Update(_) => return Group::Update(members[0]),
            // A fill in memory is a copy of itself: the copy's read is a literal.
            Work::Fill(fill) => vec![self.materialised(fill)],
            Work::Map(_) => self.maps(group).cloned().collect(),
        };
        let elements = maps.first().map_or(Dim::from(0i64), |map| self.elements(map));
        let outputs = maps.iter().map(|map| map.output).filter(|value| self.leaves(*value, &[group])).collect();
        Group::Region(Region { maps, outputs, elements })
    }

    fn materialised(&self, fill: &FillWork) -> MapWork {
        let value = &self.program.values[fill.output];
        let inputs = value.ty.iter().map(|ty| Located {
            tensor: match value.meaning {
                super::program::Meaning::Tensor(tensor) | super::program::Meaning::Copy(tensor) => tensor,
                super::program::Meaning::Scratch { .. } | super::program::Meaning::Counters { .. } => {
                    self.program.outputs[0].1.tensor
                }
            },
            value: fill.output,
            ty: ty.clone(),
            layout: crate::types::Layout::contiguous(&ty.shape),
        });
        MapWork { node: fill.node, op: std::sync::Arc::new(Contiguous), inputs: inputs.collect(), output: fill.output }
    }
}

/// What this stage leaves: groups read only what earlier groups give out, and every work that is needed is in one group.
fn check(program: &Program, groups: &[Group], fills: &Fills) -> Result<(), String> {
    let mut there: BTreeSet<ValueId> = (0..program.values.len())
        .filter(|value| program.values[*value].origin.is_given() || fills.contains_key(value))
        .collect();
    let name = |value: ValueId| &program.values[value].name;
    for group in groups {
        match group {
            Group::Kernels(index) | Group::Pull(index) | Group::Update(index) => {
                let work = &program.works[*index];
                if let Some(read) = work.reads().find(|read| !there.contains(&read.value)) {
                    return Err(format!("`{}` is read before it is made", name(read.value)));
                }
                // What is replaced is there no more.
                for gone in work.replaces() {
                    there.remove(gone);
                }
                there.extend(work.writes());
            }
            Group::Joined(joined) => {
                let op = &joined.op;
                let mut made = BTreeSet::new();
                for (input, region) in &joined.before {
                    check_maps(program, &region.region, &there, &BTreeSet::new())?;
                    made.insert(op.inputs[*input].value);
                }
                if let Some(read) =
                    op.inputs.iter().find(|read| !there.contains(&read.value) && !made.contains(&read.value))
                {
                    return Err(format!("`{}` is read before it is made", name(read.value)));
                }
                let mut gone = None;
                if let Some((output, region, keeps)) = &joined.behind {
                    let given = op.outputs[*output];
                    check_maps(program, &region.region, &there, &BTreeSet::from([given]))?;
                    gone = Some(given).filter(|_| !keeps);
                    there.extend(&region.region.outputs);
                }
                there.extend(op.outputs.iter().filter(|output| gone != Some(**output)));
            }
            Group::Region(region) => {
                check_maps(program, region, &there, &BTreeSet::new())?;
                if region.outputs.is_empty() {
                    return Err(format!("a region of {} maps gives nothing out", region.maps.len()));
                }
                there.extend(&region.outputs);
            }
        }
    }
    for (output, located) in &program.outputs {
        if !there.contains(&located.value) {
            return Err(format!("output `{output}` is never made"));
        }
    }
    Ok(())
}

/// Checks that the maps of a region read what is there, or element by element what the region makes or is `given`.
fn check_maps(
    program: &Program,
    region: &Region,
    there: &BTreeSet<ValueId>,
    given: &BTreeSet<ValueId>,
) -> Result<(), String> {
    let name = |value: ValueId| &program.values[value].name;
    let mut inside = given.clone();
    for map in &region.maps {
        for read in &map.inputs {
            let known = inside.contains(&read.value) && is_flat(program, read) || there.contains(&read.value);
            if !known {
                return Err(format!("`{}` is read before it is made", name(read.value)));
            }
        }
        if program.values[map.output].ty.as_ref().map(|ty| ty.elements()) != Some(region.elements.clone()) {
            return Err(format!("`{}` has another number of elements than its region", name(map.output)));
        }
        inside.insert(map.output);
    }
    Ok(())
}
