//! Command buffers: how a list of commands becomes one, and recordings, which are made once and submitted many times.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use ash::vk;
use gpu_allocator::MemoryLocation;
use trefoil_dsl::device::{
    Command, CopyCommand, DispatchCommand, GroupSource, Memory, ParamSource, Pipeline, Recording,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::{PARAMS_ALIGNMENT, WordRules, padded, same_memory};
use trefoil_dsl::support::state::CounterCells;

use crate::descriptors::Descriptors;
use crate::device::{Shared, VulkanBackend};
use crate::memory::{RawBuffer, VulkanMemory};
use crate::pipeline::{Block, VulkanPipeline};

// What commands of trefoil's write, and where; and what they read and write, and where.
const OUR_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const OUR_WRITES: vk::AccessFlags =
    vk::AccessFlags::from_raw(vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw());
const OUR_USING_STAGES: vk::PipelineStageFlags =
    vk::PipelineStageFlags::from_raw(OUR_STAGES.as_raw() | vk::PipelineStageFlags::DRAW_INDIRECT.as_raw());
const OUR_USES: vk::AccessFlags = vk::AccessFlags::from_raw(
    OUR_WRITES.as_raw()
        | vk::AccessFlags::SHADER_READ.as_raw()
        | vk::AccessFlags::TRANSFER_READ.as_raw()
        | vk::AccessFlags::INDIRECT_COMMAND_READ.as_raw(),
);

/// How command buffers are begun that are submitted once.
pub(crate) const ONCE: vk::CommandBufferUsageFlags = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;

/// A command pool with a few command buffers.
pub(crate) struct Commands {
    shared: Arc<Shared>,
    pool: vk::CommandPool,
    /// The command buffers.
    pub(crate) buffers: Vec<vk::CommandBuffer>,
}

impl Commands {
    /// Makes `count` command buffers.
    pub(crate) fn new(shared: &Arc<Shared>, family: u32, count: u32) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the family is the one that the device was opened with.
        let pool = unsafe { shared.device.create_command_pool(&info, None) }
            .map_err(|error| shared.state.driver("making a command pool", error))?;
        let mut commands = Self { shared: shared.clone(), pool, buffers: Vec::new() };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(count);
        // SAFETY: the pool was just made.
        commands.buffers = unsafe { shared.device.allocate_command_buffers(&info) }
            .map_err(|error| shared.state.driver("making command buffers", error))?;
        Ok(commands)
    }

    /// Empties the command buffers; the device must be done with them.
    pub(crate) fn reset(&self) -> Result<()> {
        // SAFETY: callers ensure that no command buffer of the pool is in use.
        unsafe { self.shared.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty()) }
            .map_err(|error| self.shared.state.driver("emptying a command pool", error))
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // SAFETY: slots and recordings go only when the device is done with them.
        unsafe { self.shared.device.destroy_command_pool(self.pool, None) };
    }
}

/// What must live until the device is done with a list.
#[derive(Default)]
pub(crate) struct Kept {
    /// Memory.
    pub(crate) memory: Vec<Arc<dyn Memory>>,
    /// Pipelines.
    pub(crate) pipelines: Vec<Arc<dyn Pipeline>>,
    /// Buffers that the host sees: pinned ones, and those of reads that are taken later.
    pub(crate) pinned: Vec<Arc<RawBuffer>>,
    /// What a recording is made of that the list runs.
    pub(crate) recorded: Option<Arc<Recorded>>,
}

impl Kept {
    /// Everything that `commands` use.
    pub(crate) fn of(commands: &[Command]) -> Self {
        let mut kept = Self::default();
        for command in commands {
            match command {
                Command::Dispatch(dispatch) => {
                    kept.pipelines.push(dispatch.pipeline.clone());
                    kept.memory.extend(dispatch.bindings.iter().map(|range| range.memory.clone()));
                    if let GroupSource::Memory(range) = &dispatch.groups {
                        kept.memory.push(range.memory.clone());
                    }
                }
                Command::Copy(copy) => kept.memory.extend([copy.from.memory.clone(), copy.to.memory.clone()]),
                Command::Barrier | Command::Call(_) => {}
            }
        }
        kept
    }

