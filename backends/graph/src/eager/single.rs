//! The executable of one call: the stages of every compilation, for buffers that each launch brings.
//!
//! Each value has a buffer of its own: nothing shares memory within a launch, so that the barriers of the batch are the only ones there are. What the method gives that is a view of an operand or of
//! something computed becomes a view: of the operand's memory, or of the computed one's.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use trefoil_dsl::artefact::ParamTransport;
use trefoil_dsl::device::{
    Call, CallCommand, Command, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource, Pipeline,
};

use super::Eager;
use super::pool::Buffer;
use super::strided::Strided;
use super::tensor::Form;
use crate::compile::by_value::by_value;
use crate::compile::choose::choose;
use crate::compile::fuse::forbidden_names;
use crate::compile::fuse::fuse;
use crate::compile::legalise::legalise;
use crate::compile::plan::{self, Plan};
use crate::compile::program::{Meaning, Origin, Program};
use crate::compile::prove::prove;
use crate::compile::record::{commands, touches};
use crate::compile::schedule::barriers;
use crate::compile::steps::steps;
use crate::compile::trace::trace;
use crate::compile::{Options, checked};
use crate::dim::{Dim, Extents};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphError, LeafKind, Tensor};
use crate::op::OpKind;
use crate::types::{Layout, TensorType};

/// A call, compiled.
#[derive(Debug)]
pub(super) struct Single {
    /// What is launched, in order.
    pub work: Vec<Work>,
    /// The memory that it uses.
    pub buffers: Vec<Source>,
    /// What the call gives.
    pub gives: Vec<Given>,
}

/// Where the memory of a launch comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// An operand.
    Operand(usize),
    /// The seed of this launch.
    Seed,
    /// Memory that the executable holds: constants, and counters, which every launch leaves as it finds them.
    Constant(Arc<Buffer>),
    /// So many bytes of the pool, for a result or as scratch memory.
    Fresh(u64),
}

/// A tensor that the call gives.
#[derive(Debug)]
pub(super) struct Given {
    pub place: Place,
    pub form: Arc<Form>,
}

/// Whose memory it lies in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// That of an operand.
    Operand(usize),
    /// A buffer of the launch.
    Buffer(usize),
}

/// A part of a buffer of the launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub buffer: usize,
    offset: u64,
    bytes: u64,
}

impl Part {
    /// The range in the memory that a launch brings, which begins so many bytes into it.
    pub fn of(self, memory: &Arc<dyn Memory>, first: u64) -> MemoryRange {
        MemoryRange { memory: memory.clone(), offset: first + self.offset, bytes: self.bytes }
    }
}

/// A command without its memory.
pub(super) enum Work {
    Dispatch {
        pipeline: Arc<dyn Pipeline>,
        parts: Vec<(Part, Uses)>,
        /// Where the kernel reports what it asserts and prints, if it does: all launches there at once.
        reports: Option<MemoryRange>,
        params: Vec<u8>,
        groups: [u32; 3],
        label: Arc<str>,
    },
    Call {
        call: Call,
        reads: Vec<Part>,
        writes: Vec<Part>,
        label: Arc<str>,
    },
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dispatch { parts, groups, label, .. } => write!(f, "{label} on {parts:?} in {groups:?}"),
            Self::Call { reads, writes, label, .. } => write!(f, "{label} from {reads:?} to {writes:?}"),
        }
    }
}

/// What a command does with a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uses {
    pub reads: bool,
    pub writes: bool,
}

impl Work {
    /// Every part, with what is done with it.
    pub fn parts(&self) -> impl Iterator<Item = (Part, Uses)> {
        let (bound, read, written): (&[(Part, Uses)], &[Part], &[Part]) = match self {
            Self::Dispatch { parts, .. } => (parts, &[], &[]),
            Self::Call { reads, writes, .. } => (&[], reads, writes),
        };
        let read = read.iter().map(|part| (*part, Uses { reads: true, writes: false }));
        let written = written.iter().map(|part| (*part, Uses { reads: false, writes: true }));
        bound.iter().copied().chain(read).chain(written)
    }
}

