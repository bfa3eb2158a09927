//! Executables: graphs compiled for a device, to be run any number of times.

mod outputs;
mod profile;
mod states;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use trefoil_dsl::artefact::ParamTransport;
use trefoil_dsl::device::{Command, Device, Memory, MemoryRange, Pipeline, Recording, RunIo};
use trefoil_dsl::support::check::padded;

use crate::compile::choose::{Decision, choose};
use crate::compile::fuse::fuse;
use crate::compile::legalise::legalise;
use crate::compile::plan::{Buffer, Plan, plan};
use crate::compile::program::{Origin, Program};
use crate::compile::prove::{Trace, prove};
use crate::compile::record::{commands, touches, trace};
use crate::compile::schedule::{Reason, barriers};
use crate::compile::steps::{Step, StepWork, steps};
use crate::compile::words::RunWords;
use crate::compile::{Options, checked};
use crate::data::Data;
use crate::dim::{Dim, Extents};
use crate::error::{Error, Result, at, names};
use crate::explain::{ExplainedState, ExplainedStep, ExplainedUse, Explanation, KeptVersion};
use crate::graph::{Graph, Leaf, LeafKind, SEED, Tensor};
use crate::model::Model;
use crate::types::{ElementType, TensorType};

pub use outputs::{Elements, Outputs};
pub use profile::StepTime;

/// A graph compiled for a device. Everything is compiled, planned and recorded once; a run only fills in what it is given.
///
/// What a run leaves in the graph's states ([`Graph::state`]), the next one finds. A run that is refused leaves them as they were. After a run in which the device failed nobody knows what they hold: every later call is answered with that
/// error, until [`Executable::reset`], if the device still works. A graph without states computes everything anew and may be run again at once.
#[derive(Debug)]
pub struct Executable {
    device: Device,
    model: Model,
    recording: Arc<dyn Recording>,
    commands: Vec<Command>,
    words: Arc<RunWords>,
    inputs: Vec<Slot>,
    states: Vec<Slot>,
    /// Whether the graph has a seed, which runs may leave out.
    has_seed: bool,
    /// Inputs that no output needs: runs may give them.
    unused: BTreeMap<String, TensorType>,
    outputs: Vec<Slot>,
    /// Params whose values may not be there yet.
    params: Vec<Slot>,
    state: Mutex<RunState>,
    /// For [`Executable::profile`], once it was called.
    by_value: OnceLock<Vec<Arc<dyn Pipeline>>>,
    memory: Vec<Arc<dyn Memory>>,
    parts: Arc<Parts>,
}

/// What `explain` tells about.
#[derive(Debug)]
struct Parts {
    program: Program,
    plan: Plan,
    steps: Vec<Step>,
    barriers: Vec<Vec<Reason>>,
    decisions: Vec<Decision>,
}

/// Where an input or output lies.
#[derive(Clone, Debug)]
struct Slot {
    name: String,
    ty: TensorType,
    memory: Arc<dyn Memory>,
    offset: u64,
}

#[derive(Clone, Debug, Default)]
struct RunState {
    /// The values of the symbols in the run words that the device has.
    extents: Option<Extents>,
    /// The model's losses when every param was there.
    params_filled: Option<u64>,
    /// The seed of the next run that is given none.
    next_seed: u64,
    /// What the device said when it failed at something that writes states: nobody knows what they hold.
    failed: Option<Error>,
}