    /// Whether the list may use that memory.
    pub(crate) fn holds(&self, memory: &Arc<dyn Memory>) -> bool {
        let own = self.memory.iter().any(|held| same_memory(held, memory));
        own || self.recorded.as_ref().is_some_and(|recorded| recorded.kept.holds(memory))
    }
}

/// Bytes that the parameter blocks of `commands` take which are given by value but are too large for push constants.
pub(crate) fn spilled_bytes(shared: &Shared, commands: &[Command]) -> Result<u64> {
    let mut bytes = 0;
    for command in commands {
        if let Command::Dispatch(dispatch) = command {
            let pipeline = VulkanPipeline::of(&dispatch.pipeline, shared)?;
            if let (Block::Buffer(size), ParamSource::Value(_)) = (pipeline.key.block, &dispatch.params) {
                bytes += spilled_size(size);
            }
        }
    }
    Ok(bytes)
}

fn spilled_size(size: u32) -> u64 {
    u64::from(size).next_multiple_of(PARAMS_ALIGNMENT.into())
}

/// Writes commands into a command buffer.
pub(crate) struct Encoder<'a> {
    shared: &'a Shared,
    commands: vk::CommandBuffer,
    descriptors: &'a mut Descriptors,
    run_words: Option<&'a RawBuffer>,
    // Where parameter blocks go that are too large for push constants, and the next free byte.
    spilled: Option<&'a RawBuffer>,
    next_spilled: u64,
    bound: vk::Pipeline,
}

impl<'a> Encoder<'a> {
    /// Begins a command buffer, which must be empty, with a barrier against everything submitted before: by trefoil, and on a device of the program's by the program too. `usage` says how it will be submitted.
    pub(crate) fn begin(
        shared: &'a Shared,
        commands: vk::CommandBuffer,
        descriptors: &'a mut Descriptors,
        usage: vk::CommandBufferUsageFlags,
    ) -> Result<Self> {
        let info = vk::CommandBufferBeginInfo::default().flags(usage);
        // SAFETY: callers hand over a command buffer of this device that is in its initial state.
        unsafe { shared.device.begin_command_buffer(commands, &info) }
            .map_err(|error| shared.state.driver("beginning a command buffer", error))?;
        let encoder = Self {
            shared,
            commands,
            descriptors,
            run_words: None,
            spilled: None,
            next_spilled: 0,
            bound: vk::Pipeline::null(),
        };
        if shared.connection.is_shared() {
            encoder.barrier_after_the_program();
        } else {
            encoder.full_barrier();
        }
        Ok(encoder)
    }

    /// Says where run words and spilled parameter blocks lie.
    pub(crate) fn with(mut self, run_words: Option<&'a RawBuffer>, spilled: Option<&'a RawBuffer>) -> Self {
        self.run_words = run_words;
        self.spilled = spilled;
        self
    }

    /// The command buffer.
    pub(crate) fn raw(&self) -> vk::CommandBuffer {
        self.commands
    }

    /// Writes all of `list`, whose rules were checked.
    pub(crate) fn list(&mut self, list: &[Command]) -> Result<()> {
        // What is more than kernels that read and write: copies, and reads of workgroup counts.
        let more = list.iter().any(|command| match command {
            Command::Copy(_) => true,
            Command::Dispatch(dispatch) => matches!(dispatch.groups, GroupSource::Memory(_)),
            Command::Barrier | Command::Call(_) => false,
        });
        for command in list {
            match command {
                Command::Dispatch(dispatch) => self.dispatch(dispatch)?,
                Command::Call(host) => return Err(host.refused(&self.shared.state.properties)),
                Command::Copy(copy) => self.copy_command(copy)?,
                Command::Barrier if more => self.full_barrier(),
                Command::Barrier => self.memory_barrier(
                    vk::PipelineStageFlags::COMPUTE_SHADER,
                    vk::AccessFlags::SHADER_WRITE,
                    vk::PipelineStageFlags::COMPUTE_SHADER,
                    vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE,
                ),
            }
        }
        Ok(())
    }

