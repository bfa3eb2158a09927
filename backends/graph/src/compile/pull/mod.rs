//! Pulls: each becomes one generated kernel, into which regions may be put if it only moves elements ([`by_elements`]), or on the CPU a function of the host where long runs are copied; several where a device binds fewer buffers than the op has inputs.
//!
//! | file | what it does |
//! |---|---|
//! | `plan` | counts and moves: merges axes, finds the widest unit |
//! | [`emit`] | the op's expression as IR |
//! | [`host`] | the op's expression as a function of the host |

pub(crate) mod emit;
pub(crate) mod host;
mod plan;

use std::fmt::Write as _;
use std::sync::Arc;

use trefoil_codegen::artefact::{Access, Features, Kernel};
use trefoil_codegen::compile::Reports;
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::{DeviceKind, Properties};

use self::plan::{Plan, Way};
use super::cache::Kernels;
use super::fuse::kernel::{Structure, computes, feature, fingerprint, there};
use super::fuse::max_buffers;
use super::program::{Chosen, KernelsWork, Located, Program, PullWork, UpdateWork, ValueId};
use super::steps::{Claim, Part, Step, StepWork, whole};
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::op::{Grid, Implementation, KernelStep, OpKind, ParamValue, Slot, Step as OpStep};
use crate::ops::state::Move;
use crate::pull::{ELEMENT_BY_ELEMENT, Pull};
use crate::types::{Layout, TensorType};

/// Adds the steps of a pull.
///
/// # Errors
/// It reads more tensors than the device binds and cannot be done in parts, or computes in a type that the device lacks.
pub(crate) fn steps(
    program: &Program,
    work: &PullWork,
    cache: Kernels<'_>,
    device: &Properties,
    steps: &mut Vec<Step>,
) -> Result<()> {
    let OpKind::Pull(pull) = work.op.kind() else {
        return Err(Error::Stage { stage: "steps", defect: format!("`{}` is no pull", work.op.name()) });
    };
    let Some(ty) = program.values[work.output].ty.clone() else {
        return Err(Error::Stage { stage: "steps", defect: format!("`{}` gives no tensor", work.op.name()) });
    };
    let layout = Layout::contiguous(&ty.shape);
    let maker = Maker { program, work, cache, device, pull: &pull };
    let most = if device.kind == DeviceKind::Cpu { usize::MAX } else { max_buffers(device) - 1 };
    let bound: std::collections::BTreeSet<_> =
        work.inputs.iter().map(|input| (input.value, input.ty.element.stored().rust_name())).collect();
    if bound.len() <= most {
        steps.push(maker.step(&work.inputs, &ty, &layout, Part::WHOLE)?);
        return Ok(());
    }
    let Some(axis) = pull.expression.joins() else {
        let reasons = format!("\n  it reads {} tensors, and {} binds {most}", bound.len(), device.name);
        return Err(Error::NoCandidate { node: program.values[work.output].name.clone(), reasons });
    };
    let mut start = Dim::from(0i64);
    let chunks = work.inputs.chunks(most);
    let of = chunks.len();
    for (index, inputs) in chunks.enumerate() {
        let lengths = inputs.iter().map(|input| input.ty.shape[axis].clone());
        let length = lengths.fold(Dim::from(0i64), |sum, extent| sum + extent);
        let mut part = ty.clone();
        part.shape[axis] = length.clone();
        let offset = start.clone() * layout.strides[axis].clone();
        let at = Layout { offset, strides: layout.strides.clone() };
        let mut step = maker.step(inputs, &part, &at, Part { index, of })?;
        writes_part(&mut step, work.output, &part);
        steps.push(step);
        start = start + length;
    }
    Ok(())
}

/// Notes that of a value a step writes as much as a tensor of that type takes, and leaves the rest as it is.
fn writes_part(step: &mut Step, value: ValueId, part: &TensorType) {
    for used in step.uses.iter_mut().filter(|used| used.value == value) {
        used.part = Some(part.bytes());
    }
}

/// The step of an update: its value is moved to its place in the state, whatever lies beside it.
///
/// # Errors
/// As [`steps`].
pub(crate) fn update(program: &Program, work: &UpdateWork, cache: Kernels<'_>, device: &Properties) -> Result<Step> {
    let UpdateWork { node, inputs: [old, value], output, target } = work;
    let moved = PullWork { node: *node, op: Arc::new(Move), inputs: vec![value.clone()], output: *output };
    let OpKind::Pull(pull) = moved.op.kind() else {
        return Err(Error::Stage { stage: "steps", defect: "an update moves nothing".to_owned() });
    };
    let maker = Maker { program, work: &moved, cache, device, pull: &pull };
    let mut step = maker.step(&moved.inputs, &value.ty, &target.layout, Part::WHOLE)?;
    writes_part(&mut step, *output, &value.ty);
    let name = &program.values[program.state_of(old.value)].name;
    step.story = match &target.part {
        Some((axis, position)) => {
            let count = &value.ty.shape[*axis];
            format!("{name}, axis {axis}: {count} from {position} on, in place; {}", step.story)
        }
        None => format!("all of {name}, in place; {}", step.story),
    };
    Ok(step)
}

