//! Commands, recorded once; and the run words, in which everything lies that may change from run to run.
//!
//! Each step's parameter block lies at a multiple of 256 bytes; after the blocks come the grids that depend on symbols. Words that depend on no symbol are written
//! once, the others anew when the symbols' values change.
//!
//! Kernels that report what their authors assert and print take that form here, and bind the device's memory for it behind what their steps use. The plan does not know it, and it needs no barriers: all that is done there is atomic.

use std::sync::Arc;

use trefoil_codegen::artefact::{GridKind, Kernel, ParamField, ParamRole, ParamScalar, ParamTransport};
use trefoil_dsl::device::{
    Call, CallCommand, Command, Device, DispatchCommand, GroupSource, Memory, MemoryRange, ParamSource, Pipeline,
};
use trefoil_dsl::error::Error as DeviceError;
use trefoil_dsl::launch::KernelHandle;
use trefoil_dsl::support::check::{BINDING_MULTIPLE, PARAMS_ALIGNMENT, padded};

use super::plan::{Place, Plan};
use super::program::Program;
use super::schedule::{Reason, Touch};
use super::steps::{Step, StepWork, Use};
use super::words::{Format, GridShape, GridWords, Number, RunWords, StatePlace};
use crate::dim::{Dim, Extents};
use crate::error::{Error, Result, at};
use crate::op::{CallStep, Callee, Grid, ParamValue};

/// A step's binding as a range of bytes.
#[derive(Clone, Debug)]
struct Bound {
    range: MemoryRange,
    /// The bytes of what the kernel's slice has.
    bytes: Dim,
    /// The byte of the range at which the slice starts, where it depends on nothing.
    rest: u64,
    /// The byte at which the slice starts, where symbols decide: the whole value is bound.
    moving: Option<Dim>,
}

/// Commands with everything that a run needs to know.
#[derive(Debug)]
pub struct Recorded {
    /// The commands.
    pub commands: Vec<Command>,
    /// The run words.
    pub words: RunWords,
}

/// What a step touches, at the upper bounds, for the scheduler.
pub fn touches(program: &Program, plan: &Plan, step: &Step) -> Vec<Touch> {
    step.uses
        .iter()
        .filter_map(|used| {
            let place = plan.places[used.value]?;
            Some(Touch {
                buffer: place.buffer,
                start: place.offset,
                end: place.offset + place.bytes,
                reads: used.access.reads(),
                writes: used.access.writes(),
                name: program.values[used.value].name.clone(),
            })
        })
        .collect()
}

/// Makes the commands, with pipelines that take their parameters in that way.
///
/// # Errors
/// A parameter does not fit its kernel, a grid is larger than the device allows, or the device does not load a kernel.
pub fn commands(
    device: &Device,
    program: &Program,
    plan: &Plan,
    memory: &[Arc<dyn Memory>],
    steps: &[Step],
    barriers: &[Vec<Reason>],
    transport: ParamTransport,
) -> Result<Recorded> {
    let mut kernels: Vec<Arc<Kernel>> = Vec::new();
    for step in steps {
        if let StepWork::Kernel { kernel, .. } = &step.work {
            let reporting = device.reporting(kernel).map_err(at("step", &step.label))?;
            kernels.push(reporting.map_or_else(|| kernel.clone(), KernelHandle::into_shared));
        }
    }
    let mut pipelines = load(device, &kernels, transport).map_err(|error| at_step(error, steps))?.into_iter();
    let mut recorder = Recorder { device, program, plan, memory, words: RunWords::default(), block: Vec::new() };
    let mut commands = Vec::new();
    let mut grids = Vec::new();
    for (step, reasons) in steps.iter().zip(barriers) {
        if !reasons.is_empty() {
            commands.push(Command::Barrier);
        }
        match &step.work {
            StepWork::Kernel { params, grid, .. } => {
                let pipeline = pipelines.next().ok_or_else(|| Error::Stage {
                    stage: "record",
                    defect: "the device gave fewer pipelines than kernels".to_owned(),
                })?;
                let (dispatch, words) = recorder.dispatch(step, params, grid, pipeline)?;
                grids.push((commands.len(), words));
                commands.push(Command::Dispatch(dispatch));
            }
            StepWork::Call(call) => commands.push(Command::Call(recorder.call(step, call)?)),
        }
    }
    // Grids that depend on symbols lie after all blocks.
    for (command, mut words) in grids {
        if words.groups_at.is_some() {
            let at = recorder.words.template.len();
            recorder.words.template.extend([0; 12]);
            words.groups_at = Some(at);
            if let Some(Command::Dispatch(dispatch)) = commands.get_mut(command) {
                dispatch.groups = GroupSource::RunWords { offset: at as u32, bound: words.bound };
            }
        }
        recorder.words.grids.push(words);
    }
    recorder.words.places.extend(program.works.iter().filter_map(|work| StatePlace::of(program, work)));
    Ok(Recorded { commands, words: recorder.words })
}