impl Executable {
    /// Compiles a graph.
    ///
    /// # Errors
    /// An op has no candidate on the device, a tensor is too large for it, a param does not fit the model's, or a kernel does not compile.
    pub fn compile(graph: &Graph, model: &Model, device: &Device, options: &Options) -> Result<Self> {
        let properties = device.properties();
        let limits = &properties.limits;
        let mut program = legalise(graph)?;
        let decisions = choose(graph, &mut program, properties, options)?;
        let (groups, fills) = fuse(&program, options, properties)?;
        let steps = steps(graph, &program, &groups, &fills, model.kernels(), properties)?;
        let plan = plan(&program, &steps, limits, &properties.name)?;
        let touched: Vec<_> = steps.iter().map(|step| touches(&program, &plan, step)).collect();
        let barriers = barriers(&touched);

        let (memory, params) = memory(&program, &plan, model, device)?;
        let recorded = commands(device, &program, &plan, &memory, &steps, &barriers, ParamTransport::Buffer)?;
        checked("record", || prove(graph, &trace(&program, &plan, &memory, &steps, &recorded.commands)?))?;
        let recording = device.backend().record(&recorded.commands, recorded.words.len());
        let recording = recording.map_err(at("a recording from", &Command::first_label(&recorded.commands)))?;

        let slot = |name: &str, value: usize, offset: u64, ty: &TensorType| {
            let place = plan.places[value]?;
            let memory = memory.get(place.buffer)?.clone();
            Some(Slot { name: name.to_owned(), ty: ty.clone(), memory, offset: place.offset + offset })
        };
        let (mut inputs, mut states) = (Vec::new(), Vec::new());
        for (value, info) in program.values.iter().enumerate() {
            match (&info.origin, &info.ty) {
                (Origin::Input, Some(ty)) => inputs.extend(slot(&info.name, value, 0, ty)),
                (Origin::State, Some(ty)) => states.extend(slot(&info.name, value, 0, ty)),
                _ => {}
            }
        }
        let mut outputs = Vec::new();
        for (name, output) in &program.outputs {
            let size = output.ty.element.bytes();
            let offset = output.layout.offset.constant().and_then(|offset| u64::try_from(offset).ok()).unwrap_or(0);
            outputs.extend(slot(name, output.value, offset * size, &output.ty));
        }
        let unused = graph
            .leaves()
            .iter()
            .filter_map(|(name, tensor)| {
                let is_input = matches!(kind_of(graph, *tensor), Some(LeafKind::Input | LeafKind::Seed));
                let used = inputs.iter().any(|slot| slot.name == *name);
                let ty = &graph.nodes()[tensor.node as usize].outputs[0];
                (is_input && !used).then(|| (name.clone(), ty.clone()))
            })
            .collect();
        let seed = graph.leaves().get(SEED);
        let has_seed = seed.is_some_and(|seed| kind_of(graph, *seed) == Some(&LeafKind::Seed));
        let executable = Self {
            device: device.clone(),
            model: model.clone(),
            recording,
            commands: recorded.commands,
            words: recorded.words.into(),
            inputs,
            states,
            has_seed,
            unused,
            outputs,
            params,
            state: Mutex::default(),
            by_value: OnceLock::new(),
            memory,
            parts: Parts { program, plan, steps, barriers, decisions }.into(),
        };
        executable.reset()?;
        Ok(executable)
    }

    /// Runs the graph: every input by name, and the values of the symbols. It waits until the outputs are there. The seed of random numbers ([`Graph::seed`]) may be left out: then it is the executable's next one.
    ///
    /// # Errors
    /// An input is missing, unknown, given twice, of another element type or length; a symbol has no value; a param was never given; a state is updated where it has no such positions; or the device failed.
    pub fn run(&self, inputs: &[(&str, Data<'_>)], extents: &Extents) -> Result<Outputs> {
        self.check_names(inputs)?;
        // One run at a time: all runs use the same memory.
        let mut state = self.turn()?;
        let (next_seed, mut takes_next) = (state.next_seed.to_le_bytes(), false);
        let mut uploads = Vec::new();
        for slot in &self.inputs {
            let given = inputs.iter().find(|(name, _)| *name == slot.name);
            let Some((_, data)) = given else {
                if self.has_seed && slot.name == SEED {
                    takes_next = true;
                    uploads.push((slot.range(next_seed.len()), &next_seed[..]));
                    continue;
                }
                return Err(Error::Missing { what: "input", name: slot.name.clone(), ty: slot.ty.to_string() });
            };
            check_data("input", &slot.name, &slot.ty, data, extents)?;
            if !data.is_empty() {
                uploads.push((slot.range(data.bytes.len()), &*data.bytes));
            }
        }
        let mut outputs = Vec::new();
        for slot in &self.outputs {
            let shape: Vec<usize> = slot
                .ty
                .shape
                .iter()
                .map(|extent| Ok(usize::try_from(extent.eval(extents)?).unwrap_or(0)))
                .collect::<Result<_>>()?;
            outputs.push(Elements::new(("output", &slot.name), slot.ty.element, shape));
        }
        let losses = self.model.losses();
        if state.params_filled != Some(losses) {
            for Slot { name, ty, memory, .. } in &self.params {
                if !self.model.is_filled(&self.device, name, memory)? {
                    return Err(Error::Missing { what: "param", name: name.clone(), ty: ty.to_string() });
                }
            }
            state.params_filled = Some(losses);
        }
        let words = match &state.extents {
            Some(known) if known == extents => None,
            _ => Some(self.words.fill(extents)?),
        };
        let downloads = self
            .outputs
            .iter()
            .zip(&mut outputs)
            .map(|(slot, output)| {
                let bytes = output.bytes_mut();
                (slot.range(bytes.len()), bytes)
            })
            .filter(|(_, bytes)| !bytes.is_empty())
            .collect();
        // If the run fails, nobody knows what the device has.
        state.extents = None;
        let run_words = words.as_deref().filter(|words| !words.is_empty());
        let ran = self.device.backend().run(&*self.recording, RunIo { run_words, uploads, downloads });
        self.settled(&mut state, ran.map_err(at("a run from", &Command::first_label(&self.commands))))?;
        state.extents = Some(extents.clone());
        if takes_next {
            state.next_seed = state.next_seed.wrapping_add(1);
        }
        let tensors = self.outputs.iter().map(|slot| slot.name.clone()).zip(outputs).collect();
        Ok(Outputs { tensors })
    }

    /// Gives the next run that is given no seed this one; those after it count on from there. Without it the first such run has seed 0.
    ///
    /// # Errors
    /// The graph has no random numbers, or another thread panicked while it ran.
    ///
    /// ```
    /// # use trefoil_graph::{Dim, ElementType, Executable, Graph};
    /// # fn of(executable: &Executable) -> trefoil_graph::Result<()> {
    /// executable.set_seed(2026)?;
    /// // With seeds 2026, 2027 and 7.
    /// let first = executable.run(&[], &Default::default())?;
    /// let second = executable.run(&[], &Default::default())?;
    /// let third = executable.run(&[("seed", (&[7u32, 0]).into())], &Default::default())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_seed(&self, seed: u64) -> Result<()> {
        if !self.has_seed {
            let all = self.inputs.iter().map(|slot| slot.name.as_str());
            let known = names(all.chain(self.unused.keys().map(String::as_str)));
            return Err(Error::Unknown { what: "input", name: SEED.to_owned(), known });
        }
        self.turn()?.next_seed = seed;
        Ok(())
    }

    /// Keeps others from the memory, which all runs use; refused while nobody knows what the states hold.
    fn turn(&self) -> Result<MutexGuard<'_, RunState>> {
        let state = self.state.lock().map_err(|_| Error::Poisoned)?;
        state.failed.clone().map_or(Ok(state), Err)
    }

