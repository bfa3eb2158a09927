//! Executables: graphs compiled for a device, to be run any number of times.

mod debug;
mod outputs;
mod pending;
mod plans;
mod profile;
mod run;
mod slots;
mod states;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tracing::{debug_span, info_span};
use trefoil_dsl::artefact::ParamTransport;
use trefoil_dsl::device::{Command, Device, Memory, MemoryRange, Pipeline, Recording};
use trefoil_dsl::support::check::padded;

use crate::compile::cache::Kernels;
use crate::compile::choose::Decision;
use crate::compile::fuse::attach::Merge;
use crate::compile::fuse::beside::Beside;
use crate::compile::plan::{Buffer, Plan};
use crate::compile::program::{Origin, Program};
use crate::compile::prove::{Trace, prove};
use crate::compile::record::commands;
use crate::compile::schedule::Reason;
use crate::compile::stages::{Staged, stages};
use crate::compile::steps::Step;
use crate::compile::trace::trace;
use crate::compile::words::RunWords;
use crate::compile::{Options, checked};
use crate::dim::{Dim, Extents, Symbol};
use crate::error::{Error, Result, at};
use crate::explain::{ExplainedState, ExplainedStep, ExplainedUse, Explanation, KeptVersion};
use crate::graph::{Graph, LeafKind, SEED};
use crate::model::Model;
use crate::types::{ElementType, TensorType};

pub use outputs::{Elements, Outputs};
use pending::Task;
pub use pending::{Finished, Pending, QueuedRun};
pub use plans::{Plans, PlansStatistics};
pub use run::Run;
use run::{Lists, Scratch};
pub use slots::{InputId, OutputId, Which};
use slots::{Slot, unknown};
use states::zeroed;

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
    unused: Vec<(String, TensorType)>,
    outputs: Vec<Slot>,
    /// Params whose values may not be there yet.
    params: Vec<Slot>,
    state: Mutex<RunState>,
    /// What all plans have in common that update the same states.
    common: Arc<Mutex<Common>>,
    /// Room for what the next run is told.
    lists: Mutex<Lists<'static>>,
    /// The thread of queued runs, once there was one.
    worker: Mutex<Option<Sender<Task>>>,
    /// For [`Executable::profile`], once it was called.
    by_value: OnceLock<Vec<Arc<dyn Pipeline>>>,
    memory: Vec<Arc<dyn Memory>>,
    parts: Arc<Parts>,
}

/// What `explain` tells about.
#[derive(Debug)]
struct Parts {
    /// Tells the executable, its forks and its plans from all others.
    family: u64,
    /// What it was compiled from, of which other plans are made.
    graph: Graph,
    options: Options,
    /// Those that types and run words have: what runs look up.
    symbols: BTreeSet<Symbol>,
    /// All that the graph has: runs may give them values.
    known: BTreeSet<Symbol>,
    program: Program,
    plan: Plan,
    steps: Vec<Step>,
    /// The floating-point operations of each step's nodes.
    flops: Vec<Dim>,
    barriers: Vec<Vec<Reason>>,
    decisions: Vec<Decision>,
    merges: Vec<Merge>,
    beside: Vec<Beside>,
}

/// What runs leave behind, and what the next one needs; held during a run.
#[derive(Debug, Default)]
struct RunState {
    /// The values of the symbols in the run words that the device had last.
    extents: Extents,
    /// Whether it has them still.
    has_words: bool,
    /// Whether the last run left its outputs in their places.
    has_outputs: bool,
    /// [`Common::clock`] when it did.
    left_at: u64,
    /// For each input how many elements the last run had that was given it.
    given: Vec<Option<u64>>,
    /// The model's losses when every param was there.
    params_filled: Option<u64>,
    scratch: Scratch,
}

/// What runs leave behind in the states; held during a run.
#[derive(Debug)]
struct Common {
    /// The seed of the next run that is given none.
    next_seed: u64,
    /// What the device said when it failed at something that writes states: nobody knows what they hold.
    failed: Option<Error>,
    /// Counts what writes states: runs, and writes of the program.
    clock: u64,
    /// For each state the count at which it was written last.
    written: Vec<u64>,
}

/// The right to use an executable's memory and its states.
struct Turn<'e> {
    run: MutexGuard<'e, RunState>,
    common: MutexGuard<'e, Common>,
}

impl Common {
    /// Nothing so far, of so many states.
    fn new(states: usize, next_seed: u64) -> Self {
        Self { next_seed, failed: None, clock: 0, written: vec![0; states] }
    }

    /// Notes that states are written, by their positions.
    fn note(&mut self, states: impl IntoIterator<Item = usize>) {
        self.clock += 1;
        for state in states {
            self.written[state] = self.clock;
        }
    }
}

impl RunState {
    /// What the last run left of so many inputs: nothing, on memory that is new.
    fn new(inputs: usize, params_filled: Option<u64>) -> Self {
        Self { given: vec![None; inputs], params_filled, ..Self::default() }
    }

