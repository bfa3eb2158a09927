//! The candidate of each op: the cheapest that can do it on this device. Operands that it wants contiguous are copied first, at a price.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use trefoil_codegen::artefact::{Feature, Kernel, ParamTransport, Target};
use trefoil_dsl::device::{DeviceKind, Properties};

use super::fuse::forbidden_names;
use super::over::{Readers, ReadersAt, kept, taken_over};
use super::program::{Chosen, Copies, KernelsWork, Located, Meaning, Origin, Program, PullWork, Value, Work};
use super::{Options, checked};
use crate::dim::Dim;
use crate::error::{Error, Result, names};
use crate::graph::Graph;
use crate::op::{Callee, Candidate, Implementation, Ineligible, OpKind, Operand, Request, Slot, Step};
use crate::ops::support::{LAUNCH, kernel_time, upper};
use crate::pull::ELEMENT_BY_ELEMENT;
use crate::types::{Layout, TensorType};

/// Bytes that a copy moves in a microsecond, for comparing candidates: what a slow GPU does.
const COPY_BYTES_PER_MICROSECOND: f64 = 100_000.0;
/// Bytes of a counter.
const COUNTER_BYTES: u64 = 4;

/// Operations of a pull in a microsecond on a large GPU, of which few use what others have read.
const FLOPS_OF_PULLS: f64 = 1.0e6;

/// What was decided for a node, for `explain`.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The node.
    pub node: String,
    /// The candidate that computes it.
    pub candidate: String,
    /// Its cost in microseconds, copies included.
    pub cost: f64,
    /// The positions of the inputs that are copied for it.
    pub copied: Vec<usize>,
    /// The others, and why not.
    pub others: Vec<(String, String)>,
}

/// Decides for every op with kernels.
///
/// # Errors
/// No candidate can do an op, an option names one that does not exist, or a candidate answers nonsense.
pub fn choose(graph: &Graph, program: &mut Program, device: &Properties, options: &Options) -> Result<Vec<Decision>> {
    known_names(graph, options)?;
    let mut decisions = Vec::new();
    let works = std::mem::take(&mut program.works);
    let readers = Readers::new(&works);
    let mut copies = Copies::default();
    for (index, work) in works.into_iter().enumerate() {
        let readers = readers.at(index);
        let so_far = (&mut *program, &mut copies);
        match work {
            Work::Kernels(kernels) => decisions.push(decide(graph, so_far, kernels, readers, device, options)?),
            Work::Pull(pull) => decisions.extend(decide_pull(graph, so_far, pull, readers, device, options)?),
            Work::Map(_) | Work::Fill(_) | Work::Update(_) => {
                copies.note(program, &work);
                program.works.push(work);
            }
        }
    }
    checked("choose", || program.check())?;
    Ok(decisions)
}

/// Checks that the options name what there is.
fn known_names(graph: &Graph, options: &Options) -> Result<()> {
    let mut all: Vec<(&str, &str, &'static str)> = Vec::new();
    for node in graph.nodes() {
        all.extend(node.op.kind().ways().into_iter().map(|known| (node.name.as_str(), node.op.name(), known)));
    }
    let unknown = |what, name: &str| {
        let distinct: BTreeSet<&str> = all.iter().map(|(_, _, candidate)| *candidate).collect();
        Err(Error::UnknownCandidate { what, name: name.to_owned(), known: names(distinct) })
    };
    for (target, name) in &options.force {
        if !all.iter().any(|(node, op, known)| (node == target || op == target) && known == name) {
            return unknown("force", &format!("{name} for {target}"));
        }
    }
    for name in options.forbid.iter().filter(|name| !forbidden_names().any(|known| known == *name)) {
        if !all.iter().any(|(_, _, known)| known == name) {
            return unknown("forbid", name);
        }
    }
    Ok(())
}

/// A candidate that can do it.
struct Offer<'a> {
    candidate: &'a dyn Candidate,
    implementation: Implementation,
    copied: Vec<Copied>,
    /// How many numbers a kernel counts in, if one does.
    counters: Option<u64>,
    cost: f64,
    /// How often it reads an element of each input, if it says so.
    passes: Vec<Option<u32>>,
}

/// An input that a candidate wants copied, and the axis that lies behind the others then.
struct Copied {
    input: usize,
    fastest: usize,
}

