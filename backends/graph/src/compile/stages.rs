//! The stages that need no device but what it is and allows; and what they tell before there is one.

use tracing::debug_span;
use trefoil_dsl::device::Properties;

use super::Options;
use super::cache::{KernelCache, Kernels};
use super::choose::{Decision, choose};
use super::fuse::attach::Merge;
use super::fuse::beside::Beside;
use super::fuse::{Fused, fuse};
use super::legalise::legalise;
use super::order::{Ordered, ordered};
use super::plan::{Buffer, Plan};
use super::program::{Origin, Program};
use super::schedule::Reason;
use super::steps::{Step, steps};
use crate::error::{Error, Result, names};
use crate::graph::{Graph, LeafKind};
use crate::op::Op;
use crate::types::TensorType;

/// A graph for a device, before it has memory.
#[derive(Debug)]
pub(crate) struct Staged {
    pub program: Program,
    pub decisions: Vec<Decision>,
    /// What was decided of regions beside kernels.
    pub merges: Vec<Merge>,
    /// Small regions that share a kernel.
    pub beside: Vec<Beside>,
    pub steps: Vec<Step>,
    pub plan: Plan,
    /// Why a barrier stands before each step.
    pub barriers: Vec<Vec<Reason>>,
}

/// What an executable would do ([`forecast`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The candidates of ops with kernels, and why not the others.
    pub decisions: Vec<Decision>,
    /// The kernels and functions of the host, step by step.
    pub steps: Vec<String>,
    /// Bytes of each buffer of activations.
    pub activations: Vec<u64>,
}

/// Runs the stages.
pub(crate) fn stages(graph: &Graph, kernels: Kernels<'_>, device: &Properties, options: &Options) -> Result<Staged> {
    let mut program = debug_span!("legalise").in_scope(|| legalise(graph))?;
    program.resident = resident(graph, &program, options)?;
    let decisions = debug_span!("choose").in_scope(|| choose(graph, &mut program, device, options))?;
    let mut fused = debug_span!("fuse").in_scope(|| fuse(&program, options, kernels, device))?;
    let steps = debug_span!("steps").in_scope(|| steps(graph, &program, &mut fused, kernels, device))?;
    let Fused { merges, beside, .. } = fused;
    let ordered = ordered(&program, steps, device)?;
    let Ordered { steps, plan, barriers } = ordered;
    Ok(Staged { program, decisions, merges, beside, steps, plan, barriers })
}

/// The inputs that the options name.
fn resident(graph: &Graph, program: &Program, options: &Options) -> Result<Vec<usize>> {
    let inputs = || {
        let is_input = |tensor| matches!(graph.leaf_kind(tensor), Some(LeafKind::Input | LeafKind::Seed));
        graph.leaves().iter().filter(move |(_, tensor)| is_input(**tensor)).map(|(name, _)| name.as_str())
    };
    if let Some(name) = options.resident.iter().find(|name| !inputs().any(|known| known == *name)) {
        return Err(Error::Unknown { what: "input", name: name.clone(), known: names(inputs()) });
    }
    let values = program.values.iter().enumerate();
    let named = values.filter(|(_, info)| info.origin == Origin::Input && options.resident.contains(&info.name));
    Ok(named.map(|(value, _)| value).collect())
}

/// What [`crate::Executable::compile`] would do with a graph on a device of which no more is known than what it is and allows: nothing is opened, allocated or loaded.
///
/// ```
/// use trefoil_graph::compile::stages::forecast;
/// use trefoil_graph::{Dim, ElementType, Graph, Options};
/// let mut g = Graph::new();
/// let x = g.input("x", ElementType::F64, [1000])?;
/// let y = g.add(x, x)?;
/// g.output("y", y)?;
/// # let device = trefoil_cpu::open(&Default::default())?;
/// // Of this device, or of one that is described by data.
/// let told = forecast(&g, device.properties(), &Options::default())?;
/// assert_eq!(told.steps.len(), 1);
/// assert!(told.activations.iter().sum::<u64>() >= 16_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As compiling: an op has no candidate on such a device, or not with these types and attributes; a tensor is too large for it; a name in the options means nothing.
pub fn forecast(graph: &Graph, device: &Properties, options: &Options) -> Result<Forecast> {
    let kernels = Kernels { cache: &KernelCache::default(), kept: None, reports: false };
    let Staged { decisions, steps, plan, .. } = stages(graph, kernels, device, options)?;
    let steps = steps.iter().map(|step| step.work.name().to_owned());
    let activations = plan.buffers.iter().filter_map(|buffer| match buffer {
        Buffer::Activations(bytes) => Some(*bytes),
        Buffer::Param(_) | Buffer::Constant(_) | Buffer::State(_) | Buffer::Counters(_) => None,
    });
    Ok(Forecast { decisions, steps: steps.collect(), activations: activations.collect() })
}

/// Whether and how a device takes an op with its attributes, on tensors of these types: the [`forecast`] of a graph of that op alone.
///
/// # Errors
/// The op does not take such tensors, or as [`forecast`].
pub fn forecast_op(op: impl Op, inputs: &[TensorType], device: &Properties, options: &Options) -> Result<Forecast> {
    let mut graph = Graph::new();
    let mut operands = Vec::with_capacity(inputs.len());
    for (index, ty) in inputs.iter().enumerate() {
        operands.push(graph.input(&format!("input {index}"), ty.element, ty.shape.clone())?);
    }
    for (index, output) in graph.add_op(op, &operands)?.into_iter().enumerate() {
        graph.output(&format!("output {index}"), output)?;
    }
    forecast(&graph, device, options)
}