    /// The values of the symbols of the last run, unless it failed.
    fn extents(&self) -> Option<&Extents> {
        self.has_outputs.then_some(&self.extents)
    }
}

/// The symbols that runs look up: those of types and of run words.
fn symbols(graph: &Graph, words: &RunWords) -> BTreeSet<Symbol> {
    let mut symbols = BTreeSet::new();
    let mut note = |symbol: &Symbol| {
        symbols.insert(symbol.clone());
    };
    for ty in graph.nodes().iter().flat_map(|node| &node.outputs) {
        ty.shape.iter().for_each(|extent| extent.for_each_symbol(&mut note));
    }
    words.for_each_symbol(&mut note);
    symbols
}

/// All symbols of a graph: those that runs look up, those that ops tell of their attributes, and in a plan those of the executable that it is made of, since of some its values leave nothing.
fn known(graph: &Graph, symbols: &BTreeSet<Symbol>, plan_of: Option<&Executable>) -> BTreeSet<Symbol> {
    let told = graph.nodes().iter().flat_map(|node| node.op.symbols());
    let before = plan_of.into_iter().flat_map(|other| &other.parts.known);
    symbols.iter().chain(before).cloned().chain(told).collect()
}

impl Executable {
    /// Compiles a graph.
    ///
    /// # Errors
    /// An op has no candidate on the device, a tensor is too large for it, a param does not fit the model's, or a kernel does not compile.
    pub fn compile(graph: &Graph, model: &Model, device: &Device, options: &Options) -> Result<Self> {
        let executable = Self::make(graph.clone(), model, device, options, None)?;
        executable.reset()?;
        Ok(executable)
    }

