//! One list of steps from regions and candidates, with what each step reads and writes by its kernel's signature.

use std::sync::Arc;

use trefoil_codegen::artefact::{Access, Kernel};
use trefoil_codegen::compile::Reports;
use trefoil_codegen::diagnostic::Diagnostics;
use trefoil_codegen::ir::Module;
use trefoil_dsl::device::Properties;

use super::cache::Kernels;
use super::choose::runs_on;
use super::fuse::attach::{Joined, Side};
use super::fuse::splice::{Held, Joint, Spliced, with_constants_of};
use super::fuse::{Fills, Fused, Group, Region, kernel, max_buffers};
use super::program::{Chosen, KernelsWork, Located, Meaning, Origin, Program, ValueId, Work};
use super::pull;
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::graph::{Graph, Tensor};
use crate::op::{CallStep, Grid, KernelStep, ParamValue, Slot, Step as OpStep};
use crate::types::Layout;

/// Something that the device or the host does, as a whole.
#[derive(Clone, Debug)]
pub struct Step {
    /// Names it in errors, profiles and `explain`.
    pub label: Arc<str>,
    /// What is done.
    pub work: StepWork,
    /// What each binding is; for calls what they read, then what they write.
    pub uses: Vec<Use>,
    /// What it computes of the graph.
    pub claims: Vec<Claim>,
    /// Which of its node's steps it is.
    pub part: Part,
    /// What it is, for `explain`.
    pub story: String,
}

/// Which of the steps of a node a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its position among them.
    pub index: usize,
    /// How many there are.
    pub of: usize,
}

impl Part {
    /// The only one.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The work of a step.
#[derive(Clone, Debug)]
pub enum StepWork {
    /// A kernel.
    Kernel {
        /// The kernel.
        kernel: Arc<Kernel>,
        /// The author's parameters.
        params: Vec<ParamValue>,
        /// The grid.
        grid: Grid,
    },
    /// A call.
    Call(CallStep),
}

impl StepWork {
    /// The name of the kernel or of the function.
    pub fn name(&self) -> &str {
        match self {
            Self::Kernel { kernel, .. } => &kernel.name,
            Self::Call(call) => call.name,
        }
    }
}

/// A value that a step binds.
#[derive(Clone, Debug)]
pub struct Use {
    /// The value.
    pub value: ValueId,
    /// What the kernel does with it.
    pub access: Access,
    /// The first byte, from the value's start on.
    pub offset: Dim,
    /// Bytes of what the kernel may touch, from there on.
    pub bytes: Dim,
    /// Bytes that the step writes, where the rest stays as it is: an update of a state, or one of several steps of a pull, each of which writes a part of the result.
    pub part: Option<Dim>,
    /// The value that lies there before, where this is the first step that writes over it.
    pub over: Option<ValueId>,
    /// Extents as the reader sees them, for a view.
    pub extents: Vec<Dim>,
    /// Strides in elements, for a view.
    pub strides: Vec<Dim>,
}

/// What a step says that it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// A node's outputs, or a part of the work for them.
    Node(u32),
    /// The elements of a tensor, one after the other.
    Copy(Tensor),
}

/// Makes the steps.
///
/// # Errors
/// A generated kernel does not compile, or a candidate gives steps that do not fit.
pub fn steps(
    graph: &Graph,
    program: &Program,
    fused: &mut Fused,
    cache: Kernels<'_>,
    device: &Properties,
) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let Fused { groups, fills, merges, .. } = fused;
    for group in groups.iter() {
        match group {
            Group::Region(region) => steps.push(of_region(program, region, fills, cache, device)?),
            Group::Pull(index) => {
                if let Work::Pull(work) = &program.works[*index] {
                    pull::steps(program, work, cache, device, &mut steps)?;
                }
            }
            Group::Update(index) => {
                if let Work::Update(work) = &program.works[*index] {
                    steps.push(pull::update(program, work, cache, device)?);
                }
            }
            Group::Kernels(index) => {
                if let Work::Kernels(work) = &program.works[*index] {
                    of_candidate(graph, program, work, None, &mut steps)?;
                }
            }
            Group::Joined(joined) => {
                let work = &joined.op;
                let into = Within { joined, cache, device };
                let begun = steps.len();
                match of_candidate(graph, program, work, Some(into), &mut steps) {
                    Err(Error::Kernel { kernel, message }) => {
                        // What a device makes nothing of is done piece by piece.
                        steps.truncate(begun);
                        let node = &graph.nodes()[work.node as usize].name;
                        for merge in merges.iter_mut().filter(|merge| merge.refused.is_none() && merge.node == *node) {
                            (merge.saved, merge.refused) = (0, Some(format!("`{kernel}` cannot be made: {message}")));
                        }
                        for (_, region) in &joined.before {
                            steps.push(of_region(program, &region.region, fills, cache, device)?);
                        }
                        of_candidate(graph, program, work, None, &mut steps)?;
                        if let Some((_, region, _)) = &joined.behind {
                            steps.push(of_region(program, &region.region, fills, cache, device)?);
                        }
                    }
                    made => made?,
                }
            }
        }
    }
    Ok(steps)
}

