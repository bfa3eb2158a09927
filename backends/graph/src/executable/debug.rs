//! Runs that look at what each step does: one step at a time, a barrier and a wait between all of them.

use std::collections::{BTreeMap, BTreeSet};

use tracing::debug_span;
use trefoil_dsl::device::{MemoryRange, RunIo};

use super::{Executable, Outputs, Parts, Run};
use crate::compile::plan::{Lifetime, lifetimes};
use crate::compile::program::{Located, Meaning, Program, ValueId, Work};
use crate::compile::steps::{Claim, Step, Use};
use crate::data::to_f64;
use crate::debug::{DebugOptions, DebugReport, Difference, SeenStep, SeenTensor, Statistics};
use crate::dim::Extents;
use crate::error::{Result, at};
use crate::graph::{Graph, LeafKind, Tensor};
use crate::op::{HostTensor, OpKind};
use crate::reference::evaluate_node;
use crate::types::{ElementType, Layout, elements_of};

/// NaN in every type of floats, and in integers a number that is no index.
const POISON: u8 = 0xFF;
/// The most bytes of it that are written at a time.
const POISONED_AT_A_TIME: u64 = 1 << 24;

impl Run<'_> {
    /// As [`Run::run`], but one step at a time, each waited for, and gives what each of them did. Outputs that differ from those of [`Run::run`] are a sign of a barrier that is missing there.
    ///
    /// ```
    /// use trefoil_graph::ops::Sweep;
    /// use trefoil_graph::{Dim, ElementType, Executable, Extents, Graph, Model, Options};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [4])?;
    /// let root = g.sqrt(x)?;
    /// let y = g.cumsum(root, 0, Sweep::default())?;
    /// g.output("y", y)?;
    /// # let device = trefoil_cpu::open(&Default::default())?;
    /// let executable = Executable::compile(&g, &Model::new(), &device, &Options::default())?;
    /// let extents = Extents::new();
    /// let run = executable.prepare(&extents).input("x", &[4f32, 1.0, -1.0, 9.0]);
    /// let (outputs, report) = run.debug(&Default::default())?;
    /// println!("{report}");
    /// let (step, tensor) = report.first_nan().ok_or("no NaN")?;
    /// assert_eq!((step.map(|step| &*step.label), tensor.statistics.nans), (Some("sqrt.1"), 1));
    /// assert!(report.first_beyond(10.0).is_none(), "every step did what it should");
    /// assert!(outputs.get::<f32>("y")?[3].is_nan());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Run::run`].
    pub fn debug(mut self, options: &DebugOptions) -> Result<(Outputs, DebugReport)> {
        let _debug = debug_span!("debug").entered();
        let mut watch = Watch::new(self.executable, options);
        let outputs = self.done(Some(&mut watch))?;
        Ok((outputs, watch.report))
    }
}

/// What looks at a run.
#[derive(Debug)]
pub(super) struct Watch<'e> {
    executable: &'e Executable,
    options: DebugOptions,
    report: DebugReport,
    /// The values of which the report has told already that they were given.
    told: BTreeSet<ValueId>,
    /// Those of the values in activation memory, by steps counted from 1.
    lifetimes: BTreeMap<ValueId, Lifetime>,
}

/// What a step reads, before it runs.
type Read = BTreeMap<Tensor, HostTensor>;

impl<'e> Watch<'e> {
    fn new(executable: &'e Executable, options: &DebugOptions) -> Self {
        let Parts { program, steps, .. } = &*executable.parts;
        let moments: Vec<usize> = (1..=steps.len()).collect();
        let lifetimes = lifetimes(program, steps, &moments);
        let report =
            DebugReport { device: executable.device.properties().name.clone(), given: Vec::new(), steps: Vec::new() };
        Self { executable, options: *options, report, told: BTreeSet::new(), lifetimes }
    }

    /// Before the run's inputs are there.
    pub(super) fn begin(&self) -> Result<()> {
        // Outputs are poisoned too, until they are written.
        let resident = &self.executable.parts.program.resident;
        self.lifetimes.keys().filter(|value| !resident.contains(value)).try_for_each(|value| self.poison(*value))
    }