/// The error with the step of the kernel that it names.
fn at_step(error: Error, steps: &[Step]) -> Error {
    let Error::Device(error) = error else { return error };
    let at_kernel = match &error {
        DeviceError::Lost { label, .. } => Some(label.as_str()),
        other => other.kernel(),
    };
    let named = |step: &&Step| match &step.work {
        StepWork::Kernel { kernel, .. } => at_kernel == Some(&*kernel.name),
        StepWork::Call(_) => false,
    };
    match steps.iter().find(named) {
        Some(step) => at("step", &step.label)(error),
        None => Error::Device(error),
    }
}

/// A pipeline for each kernel; the same kernel is loaded once.
fn load(device: &Device, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
    let mut distinct: Vec<Arc<Kernel>> = Vec::new();
    let mut which = Vec::with_capacity(kernels.len());
    // With and without Rust for the CPU, kernels may have equal hashes.
    let key = |kernel: &Kernel| (kernel.hash, kernel.cpu.is_some());
    for kernel in kernels {
        which.push(distinct.iter().position(|known| key(known) == key(kernel)).unwrap_or_else(|| {
            distinct.push(kernel.clone());
            distinct.len() - 1
        }));
    }
    let pipelines = device.backend().load(&distinct, transport)?;
    which
        .into_iter()
        .map(|index| {
            pipelines.get(index).cloned().ok_or_else(|| Error::Stage {
                stage: "record",
                defect: "the device gave fewer pipelines than kernels".to_owned(),
            })
        })
        .collect()
}

struct Recorder<'a> {
    device: &'a Device,
    program: &'a Program,
    plan: &'a Plan,
    memory: &'a [Arc<dyn Memory>],
    words: RunWords,
    block: Vec<Bound>,
}

