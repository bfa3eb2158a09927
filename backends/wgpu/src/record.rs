//! Lists of commands in wgpu's terms, and recordings, which keep them.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use trefoil_dsl::device::{Command, CopyCommand, DispatchCommand, GroupSource, ParamSource, Pipeline, Recording};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::{PARAMS_ALIGNMENT, WordRules, padded};
use trefoil_dsl::support::state::CounterCells;

use crate::bind_groups::{BindGroups, Bound};
use crate::device::{Shared, WgpuBackend};
use crate::memory::WgpuMemory;
use crate::pipeline::WgpuPipeline;

/// How a buffer with parameter blocks is bound: as a uniform buffer in WGSL, as a storage buffer in SPIR-V.
const PARAMS: wgpu::BufferUsages = wgpu::BufferUsages::UNIFORM.union(wgpu::BufferUsages::STORAGE);

/// A buffer for parameter blocks given by value.
pub(crate) struct ParamBuffer {
    /// The buffer.
    pub(crate) buffer: wgpu::Buffer,
}

impl ParamBuffer {
    /// A buffer of at least `bytes` bytes.
    pub(crate) fn new(shared: &Shared, bytes: u64) -> Result<Self> {
        let size = bytes.max(64 * 1024).checked_next_power_of_two().unwrap_or(bytes);
        shared.state.checks().allocation(size, "parameter blocks")?;
        let usage = wgpu::BufferUsages::COPY_DST | PARAMS;
        Ok(Self { buffer: shared.buffer(size, usage, "parameter blocks")? })
    }
}

/// The parameter blocks of a list that are given by value, each at a multiple of [`PARAMS_ALIGNMENT`], which is at least what any
/// adapter asks of dynamic offsets.
pub(crate) fn blocks(commands: &[Command]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for command in commands {
        if let Command::Dispatch(DispatchCommand { params: ParamSource::Value(bytes), .. }) = command {
            blocks.extend_from_slice(bytes);
            blocks.resize(blocks.len().next_multiple_of(PARAMS_ALIGNMENT as usize), 0);
        }
    }
    blocks
}

/// A command in wgpu's terms.
pub(crate) enum Step {
    /// Within a pass.
    Dispatch(DispatchStep),
    /// Between passes.
    Copy(CopyCommand),
    /// Nothing: wgpu places barriers itself.
    Barrier,
}

impl Step {
    /// Encodes a copy.
    pub(crate) fn encode_copy(copy: &CopyCommand, shared: &Shared, encoder: &mut wgpu::CommandEncoder) -> Result<()> {
        let (from, to) = (WgpuMemory::of(&copy.from.memory, shared)?, WgpuMemory::of(&copy.to.memory, shared)?);
        if shared.labels {
            encoder.push_debug_group(&copy.label);
        }
        encoder.copy_buffer_to_buffer(&from.buffer, copy.from.offset, &to.buffer, copy.to.offset, copy.from.bytes);
        if shared.labels {
            encoder.pop_debug_group();
        }
        Ok(())
    }
}

/// A dispatch in wgpu's terms. One that has its workgroup counts in memory needs them looked at before its pass.
pub(crate) struct DispatchStep {
    /// The pipeline, which also keeps what it needs alive.
    pipeline: Arc<dyn Pipeline>,
    bindings: wgpu::BindGroup,
    dynamic: Option<u32>,
    groups: GroupSource,
    label: Arc<str>,
}

/// Makes ready the commands of a list whose rules were checked, with bind groups that are `kept`, or of the list's own.
pub(crate) fn steps(
    shared: &Shared,
    commands: &[Command],
    run_words: Option<&wgpu::Buffer>,
    params: Option<&wgpu::Buffer>,
    kept: Option<&BindGroups>,
) -> Result<Vec<Step>> {
    let mut next = 0usize;
    let mut steps = Vec::with_capacity(commands.len());
    for command in commands {
        let dispatch = match command {
            Command::Dispatch(dispatch) => dispatch,
            Command::Call(host) => return Err(host.refused(&shared.state.properties)),
            Command::Copy(copy) => {
                steps.push(Step::Copy(copy.clone()));
                continue;
            }
            Command::Barrier => {
                steps.push(Step::Barrier);
                continue;
            }
        };
        let broken = |reason: &str| Error::Command { label: dispatch.label.to_string(), reason: reason.to_owned() };
        let pipeline = WgpuPipeline::of(&dispatch.pipeline, shared)?;
        shared.state.checks().transport(dispatch, pipeline.transport)?;
        let size = pipeline.kernel().params.size;
        let (buffer, offset) = match &dispatch.params {
            ParamSource::RunWords(offset) => (run_words, *offset),
            ParamSource::Value(bytes) => {
                let offset = u32::try_from(next).map_err(|_| broken("the list has too many parameters"))?;
                next = (next + bytes.len()).next_multiple_of(PARAMS_ALIGNMENT as usize);
                (params, offset)
            }
        };
        let mut buffers = Vec::with_capacity(dispatch.bindings.len() + 1);
        for range in &dispatch.bindings {
            buffers.push((WgpuMemory::of(&range.memory, shared)?.buffer.clone(), range.offset, range.bytes));
        }
        if size > 0 {
            let buffer = buffer.ok_or_else(|| broken("its parameters have no place"))?;
            buffers.push((buffer.clone(), 0, u64::from(size)));
        }
        let bound = Bound { layout: pipeline.layout.clone(), buffers };
        let make =
            |bound: &Bound| bind_group(shared, bound, &dispatch.label).map_err(|error| broken(&error.to_string()));
        let bindings = match kept {
            Some(kept) => kept.get(bound, make)?,
            None => make(&bound)?,
        };
        steps.push(Step::Dispatch(DispatchStep {
            pipeline: dispatch.pipeline.clone(),
            bindings,
            dynamic: (size > 0).then_some(offset),
            groups: dispatch.groups.clone(),
            label: dispatch.label.clone(),
        }));
    }
    Ok(steps)
}