/// All of a value.
pub(super) fn whole(program: &Program, value: ValueId, access: Access) -> Use {
    let bytes = program.values[value].bytes.clone();
    let offset = Dim::from(0i64);
    Use { value, access, offset, bytes, part: None, over: None, extents: Vec::new(), strides: Vec::new() }
}

/// That what a generated kernel reads by strides is near enough for indices of 32 bits.
fn expect_counted(program: &Program, far: Option<ValueId>, device: &Properties) -> Result<()> {
    let Some(value) = far else { return Ok(()) };
    let value = &program.values[value];
    let element = value.ty.as_ref().map_or(1, |ty| ty.element.bytes());
    Err(Error::TooLarge {
        tensor: value.name.clone(),
        bytes: u64::try_from(value.bytes.bounds().1).unwrap_or(0),
        limit: element.saturating_mul(u64::from(u32::MAX)),
        what: "kernel that reads it by strides",
        device: device.name.clone(),
    })
}

fn of_region(
    program: &Program,
    region: &Region,
    fills: &Fills,
    cache: Kernels<'_>,
    device: &Properties,
) -> Result<Step> {
    let generated = kernel::generate(program, region, fills, device);
    expect_counted(program, generated.uncounted(), device)?;
    let kernel = cache.get(
        &generated.structure,
        device.kind.target(),
        Reports::Dropped,
        || Ok(kernel::module(region, &generated)),
        |module, diagnostics| refused(program, region, device, module, diagnostics),
    )?;
    let values = generated.reads.iter().chain(&region.outputs);
    let uses: Vec<_> =
        values.zip(&*kernel.bindings).map(|(value, binding)| whole(program, *value, binding.access)).collect();
    let claims = claims(program, region);
    let (last, more) = match region.maps.as_slice() {
        [] => (String::new(), 0),
        [.., last] => (program.values[last.output].name.clone(), region.maps.len() - 1),
    };
    let label = if more == 0 { last } else { format!("{last} and {more} more") };
    let ways = generated.ways();
    Ok(Step {
        label: label.into(),
        work: StepWork::Kernel { kernel, params: generated.params, grid: generated.grid },
        uses,
        claims: claims.collect(),
        part: Part::WHOLE,
        story: format!("one kernel for {}{ways}", kernel::describe(&region.maps)),
    })
}

/// What a region computes.
fn claims<'p>(program: &'p Program, region: &'p Region) -> impl Iterator<Item = Claim> + 'p {
    region.maps.iter().map(|map| match program.values[map.output].meaning {
        Meaning::Copy(tensor) => Claim::Copy(tensor),
        Meaning::Tensor(_) | Meaning::Scratch { .. } | Meaning::Counters { .. } => Claim::Node(map.node),
    })
}

/// Why the kernel of a region does not compile: most likely a type with which the device does not compute.
fn refused(
    program: &Program,
    region: &Region,
    device: &Properties,
    module: &Module,
    diagnostics: &Diagnostics,
) -> Error {
    let message = diagnostics.to_string();
    let map = diagnostics.0.iter().find_map(|diagnostic| kernel::map_at(region, diagnostic.span));
    let lacking = map.and_then(|map| {
        let output = program.values[map.output].ty.iter().map(|ty| ty.element);
        let elements = map.inputs.iter().map(|input| input.ty.element).chain(output);
        let (element, feature) =
            elements.filter_map(|element| Some((element, kernel::lacking(device, element)?))).next()?;
        let node = program.values[map.output].name.clone();
        let op = map.op.name();
        Some(Error::Lacking { node, op, element, device: device.name.clone(), feature: feature.name() })
    });
    lacking.unwrap_or_else(|| Error::Kernel { kernel: module.name.clone(), message })
}