/// Decides for an op that kernels alone compute.
fn decide(
    graph: &Graph,
    (program, copies): (&mut Program, &mut Copies),
    work: KernelsWork,
    readers: ReadersAt<'_>,
    device: &Properties,
    options: &Options,
) -> Result<Decision> {
    let node = &graph.nodes()[work.node as usize];
    let op = work.op.clone();
    let OpKind::Kernels(candidates) = op.kind() else {
        return Err(Error::Stage { stage: "choose", defect: format!("`{}` has no candidates", node.name) });
    };
    let (so_far, inputs) = ((&*program, &*copies), (work.inputs.as_slice(), readers));
    let (best, others) = compare(graph, so_far, work.node, inputs, &candidates, device, options);
    match best {
        Some(best) => Ok(accept(graph, (program, copies), work, readers, best, others)),
        None => Err(nobody(&node.name, &others)),
    }
}

/// Decides for a pull, whose expression is evaluated where no candidate does it in less time.
fn decide_pull(
    graph: &Graph,
    (program, copies): (&mut Program, &mut Copies),
    work: PullWork,
    readers: ReadersAt<'_>,
    device: &Properties,
    options: &Options,
) -> Result<Option<Decision>> {
    let node = &graph.nodes()[work.node as usize];
    let op = work.op.clone();
    let OpKind::Pull(pull) = op.kind() else {
        return Err(Error::Stage { stage: "choose", defect: format!("`{}` is no pull", node.name) });
    };
    if pull.candidates.is_empty() {
        program.works.push(Work::Pull(work));
        return Ok(None);
    }
    let (so_far, inputs) = ((&*program, &*copies), (work.inputs.as_slice(), readers));
    let (best, mut others) = compare(graph, so_far, work.node, inputs, &pull.candidates, device, options);
    let types: Vec<_> = work.inputs.iter().map(|input| input.ty.clone()).collect();
    let cost = kernel_time(device, LAUNCH + upper(&op.flops(&types, &node.outputs)) / FLOPS_OF_PULLS);
    // Whoever forces another way wants that one, whatever it costs.
    let forced = forced(graph, work.node, options);
    let is_other_forced = forced.is_some_and(|way| way != ELEMENT_BY_ELEMENT);
    let is_forbidden = options.forbid.contains(ELEMENT_BY_ELEMENT);
    match best {
        Some(best) if best.cost <= cost || is_forbidden || is_other_forced => {
            let why = if is_other_forced {
                "another one is forced".to_owned()
            } else if is_forbidden {
                "forbidden".to_owned()
            } else {
                format!("it would take {cost:.1} us")
            };
            others.push((ELEMENT_BY_ELEMENT.to_owned(), why));
            let PullWork { node, op, inputs, output } = work;
            let kernels = KernelsWork { node, op, inputs, outputs: vec![output], chosen: None };
            Ok(Some(accept(graph, (program, copies), kernels, readers, best, others)))
        }
        None if is_forbidden || is_other_forced => Err(nobody(&node.name, &others)),
        best => {
            others.extend(best.map(|beaten| (beaten.candidate.name().to_owned(), costlier(&beaten))));
            let candidate = ELEMENT_BY_ELEMENT.to_owned();
            program.works.push(Work::Pull(work));
            Ok(Some(Decision { node: node.name.clone(), candidate, cost, copied: Vec::new(), others }))
        }
    }
}

/// The candidate that the options force for a node.
fn forced<'o>(graph: &Graph, node: u32, options: &'o Options) -> Option<&'o str> {
    let node = &graph.nodes()[node as usize];
    options.force.get(&node.name).or_else(|| options.force.get(node.op.name())).map(String::as_str)
}

fn nobody(node: &str, others: &[(String, String)]) -> Error {
    let mut reasons = String::new();
    for (name, reason) in others {
        // Writing to a string does not fail.
        let _ = write!(reasons, "\n  {name}: {reason}");
    }
    Error::NoCandidate { node: node.to_owned(), reasons }
}