/// Stands for the memory that a launch will bring, while commands are made.
#[derive(Debug)]
struct Absent {
    buffer: usize,
    bytes: u64,
    device: u64,
}

impl Memory for Absent {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.device
    }
}

fn defect(defect: impl Into<String>) -> Error {
    Error::Stage { stage: "eager", defect: defect.into() }
}

/// A tensor that the method gives: its root, which is no view, and where its elements lie there.
struct Rooted {
    root: Tensor,
    ty: TensorType,
    layout: Layout,
}

impl Single {
    /// Compiles what `build` adds to a graph of operands of these forms.
    ///
    /// # Errors
    /// As for graphs and executables.
    pub fn compile(
        eager: &Eager,
        op: &'static str,
        forms: &[Arc<Form>],
        names: &[&'static str],
        build: impl FnOnce(&mut Graph) -> Result<Vec<Tensor>>,
    ) -> Result<Self> {
        let mut graph = Graph::for_trace();
        let mut leaves = Vec::with_capacity(forms.len());
        for (position, (form, name)) in forms.iter().zip(names).enumerate() {
            let taken = names[..position].contains(name);
            let name = if taken { format!("{name} {position}") } else { (*name).to_owned() };
            leaves.push(operand(&mut graph, &name, form)?);
        }
        let tensors = build(&mut graph)?;
        let mut rooted = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            rooted.push(root(&mut graph, tensor, &leaves)?);
        }
        let mut computed: Vec<Tensor> = Vec::new();
        for Rooted { root, .. } in &rooted {
            if !leaves.contains(root) && !computed.contains(root) {
                graph.output(&format!("{op} {}", computed.len()), *root)?;
                computed.push(*root);
            }
        }
        let (work, buffers, places) =
            if computed.is_empty() { (Vec::new(), Vec::new(), Vec::new()) } else { lower(eager, &graph, &leaves)? };
        let gives = rooted.into_iter().map(|Rooted { root, ty, layout }| {
            let memory = graph.type_of(root)?.elements().constant();
            let elements = memory.ok_or_else(|| symbolic(op, graph.type_of(root).ok()))?;
            let operand = leaves.iter().position(|leaf| *leaf == root);
            let place = match (operand, computed.iter().position(|known| *known == root)) {
                (Some(operand), _) => Place::Operand(operand),
                (None, Some(output)) => Place::Buffer(places[output]),
                (None, None) => return Err(defect(format!("`{op}` gives what nothing computes"))),
            };
            Ok(Given { place, form: Arc::new(Form::new(ty, layout, elements)) })
        });
        Ok(Self { gives: gives.collect::<Result<_>>()?, work, buffers })
    }
}

fn symbolic(op: &'static str, ty: Option<&TensorType>) -> Error {
    let ty = ty.map(ToString::to_string).unwrap_or_default();
    Error::Symbolic { what: "tensor", name: op.to_owned(), ty }
}

/// An operand in the graph; gives its leaf.
fn operand(graph: &mut Graph, name: &str, form: &Form) -> Result<Tensor, GraphError> {
    let Form { ty, elements, layout, .. } = form;
    match layout {
        None => graph.input(name, ty.element, ty.shape.clone()),
        Some(layout) => {
            let memory = graph.input(name, ty.element, vec![Dim::from(*elements)])?;
            graph.add_one(Strided { ty: ty.clone(), layout: layout.clone() }, &[memory])?;
            Ok(memory)
        }
    }
}