/// Makes a bind group.
fn bind_group(shared: &Shared, bound: &Bound, label: &str) -> std::result::Result<wgpu::BindGroup, wgpu::Error> {
    let entries: Vec<_> = bound
        .buffers
        .iter()
        .enumerate()
        .map(|(i, (buffer, offset, bytes))| wgpu::BindGroupEntry {
            binding: i as u32,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset: *offset,
                size: NonZeroU64::new(*bytes),
            }),
        })
        .collect();
    let descriptor = wgpu::BindGroupDescriptor { label: Some(label), layout: &bound.layout, entries: &entries };
    shared.scoped(|| shared.device.create_bind_group(&descriptor))
}

impl DispatchStep {
    /// Whether something comes before its pass.
    pub(crate) const fn has_before(&self) -> bool {
        matches!(self.groups, GroupSource::Memory(_))
    }

    /// Encodes what comes before its pass.
    pub(crate) fn encode_before(&self, shared: &Shared, encoder: &mut wgpu::CommandEncoder) -> Result<()> {
        match &self.groups {
            GroupSource::Memory(range) => shared.counts()?.take(range, shared, encoder),
            GroupSource::Value(_) | GroupSource::RunWords { .. } => Ok(()),
        }
    }

    /// Encodes the dispatch.
    pub(crate) fn encode(
        &self,
        shared: &Shared,
        pass: &mut wgpu::ComputePass<'_>,
        run_words: Option<&wgpu::Buffer>,
    ) -> Result<()> {
        pass.set_pipeline(&WgpuPipeline::of(&self.pipeline, shared)?.handle);
        pass.set_bind_group(0, &self.bindings, self.dynamic.as_slice());
        if shared.labels {
            pass.push_debug_group(&self.label);
        }
        match &self.groups {
            GroupSource::Value([x, y, z]) => pass.dispatch_workgroups(*x, *y, *z),
            GroupSource::Memory(_) => pass.dispatch_workgroups_indirect(&shared.counts()?.buffer, 0),
            GroupSource::RunWords { offset, .. } => {
                let words = run_words.ok_or_else(|| Error::Command {
                    label: self.label.to_string(),
                    reason: "it uses run words, and there are none".to_owned(),
                })?;
                pass.dispatch_workgroups_indirect(words, u64::from(*offset));
            }
        }
        if shared.labels {
            pass.pop_debug_group();
        }
        Ok(())
    }
}

/// Commands made ready to run many times.
pub(crate) struct WgpuRecording {
    shared: Arc<Shared>,
    /// The commands.
    pub(crate) steps: Vec<Step>,
    /// Where run words lie, if there are any.
    pub(crate) run_words: Option<wgpu::Buffer>,
    /// What they must keep.
    pub(crate) rules: WordRules,
    /// Names the recording in errors.
    pub(crate) label: Arc<str>,
    /// What runs keep; held during a run, so that run words are not changed under it.
    pub(crate) state: Mutex<RunState>,
}

/// What runs of a recording keep.
#[derive(Default)]
pub(crate) struct RunState {
    /// Whether it has run.
    pub(crate) ran: bool,
    /// A mappable buffer for downloads, and its size.
    pub(crate) downloads: Option<wgpu::Buffer>,
}

impl WgpuRecording {
    /// Checks that this device made it.
    pub(crate) fn of<'a>(recording: &'a dyn Recording, shared: &Shared) -> Result<&'a Self> {
        let own: &Self = shared.state.own(recording.as_any(), "a recording")?;
        shared.state.made(own.shared.state.id, "a recording")?;
        Ok(own)
    }
}

impl fmt::Debug for WgpuRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuRecording(`{}` and what follows)", self.label)
    }
}

impl Recording for WgpuRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl WgpuBackend {
    /// Records `list`.
    pub(crate) fn make_recording(&self, list: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        let shared = &self.shared;
        let rules = shared.state.checks().recording(list, run_words)?;
        let words = match run_words {
            0 => None,
            bytes => {
                let size = padded(bytes as u64);
                shared.state.checks().allocation(size, "run words")?;
                let usage = wgpu::BufferUsages::INDIRECT | wgpu::BufferUsages::COPY_DST | PARAMS;
                Some(shared.buffer(size, usage, "run words")?)
            }
        };
        let blocks = blocks(list);
        let params = match blocks.len() {
            0 => None,
            bytes => {
                let params = ParamBuffer::new(shared, bytes as u64)?;
                shared
                    .scoped(|| shared.queue.write_buffer(&params.buffer, 0, &blocks))
                    .map_err(|error| shared.state.driver("writing parameter blocks", error))?;
                Some(params)
            }
        };
        let steps = steps(shared, list, words.as_ref(), params.as_ref().map(|params| &params.buffer), None)?;
        CounterCells::add(&shared.state.counters.recordings);
        Ok(Arc::new(WgpuRecording {
            shared: shared.clone(),
            steps,
            run_words: words,
            rules,
            label: Command::first_label(list),
            state: Mutex::default(),
        }))
    }
}