    /// Writes one dispatch.
    pub(crate) fn dispatch(&mut self, dispatch: &DispatchCommand) -> Result<()> {
        let shared = self.shared;
        let pipeline = VulkanPipeline::of(&dispatch.pipeline, shared)?;
        shared.state.checks().transport(dispatch, pipeline.transport)?;
        let commands = self.commands;
        shared.begin_label(commands, &dispatch.label);
        if self.bound != pipeline.handle {
            // SAFETY: the command buffer is being recorded; the pipeline is kept until the device is done.
            unsafe { shared.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.handle) };
            self.bound = pipeline.handle;
        }
        self.bind(dispatch, pipeline)?;
        match &dispatch.groups {
            // SAFETY: as above; the counts are within the device's limits.
            &GroupSource::Value([x, y, z]) => unsafe { shared.device.cmd_dispatch(commands, x, y, z) },
            GroupSource::RunWords { offset, .. } => {
                let words = self.run_words(dispatch)?.handle;
                // SAFETY: as above; the three words lie within the buffer.
                unsafe { shared.device.cmd_dispatch_indirect(commands, words, u64::from(*offset)) };
            }
            GroupSource::Memory(range) => {
                let words = VulkanMemory::of(&range.memory, shared)?.buffer.handle;
                // SAFETY: as above; the memory is kept until the device is done. Callers of the device keep the counts within its limits.
                unsafe { shared.device.cmd_dispatch_indirect(commands, words, range.offset) };
            }
        }
        shared.end_label(commands, &dispatch.label);
        Ok(())
    }

    fn run_words(&self, dispatch: &DispatchCommand) -> Result<&'a RawBuffer> {
        self.run_words.ok_or_else(|| Error::Command {
            label: dispatch.label.to_string(),
            reason: "it uses run words, and there are none".to_owned(),
        })
    }

    fn bind(&mut self, dispatch: &DispatchCommand, pipeline: &VulkanPipeline) -> Result<()> {
        let shared = self.shared;
        let set = self.descriptors.set(pipeline.layout.set, pipeline.key.storage)?;
        let mut ranges = Vec::with_capacity(dispatch.bindings.len() + 1);
        for range in &dispatch.bindings {
            let memory = VulkanMemory::of(&range.memory, shared)?;
            ranges.push(vk::DescriptorBufferInfo {
                buffer: memory.buffer.handle,
                offset: range.offset,
                range: range.bytes,
            });
        }
        let mut dynamic = Vec::new();
        if let Block::Buffer(size) = pipeline.key.block {
            let (buffer, offset) = match &dispatch.params {
                ParamSource::RunWords(offset) => (self.run_words(dispatch)?, *offset),
                ParamSource::Value(bytes) => self.spill(bytes, dispatch)?,
            };
            dynamic.push(offset);
            ranges.push(vk::DescriptorBufferInfo { buffer: buffer.handle, offset: 0, range: size.into() });
        }
        let writes: Vec<vk::WriteDescriptorSet<'_>> = ranges
            .iter()
            .enumerate()
            .map(|(i, range)| {
                let kind = if i < dispatch.bindings.len() {
                    vk::DescriptorType::STORAGE_BUFFER
                } else {
                    vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
                };
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(i as u32)
                    .descriptor_type(kind)
                    .buffer_info(std::slice::from_ref(range))
            })
            .collect();
        // SAFETY: the set is new, so that nothing uses it; ranges are within their buffers and aligned, as the checks ensure;
        // the command buffer is being recorded; the layout is the pipeline's.
        unsafe {
            shared.device.update_descriptor_sets(&writes, &[]);
            shared.device.cmd_bind_descriptor_sets(
                self.commands,
                vk::PipelineBindPoint::COMPUTE,
                pipeline.layout.pipeline,
                0,
                &[set],
                &dynamic,
            );
        }
        if let (Block::Push(_), ParamSource::Value(bytes)) = (pipeline.key.block, &dispatch.params) {
            // SAFETY: as above; the length is the range's, as the checks ensure.
            unsafe {
                shared.device.cmd_push_constants(
                    self.commands,
                    pipeline.layout.pipeline,
                    vk::ShaderStageFlags::COMPUTE,
                    0,
                    bytes,
                );
            }
        }
        Ok(())
    }

    fn spill(&mut self, bytes: &[u8], dispatch: &DispatchCommand) -> Result<(&'a RawBuffer, u32)> {
        let no_room = || Error::Command {
            label: dispatch.label.to_string(),
            reason: "its parameter block has no place".to_owned(),
        };
        let buffer = self.spilled.ok_or_else(no_room)?;
        let offset = u32::try_from(self.next_spilled).map_err(|_| no_room())?;
        buffer.write_host(offset.into(), bytes)?;
        self.next_spilled += spilled_size(bytes.len() as u32);
        Ok((buffer, offset))
    }

    /// Writes one copy.
    pub(crate) fn copy_command(&self, copy: &CopyCommand) -> Result<()> {
        let shared = self.shared;
        let (from, to) = (VulkanMemory::of(&copy.from.memory, shared)?, VulkanMemory::of(&copy.to.memory, shared)?);
        if copy.from.bytes > 0 {
            shared.begin_label(self.commands, &copy.label);
            self.copy((&from.buffer, copy.from.offset), (&to.buffer, copy.to.offset), copy.from.bytes);
            shared.end_label(self.commands, &copy.label);
        }
        Ok(())
    }

    /// Copies bytes from buffer to buffer.
    pub(crate) fn copy(&self, from: (&RawBuffer, u64), to: (&RawBuffer, u64), bytes: u64) {
        let region = vk::BufferCopy { src_offset: from.1, dst_offset: to.1, size: bytes };
        // SAFETY: the command buffer is being recorded; callers checked the ranges and keep the buffers.
        unsafe { self.shared.device.cmd_copy_buffer(self.commands, from.0.handle, to.0.handle, &[region]) };
    }

    /// Everything before is finished, and visible to everything after.
    pub(crate) fn full_barrier(&self) {
        self.memory_barrier(OUR_STAGES, OUR_WRITES, OUR_USING_STAGES, OUR_USES);
    }

    /// As [`Encoder::full_barrier`], where what is before may be any command.
    fn barrier_after_the_program(&self) {
        let all = vk::PipelineStageFlags::ALL_COMMANDS;
        self.memory_barrier(all, vk::AccessFlags::MEMORY_WRITE, OUR_USING_STAGES, OUR_USES);
    }

    fn memory_barrier(
        &self,
        from: vk::PipelineStageFlags,
        wrote: vk::AccessFlags,
        to: vk::PipelineStageFlags,
        uses: vk::AccessFlags,
    ) {
        let barrier = vk::MemoryBarrier::default().src_access_mask(wrote).dst_access_mask(uses);
        // SAFETY: the command buffer is being recorded, outside of any render pass.
        unsafe {
            self.shared.device.cmd_pipeline_barrier(
                self.commands,
                from,
                to,
                vk::DependencyFlags::empty(),
                &[barrier],
                &[],
                &[],
            );
        }
    }

    /// Ends the command buffer with a barrier towards the host, and on a device of the program's towards every command that is submitted after it.
    pub(crate) fn end(self) -> Result<vk::CommandBuffer> {
        let (stages, uses) = if self.shared.connection.is_shared() {
            (
                vk::PipelineStageFlags::HOST | vk::PipelineStageFlags::ALL_COMMANDS,
                vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE,
            )
        } else {
            (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ)
        };
        self.memory_barrier(OUR_STAGES, OUR_WRITES, stages, uses);
        // SAFETY: the command buffer is being recorded.
        unsafe { self.shared.device.end_command_buffer(self.commands) }
            .map_err(|error| self.shared.state.driver("ending a command buffer", error))?;
        Ok(self.commands)
    }
}