/// The cheapest candidate of a node that may do it, and why not the others.
fn compare<'a>(
    graph: &Graph,
    (program, copies): (&Program, &Copies),
    node: u32,
    (inputs, readers): (&[Located], ReadersAt<'_>),
    candidates: &'a [Box<dyn Candidate + 'a>],
    device: &Properties,
    options: &Options,
) -> (Option<Offer<'a>>, Vec<(String, String)>) {
    let forced = forced(graph, node, options);
    let operands: Vec<Operand> =
        (0..inputs.len()).map(|input| operand(graph, program, inputs, input, readers)).collect();
    let outputs = &graph.nodes()[node as usize].outputs;
    let (mut best, mut others): (Option<Offer<'_>>, Vec<(String, String)>) = (None, Vec::new());
    for candidate in candidates {
        let name = candidate.name();
        if forced.is_some_and(|forced| forced != name) {
            others.push((name.to_owned(), "another one is forced".to_owned()));
            continue;
        }
        if options.forbid.contains(name) {
            others.push((name.to_owned(), "forbidden".to_owned()));
            continue;
        }
        let is_there = |input: usize, fastest, is_over| {
            known_copy(graph, (program, copies), (inputs, readers), &Copied { input, fastest }, is_over).is_some()
        };
        match offer(&**candidate, &operands, outputs, is_there, device, options.deterministic) {
            Err(reason) => others.push((name.to_owned(), reason)),
            Ok(offer) => match &best {
                Some(known) if known.cost <= offer.cost => others.push((name.to_owned(), costlier(&offer))),
                _ => {
                    if let Some(beaten) = best.replace(offer) {
                        others.push((beaten.candidate.name().to_owned(), costlier(&beaten)));
                    }
                }
            },
        }
    }
    (best, others)
}

/// A copy that is there for others and serves as that of an input too. One over which the candidate writes must be nobody else's.
fn known_copy(
    graph: &Graph,
    (program, copies): (&Program, &Copies),
    (inputs, readers): (&[Located], ReadersAt<'_>),
    &Copied { input, fastest }: &Copied,
    is_over: bool,
) -> Option<Located> {
    program.known_copy(copies, &inputs[input], fastest, |known| {
        let mut inputs = inputs.to_vec();
        inputs[input] = known.clone();
        !is_over || kept(graph, program, &inputs, input, readers).is_none()
    })
}

/// Gives the work to a candidate.
fn accept(
    graph: &Graph,
    (program, copies): (&mut Program, &mut Copies),
    mut work: KernelsWork,
    readers: ReadersAt<'_>,
    best: Offer<'_>,
    others: Vec<(String, String)>,
) -> Decision {
    let node = &graph.nodes()[work.node as usize];
    let over = taken_over(&best.implementation);
    let is_over = |input: usize| over.iter().any(|(_, taken)| *taken == input);
    // What is written over comes last, when it is known what the other inputs are.
    let (last, first): (Vec<_>, Vec<_>) = best.copied.iter().partition(|copied| is_over(copied.input));
    for copied in first.into_iter().chain(last) {
        let Copied { input, fastest } = *copied;
        let known = known_copy(graph, (&*program, &*copies), (&work.inputs, readers), copied, is_over(input));
        work.inputs[input] = known.unwrap_or_else(|| {
            let (copy, located) = program.copy_along(work.node, &work.inputs[input], fastest);
            let copy = Work::Map(copy);
            copies.note(program, &copy);
            program.works.push(copy);
            located
        });
    }
    let scratch = best.implementation.scratch.iter().enumerate().map(|(piece, bytes)| {
        program.values.push(Value {
            name: format!("scratch {piece} of {}", node.name),
            bytes: bytes.clone(),
            ty: None,
            origin: Origin::Computed,
            meaning: Meaning::Scratch { node: work.node, piece },
        });
        program.values.len() - 1
    });
    let scratch: Vec<_> = scratch.collect();
    let counters = best.counters.map(|count| {
        program.values.push(Value {
            name: format!("counters of {}", node.name),
            bytes: Dim::from(i64::try_from(count.saturating_mul(COUNTER_BYTES)).unwrap_or(i64::MAX)),
            ty: None,
            origin: Origin::Counters,
            meaning: Meaning::Counters { node: work.node },
        });
        program.values.len() - 1
    });
    if program.nothing.is_none() && best.implementation.slots().any(|slot| *slot == Slot::Empty) {
        program.nothing = Some(program.values.len());
        program.values.push(Value {
            name: "an operand that is not there".to_owned(),
            bytes: Dim::from(0i64),
            ty: None,
            origin: Origin::Constant(Arc::from([])),
            meaning: Meaning::Scratch { node: work.node, piece: usize::MAX },
        });
    }
    let mut replaced = Vec::new();
    for (output, input) in over {
        let below = work.inputs[input].value;
        program.values[work.outputs[output]].origin = Origin::Over(below);
        replaced.push(below);
    }
    let decision = Decision {
        node: node.name.clone(),
        candidate: best.candidate.name().to_owned(),
        cost: best.cost,
        copied: best.copied.iter().map(|copied| copied.input).collect(),
        others,
    };
    let (candidate, passes) = (best.candidate.name(), best.passes);
    let implementation = best.implementation;
    work.chosen = Some(Chosen { candidate, implementation, scratch, counters, over: replaced, passes });
    program.works.push(Work::Kernels(work));
    decision
}

fn costlier(offer: &Offer<'_>) -> String {
    let copies = if offer.copied.is_empty() { "" } else { ", copies included" };
    format!("it would take {:.1} us{copies}", offer.cost)
}

fn operand(graph: &Graph, program: &Program, inputs: &[Located], position: usize, readers: ReadersAt<'_>) -> Operand {
    let input = &inputs[position];
    let is_param = program.values[input.value].origin == Origin::Param;
    let kept = kept(graph, program, inputs, position, readers);
    Operand { ty: input.ty.clone(), layout: input.layout.clone(), is_param, kept }
}

/// What a candidate offers; asked again with copies where it wants operands contiguous, of which those cost nothing that are there for others.
fn offer<'a>(
    candidate: &'a dyn Candidate,
    operands: &[Operand],
    outputs: &[TensorType],
    is_there: impl Fn(usize, usize, bool) -> bool,
    device: &Properties,
    deterministic: bool,
) -> Result<Offer<'a>, String> {
    let (mut operands, mut copied): (_, Vec<Copied>) = (operands.to_vec(), Vec::new());
    let last = |input: usize| (input, None);
    // Each round copies at least one operand.
    for _ in 0..=operands.len() {
        let request = Request { inputs: &operands, outputs, device, deterministic };
        let wanted = match candidate.implement(&request) {
            Err(Ineligible::NeedsContiguous(wanted)) => wanted.into_iter().map(last).collect(),
            Err(Ineligible::NeedsAlong { input, axis }) => vec![(input, Some(axis))],
            Err(Ineligible::Other(reason)) => return Err(reason),
            Ok(implementation) => {
                fits(&implementation, &operands, outputs, device)?;
                let counters = implementation.counters()?;
                let wanted = unbindable(&implementation, &operands, device);
                if wanted.is_empty() {
                    let over = taken_over(&implementation);
                    let made = copied.iter().filter(|Copied { input, fastest }| {
                        !is_there(*input, *fastest, over.iter().any(|(_, taken)| taken == input))
                    });
                    let bytes = |copied: &Copied| operands[copied.input].ty.bytes().bounds().1 as f64;
                    let copying = made.map(|copied| LAUNCH + 2.0 * bytes(copied) / COPY_BYTES_PER_MICROSECOND);
                    let cost = implementation.cost + copying.sum::<f64>();
                    let passes = (0..operands.len()).map(|input| candidate.passes(&request, input)).collect();
                    return Ok(Offer { candidate, implementation, copied, counters, cost, passes });
                }
                wanted.into_iter().map(last).collect::<Vec<_>>()
            }
        };
        let inputs = operands.len();
        for (input, axis) in wanted {
            let Some(operand) = operands.get_mut(input) else {
                return Err(format!("it wants a copy of input {input}, but there are {inputs}"));
            };
            let rank = operand.ty.rank();
            let fastest = axis.unwrap_or(rank.saturating_sub(1));
            if axis.is_some() && fastest >= rank {
                return Err(format!("it wants input {input} along axis {fastest}, but there are {rank}"));
            }
            if copied.iter().any(|known| known.input == input) {
                return Err(format!("it does not take a copy of input {input} either"));
            }
            operand.layout = Layout::contiguous_along(&operand.ty.shape, fastest);
            operand.is_param = false;
            operand.kept = None;
            copied.push(Copied { input, fastest });
        }
    }
    Err("it wants ever more operands copied".to_owned())
}