/// What a tensor is a view of. What strides cannot say is copied, as is what no operand and no computation holds, such as a constant.
fn root(graph: &mut Graph, tensor: Tensor, operands: &[Tensor]) -> Result<Rooted> {
    let ty = graph.type_of(tensor)?.clone();
    if ty.elements().constant().is_none() {
        return Err(symbolic("eager", Some(&ty)));
    }
    let (mut root, mut views) = (tensor, Vec::new());
    while let Some(node) = graph.nodes().get(root.node as usize)
        && let (OpKind::View(_), [input]) = (node.op.kind(), node.inputs.as_slice())
    {
        views.push(root);
        root = *input;
    }
    let is_leaf = matches!(graph.nodes()[root.node as usize].op.kind(), OpKind::Leaf);
    let mut at = Some(Layout::contiguous(&graph.type_of(root)?.shape)).filter(|_| !is_leaf || operands.contains(&root));
    for view in views.iter().rev() {
        let node = &graph.nodes()[view.node as usize];
        if let (OpKind::View(op), Some(layout), [input]) = (node.op.kind(), at.take(), node.inputs.as_slice()) {
            at = op.layout(graph.type_of(*input)?, &layout, &node.outputs[0]);
        }
    }
    match at {
        Some(layout) => Ok(Rooted { root, ty, layout }),
        None => {
            let copy = graph.contiguous(tensor)?;
            let layout = Layout::contiguous(&ty.shape);
            Ok(Rooted { root: copy, ty, layout })
        }
    }
}

/// Work, buffers, and the buffer of each output.
type Lowered = (Vec<Work>, Vec<Source>, Vec<usize>);

/// The stages of a compilation, for memory that is not there yet.
fn lower(eager: &Eager, graph: &Graph, operands: &[Tensor]) -> Result<Lowered> {
    let device = eager.device();
    let (properties, options) = (device.properties(), concerning(graph, eager.options()));
    let mut program = legalise(graph)?;
    // Operands belong to others.
    let inputs = program.values.iter().enumerate().filter(|(_, info)| info.origin == Origin::Input);
    program.resident = inputs.map(|(value, _)| value).collect();
    choose(graph, &mut program, properties, &options)?;
    program.resident.clear();
    let mut fused = fuse(&program, &options, eager.kernels(), properties)?;
    let steps = steps(graph, &program, &mut fused, eager.kernels(), properties)?;
    let plan = plan::apart(&program, &steps, &properties.limits, &properties.name)?;
    let touched: Vec<_> = steps.iter().map(|step| touches(&program, &plan, step)).collect();
    let barriers = barriers(&touched);

    let (sources, values) = sources(eager, graph, &program, &plan, operands)?;
    let memory: Vec<Arc<dyn Memory>> = values
        .iter()
        .enumerate()
        .map(|(buffer, value)| {
            let bytes = bytes_of(&program, *value);
            Arc::new(Absent { buffer, bytes, device: device.id() }) as Arc<dyn Memory>
        })
        .collect();
    let recorded = commands(device, &program, &plan, &memory, &steps, &barriers, ParamTransport::Value)?;
    checked("eager", || prove(graph, &trace(&program, &plan, &memory, &steps, &recorded.commands)?))?;
    let words = recorded.words.fill(&Extents::new())?;
    let mut work = Vec::new();
    for command in &recorded.commands {
        // The batch has barriers of its own.
        if !matches!(command, Command::Barrier) {
            work.push(without_memory(by_value(command, &words)?)?);
        }
    }
    let outputs = program.outputs.iter().map(|(name, output)| {
        let place = plan.places[output.value].ok_or_else(|| defect(format!("output `{name}` has no place")))?;
        Ok(place.buffer)
    });
    Ok((work, sources, outputs.collect::<Result<_>>()?))
}

/// The options without candidates of other calls' ops, and without inputs, which a call does not have.
fn concerning(graph: &Graph, options: &Options) -> Options {
    let mut options = Options { resident: BTreeSet::new(), ..options.clone() };
    options.force.retain(|target, _| graph.nodes().iter().any(|node| node.op.name() == target));
    options.forbid.retain(|name| {
        forbidden_names().any(|known| known == name)
            || graph.nodes().iter().any(|node| node.op.kind().ways().contains(&name.as_str()))
    });
    options
}