/// A pull as kernels that bind its tensors as what their elements are, so that regions may be put into them; `None` of one that computes, or that is not one kernel of whole tensors.
pub(crate) fn by_elements(
    program: &Program,
    work: &PullWork,
    cache: Kernels<'_>,
    device: &Properties,
) -> Option<KernelsWork> {
    let OpKind::Pull(pull) = work.op.kind() else { return None };
    let ty = program.values[work.output].ty.clone()?;
    let types: Vec<TensorType> = work.inputs.iter().map(|input| input.ty.clone()).collect();
    let begins_within = |input: &Located| !input.layout.offset.is(0);
    if pull.expression.computes_in(&types, &ty).is_some()
        || work.inputs.iter().any(begins_within)
        || work.inputs.len() >= max_buffers(device)
        || !types.iter().chain([&ty]).map(TensorType::elements).all(is_counted)
    {
        return None;
    }
    let maker = Maker { program, work, cache, device, pull: &pull };
    let plan = maker.plan(&work.inputs, &ty, &Layout::contiguous(&ty.shape), true);
    let made = maker.kernel(&work.inputs, &plan).ok()?;
    let inputs = made.bound.iter().map(|input| Slot::Input(*input));
    let bindings = inputs.chain([Slot::Output(0)]).collect();
    let grid = Grid::Invocations(plan.invocations());
    let step = KernelStep { kernel: made.kernel, bindings, params: made.params, grid };
    // Each element of the result is one of an input.
    let written = ty.elements().bounds().1;
    let passes = types.iter().map(|ty| match ty.elements().bounds().1 {
        0 => None,
        read => u32::try_from((written.saturating_add(read) - 1) / read).ok().map(|times| times.max(1)),
    });
    let chosen = Chosen {
        candidate: ELEMENT_BY_ELEMENT,
        implementation: Implementation { steps: vec![OpStep::Kernel(step)], scratch: Vec::new(), cost: 0.0 },
        scratch: Vec::new(),
        counters: None,
        over: Vec::new(),
        passes: passes.collect(),
    };
    let (node, op, inputs) = (work.node, work.op.clone(), work.inputs.clone());
    Some(KernelsWork { node, op, inputs, outputs: vec![work.output], chosen: Some(chosen) })
}

/// Whether kernels can count so many elements.
fn is_counted(elements: Dim) -> bool {
    i32::try_from(elements.bounds().1).is_ok()
}

struct Maker<'a> {
    program: &'a Program,
    work: &'a PullWork,
    cache: Kernels<'a>,
    device: &'a Properties,
    pull: &'a Pull<'a>,
}

/// A pull's kernel.
struct Made {
    kernel: Arc<Kernel>,
    params: Vec<ParamValue>,
    /// For each binding that is read, the first of the inputs that it is.
    bound: Vec<usize>,
}