/// Checks an implementation against its kernels' signatures and the device.
fn fits(
    implementation: &Implementation,
    operands: &[Operand],
    types: &[TensorType],
    device: &Properties,
) -> Result<(), String> {
    let (inputs, outputs) = (operands.len(), types.len());
    let over = taken_over(implementation);
    for (output, input) in &over {
        let (Some(operand), Some(ty)) = (operands.get(*input), types.get(*output)) else {
            return Err(format!(
                "it writes output {output} over input {input}: there are {inputs} inputs, {outputs} outputs"
            ));
        };
        let is_other = |other: &&(usize, usize)| (other.0 == *output) != (other.1 == *input);
        if operand.ty != *ty
            || !operand.layout.is_contiguous(&operand.ty.shape)
            || over.iter().any(|other| is_other(&other))
        {
            return Err(format!("it writes output {output} over input {input}, which do not lie alike"));
        }
        if let Some(reason) = &operand.kept {
            return Err(format!("it writes over input {input}, which must stay: {reason}"));
        }
    }
    let known = |slot: &Slot, writes: bool| match slot {
        Slot::Input(input) if *input >= inputs => Err(format!("it binds input {input}, but there are {inputs}")),
        Slot::Input(input) if writes => Err(format!("it writes input {input}")),
        Slot::Input(input) if over.iter().any(|(_, taken)| taken == input) => {
            Err(format!("it reads input {input}, over which it writes"))
        }
        Slot::Output(output) if over.iter().any(|(taken, _)| taken == output) => {
            Err(format!("it writes output {output} over an input and apart from it"))
        }
        Slot::Output(output) if *output >= outputs => Err(format!("it binds output {output}, but there are {outputs}")),
        Slot::Empty if writes => Err("it writes an operand that is not there".to_owned()),
        Slot::Scratch(piece) if *piece >= implementation.scratch.len() => {
            Err(format!("it binds scratch {piece}, but asks for {}", implementation.scratch.len()))
        }
        _ => Ok(()),
    };
    for step in &implementation.steps {
        match step {
            Step::Kernel(step) => {
                let kernel = &step.kernel;
                if step.bindings.len() != kernel.bindings.len() {
                    let (given, expected) = (step.bindings.len(), kernel.bindings.len());
                    return Err(format!("kernel `{}`: {given} bindings given, {expected} expected", kernel.name));
                }
                for (slot, binding) in step.bindings.iter().zip(&*kernel.bindings) {
                    known(slot, binding.access.writes())?;
                }
                runs_on(kernel, device)?;
            }
            Step::Call(call) => {
                match &call.callee {
                    Callee::Host(_) if device.kind != DeviceKind::Cpu => {
                        return Err(format!("`{}` runs on the host, and this is not the cpu device", call.name));
                    }
                    Callee::Product(product) => device.multiplies(product)?,
                    Callee::Host(_) => {}
                }
                call.reads.iter().try_for_each(|slot| known(slot, false))?;
                call.writes.iter().try_for_each(|slot| known(slot, true))?;
            }
        }
    }
    Ok(())
}