    /// The run: uploads, each step by itself, downloads.
    pub(super) fn run(&mut self, io: RunIo<'_, '_>, extents: &Extents) -> Result<()> {
        let executable = self.executable;
        let backend = executable.device.backend();
        for (range, data) in io.uploads {
            backend.write(range, data).map_err(at("an input of", "a run"))?;
        }
        let Parts { steps, .. } = &*executable.parts;
        let commands = executable.commands_by_value(extents)?;
        // Every step is one command with a label.
        let labelled = commands.iter().filter_map(|command| Some((command, command.label()?)));
        // What nodes have read of which some steps are done, by what these claim: steps of other nodes may stand between them.
        let mut begun: BTreeMap<&[Claim], Read> = BTreeMap::new();
        for (index, ((command, label), step)) in labelled.zip(steps).enumerate() {
            let claims = step.claims.as_slice();
            let mut read = begun.remove(claims).unwrap_or_default();
            self.look_before(step, &mut read, extents)?;
            backend.execute(std::slice::from_ref(command)).map_err(at("a run from", label))?;
            backend.wait().map_err(at("a run from", label))?;
            let is_last = step.part.index + 1 >= step.part.of;
            let mut tensors = Vec::new();
            if is_last {
                tensors = self.look_behind(step, &read, extents)?;
            } else {
                begun.insert(claims, read);
            }
            let (label, kernel) = (step.label.clone(), step.work.name().to_owned());
            self.report.steps.push(SeenStep { label, kernel, tensors });
            for (value, _) in self.lifetimes.iter().filter(|(_, lifetime)| lifetime.dies == index + 1) {
                self.poison(*value)?;
            }
        }
        for (range, data) in io.downloads {
            backend.read(range, data).map_err(at("an output of", "a run"))?;
        }
        Ok(())
    }

    /// Poisons the memory of a value that lies among activations.
    fn poison(&self, value: ValueId) -> Result<()> {
        let Executable { device, memory, parts, .. } = self.executable;
        let Some(place) = parts.plan.places[value].filter(|_| self.options.poison) else { return Ok(()) };
        let end = place.offset + place.bytes;
        let mut offset = place.offset;
        while offset < end {
            let bytes = POISONED_AT_A_TIME.min(end - offset);
            let range = MemoryRange { memory: memory[place.buffer].clone(), offset, bytes };
            let name = &parts.program.values[value].name;
            device.backend().write(&range, &vec![POISON; bytes as usize]).map_err(at("the memory of", name))?;
            offset += bytes;
        }
        Ok(())
    }

    /// Notes what a step is about to read, and tells of what it is the first to find.
    fn look_before(&mut self, step: &Step, read: &mut Read, extents: &Extents) -> Result<()> {
        let Parts { program, graph, .. } = &*self.executable.parts;
        for used in &step.uses {
            for value in found_by(program, used) {
                let Some(elements) = self.elements(value, extents)? else { continue };
                if program.values[value].origin.is_given() && self.told.insert(value) {
                    let seen = seen(program, value, &elements, None);
                    self.report.given.push(seen);
                }
                if self.options.reference
                    && let Some((tensor, elements)) = as_tensor(graph, program, value, &elements, extents)?
                {
                    // A later step of a node finds what an earlier one made of it.
                    read.entry(tensor).or_insert(elements);
                }
            }
        }
        Ok(())
    }

    /// What a step has written.
    fn look_behind(&self, step: &Step, read: &Read, extents: &Extents) -> Result<Vec<SeenTensor>> {
        let Parts { program, graph, .. } = &*self.executable.parts;
        let mut tensors = Vec::new();
        for used in step.uses.iter().filter(|used| used.access.writes()) {
            let Some(elements) = self.elements(used.value, extents)? else { continue };
            let mut difference = None;
            if self.options.reference
                && let Some((tensor, given)) = as_tensor(graph, program, used.value, &elements, extents)?
                && let Some(expected) = expected(graph, tensor, read, extents)
            {
                let element = graph.type_of(tensor)?.element;
                difference = Difference::of(element, &given.values, &expected.values);
            }
            tensors.push(seen(program, used.value, &elements, difference));
        }
        Ok(tensors)
    }

    /// The elements of a value as they lie in memory; none of scratch memory and counters.
    fn elements(&self, value: ValueId, extents: &Extents) -> Result<Option<HostTensor>> {
        let Executable { device, memory, parts, .. } = self.executable;
        let (Some(ty), Some(place)) = (&parts.program.values[value].ty, parts.plan.places[value]) else {
            return Ok(None);
        };
        let shape = ty.shape_in(extents)?;
        let mut bytes = vec![0; elements_of(&shape) * ty.element.bytes() as usize];
        if !bytes.is_empty() {
            let (memory, bytes_of) = (memory[place.buffer].clone(), bytes.len() as u64);
            let range = MemoryRange { memory, offset: place.offset, bytes: bytes_of };
            let name = &parts.program.values[value].name;
            device.backend().read(&range, &mut bytes).map_err(at("the elements of", name))?;
        }
        Ok(Some(HostTensor { shape, values: to_f64(ty.element, &bytes) }))
    }
}