/// What a recording is made of that the device uses. Every submission holds it until it is done ([`Kept::recorded`]), so that the recording may go meanwhile.
pub(crate) struct Recorded {
    /// The one command buffer. It may be on its way many times at once, unless it reads run words: all else that the host writes for it is written when it is recorded.
    pub(crate) commands: Commands,
    /// Where run words lie, if there are any.
    pub(crate) run_words: Option<RawBuffer>,
    /// What the commands use.
    kept: Kept,
    _descriptors: Descriptors,
    _spilled: Option<RawBuffer>,
}

/// Commands made ready to run many times.
pub(crate) struct VulkanRecording {
    shared: Arc<Shared>,
    /// What its submissions hold too.
    pub(crate) recorded: Arc<Recorded>,
    /// What run words must keep.
    pub(crate) rules: WordRules,
    /// Names the recording in errors.
    pub(crate) label: Arc<str>,
    /// Whether it has run. Held during a run, since a command buffer that reads run words must not be submitted twice at a time, nor they be written meanwhile.
    pub(crate) ran: Mutex<bool>,
}

impl VulkanRecording {
    /// Checks that this device made it.
    pub(crate) fn of<'a>(recording: &'a dyn Recording, shared: &Shared) -> Result<&'a Self> {
        let own: &Self = shared.state.own(recording.as_any(), "a recording")?;
        shared.state.made(own.shared.state.id, "a recording")?;
        Ok(own)
    }
}