impl Recorder<'_> {
    fn place(&self, step: &Step, used: &Use) -> Result<(Place, Arc<dyn Memory>)> {
        let place = self.plan.places[used.value];
        let found = place.and_then(|place| self.memory.get(place.buffer).map(|memory| (place, memory.clone())));
        found.ok_or_else(|| Error::Stage {
            stage: "record",
            defect: format!("`{}` binds `{}`, which has no place", step.label, self.program.values[used.value].name),
        })
    }

    /// The range of a binding: from the multiple of the device's alignment below its first byte.
    fn bound(&self, step: &Step, used: &Use) -> Result<Bound> {
        let (place, memory) = self.place(step, used)?;
        let value_bytes = u64::try_from(self.program.values[used.value].bytes.bounds().1).unwrap_or(0);
        let all = padded(value_bytes);
        let Some(offset) = used.offset.constant().and_then(|offset| u64::try_from(offset).ok()) else {
            let range = MemoryRange { memory, offset: place.offset, bytes: all };
            let moving = Some(used.offset.clone());
            return Ok(Bound { range, bytes: used.bytes.clone(), rest: 0, moving });
        };
        // A part of nothing may start past its end, and is nowhere then.
        let offset = if offset < value_bytes { offset } else { 0 };
        // A device with pointers takes any start; the others count from one that their alignment allows.
        let pointers = self.device.kind().has_pointers();
        let alignment = if pointers { 1 } else { self.device.limits().binding_alignment.max(BINDING_MULTIPLE) };
        let start = offset / alignment * alignment;
        let first = place.offset + start;
        let wanted = padded(all.saturating_sub(start));
        let bytes = if pointers { wanted.min(padded(memory.bytes()).saturating_sub(first)) } else { wanted };
        let range = MemoryRange { memory, offset: first, bytes };
        Ok(Bound { range, bytes: used.bytes.clone(), rest: offset - start, moving: None })
    }

    /// The memory to which a kernel reports.
    fn reports(&self, step: &Step, kernel: &Kernel) -> Result<Bound> {
        let range = self.device.report_buffer(kernel).map_err(at("the reports of", &step.label))?;
        let bytes = Dim::from(i64::try_from(range.bytes).unwrap_or(i64::MAX));
        Ok(Bound { range, bytes, rest: 0, moving: None })
    }

    fn dispatch(
        &mut self,
        step: &Step,
        params: &[ParamValue],
        grid: &Grid,
        pipeline: Arc<dyn Pipeline>,
    ) -> Result<(DispatchCommand, GridWords)> {
        let kernel = &*pipeline.kernel().clone();
        self.block = step.uses.iter().map(|used| self.bound(step, used)).collect::<Result<_>>()?;
        if !kernel.sites.is_empty() {
            self.block.push(self.reports(step, kernel)?);
        }
        let base = self.words.template.len().next_multiple_of(PARAMS_ALIGNMENT as usize);
        self.words.template.resize(base + kernel.params.size as usize, 0);
        let mut words = self.grid(step, kernel, grid)?;
        let given = kernel.params.fields.iter().filter(|field| matches!(field.role, ParamRole::User(_))).count();
        if given != params.len() {
            return Err(self.wrong(step, &format!("{} parameters given, {given} expected", params.len())));
        }
        for field in &*kernel.params.fields {
            let at = base + field.offset as usize;
            match field.role {
                ParamRole::GroupCount => words.count_at = Some(at),
                ParamRole::User(index) => self.user(step, field, at, &params[index as usize])?,
                ParamRole::Constant(index) => {
                    let value = kernel.constants.get(index as usize).map_or(0, |constant| constant.value as u32);
                    self.words.template[at..at + 4].copy_from_slice(&value.to_le_bytes());
                }
                ParamRole::Length(index) => {
                    let (bound, size) = self.bound_to(step, kernel, index)?;
                    let value = bound.bytes.clone();
                    self.number(step, field, at, value, size)?;
                }
                ParamRole::Offset(index) => {
                    let (bound, size) = self.bound_to(step, kernel, index)?;
                    let value = match &bound.moving {
                        Some(moving) => moving.clone(),
                        None => Dim::from(i64::try_from(bound.rest).unwrap_or(i64::MAX)),
                    };
                    self.number(step, field, at, value, size)?;
                }
                ParamRole::Extents(index) => self.list(step, field, at, &self.used(step, index)?.extents)?,
                ParamRole::Strides(index) => self.list(step, field, at, &self.used(step, index)?.strides)?,
            }
        }
        let dispatch = DispatchCommand {
            pipeline,
            bindings: self.block.iter().map(|bound| bound.range.clone()).collect(),
            params: ParamSource::RunWords(base as u32),
            groups: GroupSource::Value(words.bound),
            label: step.label.clone(),
        };
        Ok((dispatch, words))
    }

    /// A binding, and the bytes of one of its elements.
    fn bound_to(&self, step: &Step, kernel: &Kernel, index: u32) -> Result<(&Bound, i64)> {
        match (self.block.get(index as usize), kernel.bindings.get(index as usize)) {
            (Some(bound), Some(binding)) => Ok((bound, i64::from(binding.element.size.max(1)))),
            _ => Err(self.unbound(step, index)),
        }
    }

    fn used<'s>(&self, step: &'s Step, index: u32) -> Result<&'s Use> {
        step.uses.get(index as usize).ok_or_else(|| self.unbound(step, index))
    }

    fn unbound(&self, step: &Step, index: u32) -> Error {
        self.wrong(step, &format!("its kernel has a parameter for binding {index}, which it does not have"))
    }

    fn wrong(&self, step: &Step, reason: &str) -> Error {
        Error::Candidate { node: step.label.to_string(), candidate: step.story.clone(), reason: reason.to_owned() }
    }

    fn user(&mut self, step: &Step, field: &ParamField, at: usize, value: &ParamValue) -> Result<()> {
        let count = field.ty.count as usize;
        let fits = match (value, field.ty.scalar) {
            (ParamValue::Dim(_), ParamScalar::U32 | ParamScalar::I32 | ParamScalar::Index | ParamScalar::U64)
            | (ParamValue::Enum(_), ParamScalar::U32)
            | (ParamValue::F32(_), ParamScalar::F32)
            | (ParamValue::Bool(_), ParamScalar::Bool) => count == 1,
            (ParamValue::Dims(dims), ParamScalar::U32 | ParamScalar::I32 | ParamScalar::Index | ParamScalar::U64) => {
                dims.len() == count
            }
            (ParamValue::F32s(values), ParamScalar::F32) => values.len() == count,
            _ => false,
        };
        if !fits {
            let ty = format!("{count} of {:?}", field.ty.scalar);
            return Err(self.wrong(step, &format!("parameter `{}`: {value:?} given, {ty} expected", field.name)));
        }
        let words = match value {
            ParamValue::Dim(dim) => return self.number(step, field, at, dim.clone(), 1),
            ParamValue::Dims(dims) => return self.list(step, field, at, dims),
            ParamValue::F32(value) => vec![value.to_bits()],
            ParamValue::F32s(values) => values.iter().map(|value| value.to_bits()).collect(),
            ParamValue::Bool(value) => vec![u32::from(*value)],
            ParamValue::Enum(value) => vec![*value],
        };
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        self.words.template[at..at + bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }

    fn list(&mut self, step: &Step, field: &ParamField, at: usize, dims: &[Dim]) -> Result<()> {
        if dims.len() != field.ty.count as usize {
            let expected = field.ty.count;
            return Err(self.wrong(
                step,
                &format!("parameter `{}`: {} numbers given, {expected} expected", field.name, dims.len()),
            ));
        }
        for (index, dim) in dims.iter().enumerate() {
            self.number(step, field, at + field.ty.scalar.bytes() as usize * index, dim.clone(), 1)?;
        }
        Ok(())
    }

    fn number(&mut self, step: &Step, field: &ParamField, at: usize, value: Dim, divisor: i64) -> Result<()> {
        let format = match field.ty.scalar {
            ParamScalar::I32 => Format::I32,
            ParamScalar::U64 => Format::U64,
            _ if matches!(field.role, ParamRole::Length(_) | ParamRole::Extents(_)) => Format::Counted,
            _ => Format::U32,
        };
        self.add(Number { at, value, divisor, format, step: step.label.clone(), param: field.name.to_string() })
    }

    fn add(&mut self, number: Number) -> Result<()> {
        if number.value.constant().is_some() {
            return number.write(&Extents::new(), &mut self.words.template);
        }
        self.words.numbers.push(number);
        Ok(())
    }

    fn grid(&self, step: &Step, kernel: &Kernel, grid: &Grid) -> Result<GridWords> {
        let invocations = kernel.workgroup_size.iter().map(|n| i64::from(*n)).product::<i64>().max(1);
        let shape = match (grid, kernel.grid) {
            (Grid::Invocations(count), GridKind::Linear) => {
                GridShape::Linear { invocations, asked: count.quotient_up(invocations) }
            }
            (Grid::Workgroups(count), GridKind::Linear) => GridShape::Linear { invocations, asked: count.clone() },
            (Grid::Invocations(count), GridKind::Volume) => GridShape::Volume([
                count.quotient_up(i64::from(kernel.workgroup_size[0].max(1))),
                Dim::from(1i64),
                Dim::from(1i64),
            ]),
            (Grid::Workgroups(count), GridKind::Volume) => {
                GridShape::Volume([count.clone(), Dim::from(1i64), Dim::from(1i64)])
            }
            (Grid::Volume(axes), GridKind::Volume) => GridShape::Volume(axes.clone()),
            (Grid::Volume(axes), GridKind::Linear) => {
                GridShape::Linear { invocations, asked: axes.iter().cloned().product() }
            }
        };
        let limit = self.device.limits().max_groups;
        let refused = |groups: [i64; 3]| {
            Error::Device(DeviceError::Grid {
                kernel: format!("{}` of `{}", kernel.name, step.label),
                groups: groups.map(|n| u64::try_from(n).unwrap_or(0)),
                limit,
                device: self.device.properties().name.clone(),
                by_axes: kernel.grid == GridKind::Volume,
            })
        };
        let bound = match &shape {
            GridShape::Linear { asked, invocations } => {
                let most = asked.bounds().1.max(0);
                let count = u32::try_from(most).ok().filter(|_| most.saturating_mul(*invocations) <= 1 << 32);
                let count = count.ok_or_else(|| refused([most, 1, 1]))?;
                // Rows of equal length, as few as there can be: smaller grids are folded to rows of that length too.
                let rows = count.div_ceil(limit[0].max(1)).max(1);
                if rows > limit[1] {
                    return Err(refused([most, 1, 1]));
                }
                [count.div_ceil(rows), rows, 1]
            }
            GridShape::Volume(axes) => {
                let most = [0, 1, 2].map(|axis: usize| axes[axis].bounds().1.max(0));
                let mut bound = [0u32; 3];
                for axis in 0..3 {
                    let fits = u32::try_from(most[axis]).ok().filter(|n| *n <= limit[axis]);
                    bound[axis] = fits.ok_or_else(|| refused(most))?;
                }
                bound
            }
        };
        let fixed = match &shape {
            GridShape::Linear { asked, .. } => asked.constant().is_some(),
            GridShape::Volume(axes) => axes.iter().all(|axis| axis.constant().is_some()),
        };
        // The place is given when all blocks are laid out.
        let groups_at = (!fixed).then_some(0);
        Ok(GridWords { count_at: None, groups_at, shape, bound, step: step.label.clone() })
    }

    fn call(&mut self, step: &Step, callee: &CallStep) -> Result<CallCommand> {
        let start = self.words.template.len().next_multiple_of(8);
        self.words.template.resize(start + 8 * callee.params.len(), 0);
        for (index, value) in callee.params.iter().enumerate() {
            self.add(Number {
                at: start + 8 * index,
                value: value.clone(),
                divisor: 1,
                format: Format::I64,
                step: step.label.clone(),
                param: index.to_string(),
            })?;
        }
        let call = match &callee.callee {
            Callee::Product(product) => Call::Product(*product),
            Callee::Host(function) => {
                let function = function.clone();
                Call::Host(Arc::new(move |reads, writes, words| {
                    let number =
                        |word: &[u8]| word.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
                    let numbers: Vec<i64> = words.chunks_exact(8).map(|word| number(word).cast_signed()).collect();
                    function(reads, writes, &numbers)
                }))
            }
        };
        let ranges = step.uses.iter().map(|used| {
            let (place, memory) = self.place(step, used)?;
            let all = u64::try_from(self.program.values[used.value].bytes.bounds().1).unwrap_or(0);
            let offset = used.offset.constant().and_then(|offset| u64::try_from(offset).ok()).unwrap_or(0);
            Ok(MemoryRange { memory, offset: place.offset + offset, bytes: all.saturating_sub(offset) })
        });
        let mut ranges = ranges.collect::<Result<Vec<_>>>()?;
        let writes = ranges.split_off(callee.reads.len());
        let end = self.words.template.len() as u32;
        Ok(CallCommand { call, reads: ranges, writes, run_words: start as u32..end, label: step.label.clone() })
    }
}