pub(super) fn runs_on(kernel: &Kernel, device: &Properties) -> Result<(), String> {
    let limits = &device.limits;
    let invocations: u32 = kernel.workgroup_size.iter().product();
    if kernel.bindings.len() as u64 > u64::from(limits.max_storage_buffers) {
        return Err(format!(
            "kernel `{}` binds {} buffers, the device allows {}",
            kernel.name,
            kernel.bindings.len(),
            limits.max_storage_buffers
        ));
    }
    if kernel.workgroup_bytes > limits.max_workgroup_bytes || invocations > limits.max_invocations {
        return Err(format!(
            "kernel `{}` wants {} bytes of workgroup memory and {invocations} invocations, the device allows {} and {}",
            kernel.name, kernel.workgroup_bytes, limits.max_workgroup_bytes, limits.max_invocations
        ));
    }
    if let Some(size) = kernel.subgroup_size.filter(|size| !device.offers_subgroups_of(*size)) {
        return Err(format!("kernel `{}` wants subgroups of {size}, which the device does not offer", kernel.name));
    }
    // The CPU runs compiled functions and IR, which are no variants.
    if device.kind == DeviceKind::Cpu {
        return Ok(());
    }
    let runs_as = |target| {
        let variant = kernel.variant_with(target, device.features, &device.matrices, ParamTransport::Buffer);
        variant.map(drop).map_err(|error| error.to_string())
    };
    let own = device.kind.target();
    // A device that has what its language cannot say takes SPIR-V for it.
    let beyond = Feature::ALL.iter().any(|feature| device.features.has(*feature) && feature.never(own));
    runs_as(own).or_else(|refused| if beyond { runs_as(Target::Spirv).map_err(|_| refused) } else { Err(refused) })
}

/// The inputs that cannot be bound where their layout starts: a binding starts at a multiple of what the device and the kernel's widest access want, and a
/// device with pointers knows no start that depends on symbols.
fn unbindable(implementation: &Implementation, operands: &[Operand], device: &Properties) -> Vec<usize> {
    let mut wanted = Vec::new();
    for step in &implementation.steps {
        let (slots, vectors): (&[Slot], Vec<i64>) = match step {
            Step::Kernel(step) => {
                (&step.bindings, step.kernel.bindings.iter().map(|binding| i64::from(binding.vector.max(1))).collect())
            }
            Step::Call(call) => (&call.reads, vec![1; call.reads.len()]),
        };
        for (slot, vector) in slots.iter().zip(vectors) {
            let Slot::Input(input) = slot else { continue };
            let operand = &operands[*input];
            let packed = if operand.ty.element.bytes() < 4 { 2 } else { 1 };
            let fixed = operand.layout.offset.constant().is_some() || !device.kind.has_pointers();
            if (!fixed || !operand.layout.offset.divides_evenly(vector.max(packed))) && !wanted.contains(input) {
                wanted.push(*input);
            }
        }
    }
    wanted
}