impl fmt::Debug for VulkanRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VulkanRecording(`{}` and what follows)", self.label)
    }
}

impl Recording for VulkanRecording {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl VulkanBackend {
    /// Records `list`.
    pub(crate) fn make_recording(&self, list: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        let shared = &self.shared;
        let rules = shared.state.checks().recording(list, run_words)?;
        let words = match run_words {
            0 => None,
            bytes => {
                let size = padded(bytes as u64);
                shared.state.checks().allocation(size, "run words")?;
                Some(RawBuffer::new(shared, size, MemoryLocation::CpuToGpu, "run words")?)
            }
        };
        let spilled = match spilled_bytes(shared, list)? {
            0 => None,
            bytes => Some(RawBuffer::new(shared, bytes, MemoryLocation::CpuToGpu, "parameter blocks")?),
        };
        let commands = Commands::new(shared, shared.traits.family, 1)?;
        let mut descriptors = Descriptors::new(shared);
        let raw = commands.buffers[0];
        // What reads run words is waited for before it is submitted again.
        let usage = match &words {
            Some(_) => vk::CommandBufferUsageFlags::empty(),
            None => vk::CommandBufferUsageFlags::SIMULTANEOUS_USE,
        };
        let mut encoder = Encoder::begin(shared, raw, &mut descriptors, usage)?.with(words.as_ref(), spilled.as_ref());
        encoder.list(list)?;
        encoder.end()?;
        let kept = Kept::of(list);
        let recorded = Recorded { commands, run_words: words, kept, _descriptors: descriptors, _spilled: spilled };
        CounterCells::add(&shared.state.counters.recordings);
        Ok(Arc::new(VulkanRecording {
            shared: shared.clone(),
            recorded: Arc::new(recorded),
            rules,
            label: Command::first_label(list),
            ran: Mutex::new(false),
        }))
    }
}