/// The values that a step finds where it uses one: that one, or what it writes over.
fn found_by(program: &Program, used: &Use) -> Vec<ValueId> {
    let replaced = program.works.iter().find_map(|work| match work {
        Work::Update(update) if update.output == used.value => Some(update.inputs[0].value),
        _ => None,
    });
    let itself = used.access.reads().then_some(used.value);
    itself.into_iter().chain(used.over).chain(replaced.filter(|_| used.access.writes())).collect()
}

/// What is said of a value.
fn seen(program: &Program, value: ValueId, elements: &HostTensor, difference: Option<Difference>) -> SeenTensor {
    let info = &program.values[value];
    SeenTensor {
        name: info.name.clone(),
        element: info.ty.as_ref().map_or(ElementType::U32, |ty| ty.element),
        shape: elements.shape.clone(),
        statistics: Statistics::of(&elements.values),
        difference,
    }
}

/// A value as the tensor of the graph that it is, with that tensor's elements in its order; none if it is no tensor's, or nobody says how they lie.
fn as_tensor(
    graph: &Graph,
    program: &Program,
    value: ValueId,
    elements: &HostTensor,
    extents: &Extents,
) -> Result<Option<(Tensor, HostTensor)>> {
    let (tensor, layout) = match program.values[value].meaning {
        Meaning::Tensor(tensor) => return Ok(Some((tensor, elements.clone()))),
        Meaning::Scratch { .. } | Meaning::Counters { .. } => return Ok(None),
        Meaning::Copy(tensor) => {
            let shape = &graph.type_of(tensor)?.shape;
            let is_read_whole =
                |read: &&Located| read.value == value && read.tensor == tensor && read.ty.shape == *shape;
            match program.works.iter().flat_map(Work::reads).find(is_read_whole) {
                Some(read) => (tensor, &read.layout),
                None => return Ok(None),
            }
        }
    };
    let shape = graph.type_of(tensor)?.shape_in(extents)?;
    let Some(values) = arranged(elements, layout, &shape, extents)? else { return Ok(None) };
    Ok(Some((tensor, HostTensor { shape, values })))
}

/// The elements that lie where a layout says, the last axis fastest; none if one of them lies nowhere.
fn arranged(from: &HostTensor, layout: &Layout, shape: &[usize], extents: &Extents) -> Result<Option<Vec<f64>>> {
    let strides: Vec<i64> = layout.strides.iter().map(|stride| stride.eval(extents)).collect::<Result<_, _>>()?;
    let offset = layout.offset.eval(extents)?;
    let element = |mut position: usize| {
        let mut at = offset;
        for (extent, stride) in shape.iter().zip(&strides).rev() {
            at += (position % extent) as i64 * stride;
            position /= extent;
        }
        from.values.get(usize::try_from(at).ok()?).copied()
    };
    Ok((0..elements_of(shape)).map(element).collect())
}

/// The output of a view that starts where a symbol says, of which references know nothing.
fn viewed(graph: &Graph, node: usize, values: &Read, extents: &Extents) -> Option<HostTensor> {
    let node = graph.nodes().get(node)?;
    let (OpKind::View(view), [input], [output]) = (node.op.kind(), &*node.inputs, &*node.outputs) else { return None };
    let ty = graph.type_of(*input).ok()?;
    let layout = view.layout(ty, &Layout::contiguous(&ty.shape), output)?;
    let shape = output.shape_in(extents).ok()?;
    let values = arranged(values.get(input)?, &layout, &shape, extents).ok()??;
    Some(HostTensor { shape, values })
}

/// What the references make of a tensor, from what was read; none if that is not enough, or an op has no reference for it.
fn expected(graph: &Graph, tensor: Tensor, read: &Read, extents: &Extents) -> Option<HostTensor> {
    let mut needed = BTreeSet::new();
    // The tensor itself is to be computed, also where its older elements were read.
    let mut open = vec![tensor.node()];
    while let Some(node) = open.pop() {
        if !needed.insert(node) {
            continue;
        }
        let known = graph.nodes().get(node)?;
        if known.leaf().is_some_and(|leaf| !matches!(leaf.kind, LeafKind::Constant(_))) {
            return None;
        }
        open.extend(known.inputs.iter().filter(|input| !read.contains_key(input)).map(|input| input.node()));
    }
    let mut values = read.clone();
    // Nodes are in an order in which they can be computed.
    for node in needed {
        let made = match evaluate_node(graph, node, &BTreeMap::new(), &values, extents) {
            Ok(made) => made,
            Err(_) => vec![viewed(graph, node, &values, extents)?],
        };
        for (port, made) in made.into_iter().enumerate() {
            values.insert(graph.tensor(node as u32, port as u32), made);
        }
    }
    values.remove(&tensor)
}