/// Regions that go into the kernels of a candidate, and where what comes of it is made.
#[derive(Clone, Copy)]
struct Within<'a> {
    joined: &'a Joined,
    cache: Kernels<'a>,
    device: &'a Properties,
}

impl Within<'_> {
    fn regions(&self, side: Side) -> impl Iterator<Item = &Spliced> {
        let (before, behind) = (&self.joined.before, &self.joined.behind);
        let before = before.iter().map(|(_, region)| region).filter(move |_| side == Side::Prologue);
        before.chain(behind.iter().map(|(_, region, _)| region).filter(move |_| side == Side::Epilogue))
    }

    /// The maps on a side, for `explain`.
    fn told(&self, side: Side, preposition: &str) -> Option<String> {
        let maps: Vec<String> = self.regions(side).map(|region| kernel::describe(&region.region.maps)).collect();
        (!maps.is_empty()).then(|| format!("{} {preposition} it", maps.join(" and ")))
    }

    /// A step with the regions in its kernel, and what that binds.
    fn put(
        &self,
        program: &Program,
        step: &KernelStep,
        joint: &Joint<'_>,
        own: Vec<Use>,
    ) -> Result<(StepWork, Vec<Use>)> {
        let old = &step.kernel;
        for region in Side::ALL.into_iter().flat_map(|side| self.regions(side)) {
            expect_counted(program, region.uncounted(), self.device)?;
        }
        let structure = joint.structure(old);
        let failed = |message: String| Error::Kernel { kernel: old.name.to_string(), message };
        let held = joint.held(old.bindings.len());
        // As the kernel would by itself, if a binding is left for it.
        let reports = if self.cache.reports && old.reporting.is_some() && held.len() < max_buffers(self.device) {
            Reports::Buffered
        } else {
            Reports::Dropped
        };
        let kernel = self.cache.get(
            &structure,
            self.device.kind.target(),
            reports,
            || joint.module(old, &structure).map_err(failed),
            |module, diagnostics| Error::Kernel { kernel: module.name.clone(), message: diagnostics.to_string() },
        )?;
        let kernel = with_constants_of(kernel, old).map_err(failed)?;
        runs_on(&kernel, self.device).map_err(failed)?;
        let uses = held.iter().zip(&*kernel.bindings).map(|(held, binding)| match (*held, joint.value(*held)) {
            (Held::Own(at), _) => own.get(at).cloned(),
            (_, value) => value.map(|value| whole(program, value, binding.access)),
        });
        let uses: Option<Vec<Use>> = uses.collect();
        let uses = uses.ok_or_else(|| failed("it binds what nobody has".to_owned()))?;
        let mut params = step.params.clone();
        params.extend(joint.before.iter().flat_map(|(_, region)| region.params(false)));
        params.extend(joint.behind.iter().flat_map(|(_, region, _)| region.params(true)));
        Ok((StepWork::Kernel { kernel, params, grid: step.grid.clone() }, uses))
    }
}