    /// Passes on how something went that writes states, and remembers a failure.
    fn settled<T>(&self, state: &mut RunState, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && !self.states.is_empty()
        {
            state.failed = Some(error.clone());
        }
        outcome
    }

    fn check_names(&self, inputs: &[(&str, Data<'_>)]) -> Result<()> {
        for (index, (name, data)) in inputs.iter().enumerate() {
            if inputs[..index].iter().any(|(other, _)| other == name) {
                return Err(Error::Twice { what: "input", name: (*name).to_owned() });
            }
            if let Some(ty) = self.unused.get(*name) {
                check_element("input", name, ty.element, data.element)?;
            } else if !self.inputs.iter().any(|slot| slot.name == *name) {
                let all = self.inputs.iter().map(|slot| slot.name.as_str());
                let known = names(all.chain(self.unused.keys().map(String::as_str)));
                return Err(Error::Unknown { what: "input", name: (*name).to_owned(), known });
            }
        }
        Ok(())
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The commands of a run, for devices that time them one by one.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// What was recorded, for [`prove`].
    ///
    /// # Errors
    /// The commands do not fit the plan, which is a fault of this crate.
    pub fn trace(&self) -> Result<Trace> {
        let Parts { program, plan, steps, .. } = &*self.parts;
        trace(program, plan, &self.memory, steps, &self.commands)
            .map_err(|defect| Error::Stage { stage: "record", defect })
    }

    /// What it does and why.
    pub fn explain(&self) -> Explanation {
        let Parts { program, plan, steps, barriers, decisions } = &*self.parts;
        let most = |bytes: &Dim| u64::try_from(bytes.bounds().1).unwrap_or(0);
        let bytes = |value: usize| u64::try_from(program.values[value].bytes.bounds().1).unwrap_or(0);
        let explained = steps.iter().zip(barriers).map(|(step, barrier)| ExplainedStep {
            label: step.label.to_string(),
            kernel: match &step.work {
                StepWork::Kernel { kernel, .. } => kernel.name.to_string(),
                StepWork::Host(host) => host.name.to_owned(),
            },
            story: step.story.clone(),
            barrier: barrier.clone(),
            uses: step
                .uses
                .iter()
                .filter_map(|used| {
                    let place = plan.places[used.value]?;
                    Some(ExplainedUse {
                        tensor: program.values[used.value].name.clone(),
                        written: used.access.writes(),
                        buffer: place.buffer,
                        offset: place.offset,
                        bytes: bytes(used.value),
                        part: used.part.as_ref().map(most),
                    })
                })
                .collect(),
        });
        let activations = plan.buffers.iter().filter_map(|buffer| match buffer {
            Buffer::Activations(bytes) => Some(*bytes),
            Buffer::Param(_) | Buffer::Constant(_) | Buffer::State(_) => None,
        });
        let params = plan.buffers.iter().filter_map(|buffer| match buffer {
            Buffer::Activations(_) | Buffer::State(_) => None,
            Buffer::Param(value) | Buffer::Constant(value) => Some(bytes(*value)),
        });
        let fused_away =
            plan.places.iter().zip(&program.values).filter(|(place, _)| place.is_none()).map(|(_, value)| &value.name);
        let name = |value: usize| program.values[value].name.clone();
        let states = plan.buffers.iter().enumerate().filter_map(|(buffer, known)| {
            let Buffer::State(value) = *known else { return None };
            let kept = program.kept.iter().filter(|kept| kept.state == value).map(|kept| KeptVersion {
                copy: name(kept.copy),
                replaced_by: name(kept.by),
                readers: kept.readers.clone(),
            });
            let ty = program.values[value].ty.clone()?;
            Some(ExplainedState { name: name(value), ty, bytes: bytes(value), buffer, kept: kept.collect() })
        });
        Explanation {
            device: self.device.properties().name.clone(),
            steps: explained.collect(),
            activations: activations.collect(),
            params: params.sum(),
            states: states.collect(),
            run_words: self.words.len(),
            decisions: decisions.clone(),
            fused_away: fused_away.cloned().collect(),
        }
    }
}

impl Slot {
    fn range(&self, bytes: usize) -> MemoryRange {
        MemoryRange { memory: self.memory.clone(), offset: self.offset, bytes: bytes as u64 }
    }
}

/// By whom a leaf is given.
fn kind_of(graph: &Graph, leaf: Tensor) -> Option<&LeafKind> {
    let op: &dyn std::any::Any = &*graph.nodes()[leaf.node as usize].op;
    op.downcast_ref::<Leaf>().map(|leaf| &leaf.kind)
}

/// The memory of a plan, and the params in it.
type Memories = (Vec<Arc<dyn Memory>>, Vec<Slot>);

fn memory(program: &Program, plan: &Plan, model: &Model, device: &Device) -> Result<Memories> {
    let (mut memory, mut params) = (Vec::new(), Vec::new());
    for (index, buffer) in plan.buffers.iter().enumerate() {
        memory.push(match buffer {
            Buffer::Activations(bytes) => device
                .backend()
                .allocate(*bytes, "activations")
                .map_err(|error| at_largest(program, plan, index, error))?,
            Buffer::Param(value) => {
                let info = &program.values[*value];
                let ty = info.ty.clone().unwrap_or(TensorType { element: ElementType::U32, shape: Vec::new() });
                let (memory, _) = model.on_device(device, &info.name, &ty)?;
                params.push(Slot { name: info.name.clone(), ty, memory: memory.clone(), offset: 0 });
                memory
            }
            Buffer::State(value) => {
                let info = &program.values[*value];
                let bytes = padded(u64::try_from(info.bytes.bounds().1).unwrap_or(0));
                device.backend().allocate(bytes, &info.name).map_err(at("state", &info.name))?
            }
            Buffer::Constant(value) => {
                let info = &program.values[*value];
                let bytes: &[u8] = match &info.origin {
                    Origin::Constant(bytes) => bytes,
                    Origin::Input | Origin::Param | Origin::State | Origin::Computed | Origin::Version(_) => &[],
                };
                let failed = || at("constant", &info.name);
                let memory = device.backend().allocate(bytes.len() as u64, &info.name).map_err(failed())?;
                let range = MemoryRange { memory: memory.clone(), offset: 0, bytes: bytes.len() as u64 };
                if !bytes.is_empty() {
                    device.backend().write(&range, bytes).map_err(failed())?;
                }
                memory
            }
        });
    }
    Ok((memory, params))
}

/// What a device said of a buffer of activations, with the largest tensor in it.
fn at_largest(program: &Program, plan: &Plan, buffer: usize, error: trefoil_dsl::error::Error) -> Error {
    let there = plan.places.iter().zip(&program.values).filter_map(|(place, value)| Some((place.as_ref()?, value)));
    let largest = there.filter(|(place, _)| place.buffer == buffer).max_by_key(|(place, _)| place.bytes);
    at("memory for tensors up to", largest.map_or("activations", |(_, value)| &value.name))(error)
}

fn check_element(what: &'static str, name: &str, expected: ElementType, given: ElementType) -> Result<()> {
    if expected == given {
        return Ok(());
    }
    Err(Error::ElementType { what, name: name.to_owned(), given: given.to_string(), expected })
}

fn check_data(what: &'static str, name: &str, ty: &TensorType, data: &Data<'_>, extents: &Extents) -> Result<()> {
    check_element(what, name, ty.element, data.element)?;
    let expected = u64::try_from(ty.elements().eval(extents)?).unwrap_or(0);
    if data.len() == expected {
        return Ok(());
    }
    let values: Vec<_> = ty.shape.iter().map(|extent: &Dim| extent.eval(extents)).collect::<Result<_, _>>()?;
    Err(Error::Length {
        what,
        name: name.to_owned(),
        given: data.len(),
        expected,
        ty: format!("{ty}, here {values:?}"),
    })
}