    /// Compiles a graph, with states of its own that still have to be set, or those of another plan.
    fn make(graph: Graph, model: &Model, device: &Device, options: &Options, plan_of: Option<&Self>) -> Result<Self> {
        let properties = device.properties();
        let _compile = info_span!("compile", device = properties.name, nodes = graph.nodes().len()).entered();
        let kernels = Kernels::of(model.kernels(), device);
        let Staged { program, decisions, merges, beside, steps, plan, barriers } =
            stages(&graph, kernels, properties, options)?;

        let (memory, params) = debug_span!("memory").in_scope(|| memory(&program, &plan, model, device, plan_of))?;
        let transport = ParamTransport::Buffer;
        let mut recorded = debug_span!("kernels")
            .in_scope(|| commands(device, &program, &plan, &memory, &steps, &barriers, transport))?;
        recorded.words.look_at(&graph, &program);
        debug_span!("prove").in_scope(|| {
            checked("record", || prove(&graph, &trace(&program, &plan, &memory, &steps, &recorded.commands)?))
        })?;
        let recording =
            debug_span!("record").in_scope(|| device.backend().record(&recorded.commands, recorded.words.len()));
        let recording = recording.map_err(at("a recording from", &Command::first_label(&recorded.commands)))?;

        let slot = |name: &str, value: usize, offset: u64, ty: &TensorType| {
            let place = plan.places[value]?;
            let memory = memory.get(place.buffer)?.clone();
            let resident = program.resident.contains(&value);
            Some(Slot { name: name.into(), ty: ty.clone(), memory, offset: place.offset + offset, resident })
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
                let is_input = matches!(graph.leaf_kind(*tensor), Some(LeafKind::Input | LeafKind::Seed));
                let used = inputs.iter().any(|slot| *slot.name == **name);
                let ty = &graph.nodes()[tensor.node as usize].outputs[0];
                (is_input && !used).then(|| (name.clone(), ty.clone()))
            })
            .collect();
        let seed = graph.leaves().get(SEED);
        let has_seed = seed.is_some_and(|seed| graph.leaf_kind(*seed) == Some(&LeafKind::Seed));
        static FAMILIES: AtomicU64 = AtomicU64::new(0);
        let family = plan_of.map_or_else(|| FAMILIES.fetch_add(1, Ordering::Relaxed), |other| other.parts.family);
        // Runs of plans that have nothing in common overlap.
        let shares = has_seed || !states.is_empty();
        let own = || Arc::new(Mutex::new(Common::new(states.len(), 0)));
        let common = plan_of.filter(|_| shares).map_or_else(own, |other| other.common.clone());
        let flops = steps.iter().map(|step| profile::flops(&graph, step)).collect();
        let symbols = symbols(&graph, &recorded.words);
        let known = known(&graph, &symbols, plan_of);
        let state = RunState::new(inputs.len(), None);
        let options = options.clone();
        Ok(Self {
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
            state: Mutex::new(state),
            common,
            lists: Mutex::default(),
            worker: Mutex::default(),
            by_value: OnceLock::new(),
            memory,
            parts: Parts {
                family,
                graph,
                options,
                symbols,
                known,
                program,
                plan,
                steps,
                flops,
                barriers,
                decisions,
                merges,
                beside,
            }
            .into(),
        })
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
            return Err(unknown("input", SEED, self.inputs().map(|(known, _)| known)));
        }
        self.turn()?.common.next_seed = seed;
        Ok(())
    }

    /// Keeps others from the memory, which all runs use; refused while nobody knows what the states hold.
    fn turn(&self) -> Result<Turn<'_>> {
        let turn = self.any_turn()?;
        turn.common.failed.clone().map_or(Ok(turn), Err)
    }

    /// The same, whatever the states hold.
    fn any_turn(&self) -> Result<Turn<'_>> {
        // In this order everywhere.
        let run = self.state.lock().map_err(|_| Error::Poisoned)?;
        let common = self.common.lock().map_err(|_| Error::Poisoned)?;
        Ok(Turn { run, common })
    }

    /// The positions of the states that a run updates.
    fn updated(&self) -> impl Iterator<Item = usize> {
        let states = self.parts.graph.states().iter().enumerate();
        states.filter(|(_, state)| state.left != state.found).map(|(position, _)| position)
    }

    /// Passes on how something went that writes states, and remembers a failure.
    fn settled<T>(&self, common: &mut Common, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && !self.states.is_empty()
        {
            common.failed = Some(error.clone());
        }
        outcome
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The commands of a run, for devices that time them one by one.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// What was recorded, for [`prove`]: for tests of this workspace.
    ///
    /// # Errors
    /// The commands do not fit the plan, which is a fault of this crate.
    #[doc(hidden)]
    pub fn trace(&self) -> Result<Trace> {
        let Parts { program, plan, steps, .. } = &*self.parts;
        trace(program, plan, &self.memory, steps, &self.commands)
            .map_err(|defect| Error::Stage { stage: "record", defect })
    }

    /// What it does and why.
    pub fn explain(&self) -> Explanation {
        let Parts { program, plan, steps, barriers, decisions, merges, beside, .. } = &*self.parts;
        let most = |bytes: &Dim| u64::try_from(bytes.bounds().1).unwrap_or(0);
        let bytes = |value: usize| u64::try_from(program.values[value].bytes.bounds().1).unwrap_or(0);
        let explained = steps.iter().zip(barriers).map(|(step, barrier)| ExplainedStep {
            label: step.label.to_string(),
            kernel: step.work.name().to_owned(),
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
            Buffer::Param(_) | Buffer::Constant(_) | Buffer::State(_) | Buffer::Counters(_) => None,
        });
        let params = plan.buffers.iter().filter_map(|buffer| match buffer {
            Buffer::Activations(_) | Buffer::State(_) | Buffer::Counters(_) => None,
            Buffer::Param(value) | Buffer::Constant(value) => Some(bytes(*value)),
        });
        let counters = plan.buffers.iter().filter_map(|buffer| match buffer {
            Buffer::Counters(bytes) => Some(*bytes),
            Buffer::Activations(_) | Buffer::Param(_) | Buffer::Constant(_) | Buffer::State(_) => None,
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
            counters: counters.sum(),
            run_words: self.words.len(),
            decisions: decisions.clone(),
            merges: merges.clone(),
            beside: beside.clone(),
            fused_away: fused_away.cloned().collect(),
        }
    }
}

/// The memory of a plan, and the params in it.
type Memories = (Vec<Arc<dyn Memory>>, Vec<Slot>);

fn memory(
    program: &Program,
    plan: &Plan,
    model: &Model,
    device: &Device,
    plan_of: Option<&Executable>,
) -> Result<Memories> {
    let (mut memory, mut params) = (Vec::new(), Vec::new());
    for (index, buffer) in plan.buffers.iter().enumerate() {
        memory.push(match buffer {
            Buffer::Activations(bytes) => {
                plan.allocate(index, *bytes, device).map_err(|error| at_largest(program, plan, index, error))?
            }
            Buffer::Param(value) => {
                let info = &program.values[*value];
                let ty = info.ty.clone().unwrap_or(TensorType { element: ElementType::U32, shape: Vec::new() });
                let (memory, _) = model.on_device(device, &info.name, &ty)?;
                params.push(Slot {
                    name: info.name.as_str().into(),
                    ty,
                    memory: memory.clone(),
                    offset: 0,
                    resident: true,
                });
                memory
            }
            Buffer::State(value) => {
                let info = &program.values[*value];
                let known = plan_of.and_then(|other| other.states.iter().find(|slot| *slot.name == *info.name));
                if let Some(known) = known {
                    memory.push(known.memory.clone());
                    continue;
                }
                let bytes = padded(u64::try_from(info.bytes.bounds().1).unwrap_or(0));
                device.backend().allocate(bytes, &info.name).map_err(at("state", &info.name))?
            }
            // A plan's own, though the states are another's: runs of plans that have no states overlap.
            Buffer::Counters(bytes) => zeroed(device, *bytes, "counters").map_err(at("memory for", "counters"))?,
            Buffer::Constant(value) => {
                let info = &program.values[*value];
                let bytes: &[u8] = match &info.origin {
                    Origin::Constant(bytes) => bytes,
                    Origin::Input
                    | Origin::Param
                    | Origin::State
                    | Origin::Counters
                    | Origin::Computed
                    | Origin::Version(_)
                    | Origin::Over(_) => &[],
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