fn of_candidate(
    graph: &Graph,
    program: &Program,
    op: &KernelsWork,
    into: Option<Within<'_>>,
    steps: &mut Vec<Step>,
) -> Result<()> {
    let node = &graph.nodes()[op.node as usize];
    let Some(chosen) = &op.chosen else {
        return Err(Error::Stage { stage: "steps", defect: format!("`{}` has no candidate", node.name) });
    };
    let count = chosen.implementation.steps.len();
    let mut fresh = chosen.over.clone();
    for (index, step) in chosen.implementation.steps.iter().enumerate() {
        let label = if count == 1 { node.name.clone() } else { format!("{} step {index}", node.name) };
        let wrong = |reason: String| Error::Candidate {
            node: node.name.clone(),
            candidate: chosen.candidate.to_owned(),
            reason,
        };
        let slots: Vec<(&Slot, Access, Option<u32>)> = match step {
            OpStep::Kernel(step) => {
                let bindings = step.kernel.bindings.iter();
                step.bindings.iter().zip(bindings).map(|(slot, binding)| (slot, binding.access, binding.view)).collect()
            }
            OpStep::Call(call) => {
                let reads = call.reads.iter().map(|slot| (slot, Access::Read, None));
                reads.chain(call.writes.iter().map(|slot| (slot, Access::Write, None))).collect()
            }
        };
        let mut uses = slots
            .into_iter()
            .map(|(slot, access, view)| used(program, op, chosen, slot, access, view).map_err(wrong))
            .collect::<Result<Vec<_>>>()?;
        for used in &mut uses {
            let Origin::Over(below) = program.values[used.value].origin else { continue };
            if let Some(at) = fresh.iter().position(|value| *value == below) {
                used.over = Some(fresh.swap_remove(at));
            }
        }
        let (work, uses) = match step {
            OpStep::Kernel(step) => {
                let facts = into.map(|into| into.cache.facts(&step.kernel));
                let joint =
                    into.zip(facts.as_ref()).and_then(|(into, facts)| Some((into, into.joined.joint(step, facts)?)));
                match joint {
                    Some((into, joint)) => into.put(program, step, &joint, uses)?,
                    None => {
                        let KernelStep { kernel, params, grid, .. } = step.clone();
                        (StepWork::Kernel { kernel, params, grid }, uses)
                    }
                }
            }
            OpStep::Call(call) => (StepWork::Call(call.clone()), uses),
        };
        let over: Vec<String> =
            chosen.over.iter().map(|below| format!(", over `{}`", program.values[*below].name)).collect();
        let mut story = format!("{} by {}{}", node.op.name(), chosen.candidate, over.concat());
        let (mut all, part) = (vec![Claim::Node(op.node)], Part { index, of: count });
        if let Some(into) = into {
            let told = [into.told(Side::Prologue, "before"), into.told(Side::Epilogue, "behind")];
            let told: Vec<String> = told.into_iter().flatten().collect();
            story = format!("{story}, with {}", told.join(" and "));
            // Every step of the op stands for all of it.
            let before = into.regions(Side::Prologue).flat_map(|region| claims(program, &region.region));
            let behind = into.regions(Side::Epilogue).flat_map(|region| claims(program, &region.region));
            all = before.chain(all).chain(behind).collect();
        }
        let claims = all;
        steps.push(Step { label: label.into(), work, uses, claims, part, story });
    }
    Ok(())
}

/// What a slot of a candidate means.
fn used(
    program: &Program,
    op: &KernelsWork,
    chosen: &Chosen,
    slot: &Slot,
    access: Access,
    view: Option<u32>,
) -> Result<Use, String> {
    let located = match slot {
        Slot::Input(input) => op.inputs.get(*input),
        Slot::Output(_) | Slot::Over { .. } | Slot::Scratch(_) | Slot::Counters(_) | Slot::Empty => None,
    };
    let value = match slot {
        Slot::Input(_) => located.map(|located| located.value),
        Slot::Output(output) | Slot::Over { output, .. } => op.outputs.get(*output).copied(),
        Slot::Empty => program.nothing,
        Slot::Scratch(piece) => chosen.scratch.get(*piece).copied(),
        Slot::Counters(_) => chosen.counters,
    };
    let value = value.ok_or_else(|| format!("{slot:?} does not exist"))?;
    let mut used = whole(program, value, access);
    if let Some(read) = located {
        // No elements lie nowhere: their layout may start behind the memory's end.
        let there = !read.ty.elements().is(0);
        used.offset = if there { read.layout.offset.clone() * size(read) } else { Dim::from(0i64) };
        used.bytes = if !there {
            Dim::from(0i64)
        } else if read.layout.has_contiguous_strides(&read.ty.shape) {
            read.ty.bytes()
        } else {
            // A part of nothing may start past its end.
            (used.bytes - used.offset.clone()).maximum(&Dim::from(0i64))
        };
    }
    if let Some(rank) = view {
        let (shape, strides) = match (located, &program.values[value].ty) {
            (Some(read), _) => (read.ty.shape.clone(), read.layout.strides.clone()),
            (None, Some(ty)) => (ty.shape.clone(), Layout::contiguous(&ty.shape).strides),
            (None, None) => return Err("it binds memory without a type as a view".to_owned()),
        };
        if shape.len() != rank as usize {
            return Err(format!("{slot:?} has {} axes, its kernel takes a view of {rank}", shape.len()));
        }
        (used.extents, used.strides) = (shape, strides);
    }
    Ok(used)
}

fn size(read: &Located) -> Dim {
    Dim::from(i64::try_from(read.ty.element.bytes()).unwrap_or(i64::MAX))
}