fn bytes_of(program: &Program, value: usize) -> u64 {
    u64::try_from(program.values[value].bytes.bounds().1).unwrap_or(0)
}

/// Where the memory of each buffer of the plan comes from, and whose value it is.
fn sources(
    eager: &Eager,
    graph: &Graph,
    program: &Program,
    plan: &Plan,
    operands: &[Tensor],
) -> Result<(Vec<Source>, Vec<usize>)> {
    let (mut sources, mut values) = (Vec::new(), Vec::new());
    // Buffers are numbered in the order of the values that have one of their own.
    let own = |value: usize| plan.places[value].is_some() && program.home_of(value) == value;
    for (value, info) in program.values.iter().enumerate().filter(|(value, _)| own(*value)) {
        let leaf = match info.meaning {
            Meaning::Tensor(tensor) => Some(tensor),
            Meaning::Copy(_) | Meaning::Scratch { .. } | Meaning::Counters { .. } => None,
        };
        sources.push(match &info.origin {
            // What stands for operands that are not there; nothing writes it.
            Origin::Computed if program.nothing == Some(value) => Source::Constant(eager.upload(&[], &info.name)?),
            // Launches of a call follow each other, since each writes them; what the last has left is zero again.
            Origin::Counters => {
                let zeros = vec![0u8; usize::try_from(bytes_of(program, value)).unwrap_or(0)];
                Source::Constant(eager.upload(&zeros, &info.name)?)
            }
            Origin::Computed => Source::Fresh(bytes_of(program, value)),
            Origin::Constant(bytes) => Source::Constant(eager.upload(bytes, &info.name)?),
            Origin::Input => match operands.iter().position(|operand| Some(*operand) == leaf) {
                Some(operand) => Source::Operand(operand),
                None if leaf.is_some_and(|leaf| is_seed(graph, leaf)) => Source::Seed,
                None => return Err(defect(format!("`{}` is an input that nobody gives", info.name))),
            },
            _ => return Err(defect(format!("`{}` is given once and for all, to executables alone", info.name))),
        });
        values.push(value);
    }
    Ok((sources, values))
}

fn is_seed(graph: &Graph, leaf: Tensor) -> bool {
    graph.leaf_kind(leaf) == Some(&LeafKind::Seed)
}

/// A command with its parameters in it, without the memory that stood in for that of launches.
fn without_memory(command: Command) -> Result<Work> {
    let part = |range: &MemoryRange| {
        let absent = range.memory.as_any().downcast_ref::<Absent>();
        let buffer = absent.ok_or_else(|| defect("a command has memory of its own"))?.buffer;
        Ok(Part { buffer, offset: range.offset, bytes: range.bytes })
    };
    match command {
        Command::Dispatch(DispatchCommand { pipeline, mut bindings, params, groups, label }) => {
            let kernel = pipeline.kernel().clone();
            // The last binding, which is the device's and no launch's.
            let reports = bindings.pop_if(|_| !kernel.sites.is_empty());
            let parts = bindings.iter().zip(&*kernel.bindings).map(|(range, binding)| {
                let access = binding.access;
                Ok((part(range)?, Uses { reads: access.reads(), writes: access.writes() }))
            });
            let parts = parts.collect::<Result<_>>()?;
            match (params, groups) {
                (ParamSource::Value(params), GroupSource::Value(groups)) => {
                    Ok(Work::Dispatch { pipeline, parts, reports, params, groups, label })
                }
                _ => Err(defect(format!("`{label}` depends on run words"))),
            }
        }
        Command::Call(CallCommand { call, reads, writes, label, .. }) => Ok(Work::Call {
            call,
            reads: reads.iter().map(part).collect::<Result<_>>()?,
            writes: writes.iter().map(part).collect::<Result<_>>()?,
            label,
        }),
        Command::Barrier | Command::Copy(_) => Err(defect("no stage makes copies")),
    }
}