impl Maker<'_> {
    fn plan(&self, inputs: &[Located], ty: &TensorType, layout: &Layout, by_elements: bool) -> Plan {
        let types: Vec<TensorType> = inputs.iter().map(|input| input.ty.clone()).collect();
        let tensors: Vec<_> = inputs.iter().map(|input| (&input.ty, &input.layout)).collect();
        let computes_in = self.pull.expression.computes_in(&types, ty);
        let way = Way { spread: self.device.kind != DeviceKind::Cpu, by_elements };
        Plan::new(self.pull.expression.frame(&types, ty), computes_in, &tensors, (ty, layout), way)
    }

    /// One of the steps of a pull: a part of the result, of this type, that lies in it as `layout` says.
    fn step(&self, inputs: &[Located], ty: &TensorType, layout: &Layout, part: Part) -> Result<Step> {
        let (program, work) = (self.program, self.work);
        let plan = self.plan(inputs, ty, layout, false);
        let tensors = inputs.iter().map(|input| &input.ty).chain([ty]);
        let on_host = self.device.kind == DeviceKind::Cpu
            && (plan.moves_runs()
                || inputs.len() >= max_buffers(self.device)
                || !tensors.map(TensorType::elements).all(is_counted));
        let name = &program.values[work.output].name;
        let label = if part.of == 1 { name.clone() } else { format!("{name} part {}", part.index) };
        let claims = vec![Claim::Node(work.node)];
        let op = work.op.name();
        if on_host {
            let reads = inputs.iter().map(|input| whole(program, input.value, Access::Read));
            let uses = reads.chain([whole(program, work.output, Access::Write)]).collect();
            let story = format!("{op} on the host, {} bytes at once or a run", plan.unit.bytes);
            let step = StepWork::Call(host::step(work.op.clone(), op, plan));
            return Ok(Step { label: label.into(), work: step, uses, claims, part, story });
        }
        let Made { kernel, params, bound } = self.kernel(inputs, &plan)?;
        let values = bound.iter().map(|input| inputs[*input].value).chain([work.output]);
        let uses = values.zip(&*kernel.bindings).map(|(value, binding)| whole(program, value, binding.access));
        let uses = uses.collect();
        let ways = match (plan.computes_in, plan.units) {
            (Some(_), _) => String::new(),
            (None, 1) => format!(", {} bytes at once", plan.unit.bytes),
            (None, units) => format!(", {units} times {} bytes at once", plan.unit.bytes),
        };
        let work = StepWork::Kernel { kernel, params, grid: Grid::Invocations(plan.invocations()) };
        let story = format!("one kernel for {op}{ways}");
        Ok(Step { label: label.into(), work, uses, claims, part, story })
    }

    /// The kernel of a plan.
    ///
    /// # Errors
    /// It computes in a type that the device lacks, or an axis or what is written has more positions than kernels count.
    fn kernel(&self, inputs: &[Located], plan: &Plan) -> Result<Made> {
        let op = self.work.op.name();
        if let Some(extent) = plan.uncounted() {
            let node = self.program.values[self.work.output].name.clone();
            let reasons = format!("\n  {op}: an axis of {extent} positions, of which kernels count {}", i32::MAX);
            return Err(Error::NoCandidate { node, reasons });
        }
        // A part of a state may be written anywhere in it.
        let output = &self.program.values[self.work.output];
        let units = output.bytes.bounds().1 / plan.unit.bytes.max(1);
        if units > i64::from(u32::MAX) {
            let bytes = plan.unit.bytes;
            let reasons = format!("\n  {op}: {units} times {bytes} bytes, of which kernels count {}", u32::MAX);
            return Err(Error::NoCandidate { node: output.name.clone(), reasons });
        }
        // What is read as two types is bound twice.
        let mut bound: Vec<(ValueId, Scalar)> = Vec::new();
        let mut firsts = Vec::new();
        let bindings = inputs.iter().zip(&plan.inputs).enumerate().map(|(position, (located, input))| {
            let is_unit = input.moved && plan.computes_in.is_none();
            let scalar = if is_unit { plan.unit.scalar } else { input.element.stored() };
            let wanted = (located.value, scalar);
            let known = bound.iter().position(|known| *known == wanted).unwrap_or_else(|| {
                bound.push(wanted);
                firsts.push(position);
                bound.len() - 1
            });
            known as u32
        });
        let bindings: Vec<u32> = bindings.collect();
        let scalars: Vec<Scalar> = bound.iter().map(|(_, scalar)| *scalar).collect();
        let mut requires = Features::NONE;
        for element in emit::computed_types(plan) {
            let Some(needed) = feature(element) else { continue };
            if !computes(self.device, element) {
                return Err(Error::Lacking {
                    node: self.program.values[self.work.output].name.clone(),
                    op,
                    element,
                    device: self.device.name.clone(),
                    feature: needed.name(),
                });
            }
            requires = requires.union(there(self.device, element));
        }
        let (mut module, params) = emit::module(op, self.pull, plan, &scalars, &bindings, requires);
        let mut structure = module.to_string();
        if requires != Features::NONE {
            // Writing to a string does not fail.
            let _ = write!(structure, "requires {requires:?}");
        }
        let safe: String = op.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        module.name = format!("pull_{safe}_{:08x}", fingerprint(&structure) >> 32);
        module.entry.name.clone_from(&module.name);
        module.doc = format!("Generated for {op}.");
        let kernel = self.cache.get(
            &Structure::new(structure, Vec::new()),
            self.device.kind.target(),
            Reports::Dropped,
            || Ok(module),
            |module, diagnostics| Error::Kernel { kernel: module.name.clone(), message: diagnostics.to_string() },
        )?;
        Ok(Made { kernel, params, bound: firsts })
    }
}
