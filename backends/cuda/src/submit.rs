//! Submissions: the one stream, transfers, lists and runs.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_dsl::device::{Command, CopyCommand, DispatchCommand, GroupSource, MemoryRange, Recording, RunIo};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::pinned::Pinned as _;
use trefoil_dsl::support::check::{BINDING_MULTIPLE, GROUP_BYTES, group_counts};
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::chain::{Chain, TOGETHER, Waiting};
use crate::device::{CudaBackend, Shared};
use crate::driver::message;
use crate::library::Ready;
use crate::memory::{CudaMemory, PINNED_MINIMUM, PINNED_MOST, Pinned, PinnedPool, is_pinned};
use crate::ranges::Range;
use crate::record::{Copy, CudaRecording, Launch};

/// What threads that submit share; who holds it submits a list or a run as one.
#[derive(Default)]
pub(crate) struct Queue {
    pinned: PinnedPool,
    // Made when it is first wanted.
    chain: Option<Chain>,
    // Names what was submitted last, for errors that the GPU reports later.
    last: Option<Arc<str>>,
}

impl Queue {
    /// What errors that the GPU reports next are told of: what was submitted last, or else `what`.
    pub(crate) fn label(&self, what: &str) -> Arc<str> {
        self.last.clone().unwrap_or_else(|| Arc::from(what))
    }

    /// Pinned memory for pieces of these sizes; `None` if there are none, so many bytes that pinning them is not worth it, or no such memory.
    fn staging(&mut self, shared: &Arc<Shared>, sizes: impl Iterator<Item = usize>) -> Result<Option<Pinned>> {
        match sizes.map(next_piece).fold(0, usize::saturating_add) {
            total if total == 0 || total > PINNED_MOST => Ok(None),
            total => match self.pinned.take(shared, total) {
                // The driver moves them without, if more slowly.
                Err(Error::OutOfMemory { .. }) => Ok(None),
                taken => taken.map(Some),
            },
        }
    }
}

/// The workgroup counts of a dispatch that has them in memory, as what was submitted before leaves them there: waits for that.
fn read_groups(shared: &Shared, dispatch: &DispatchCommand) -> Result<Option<[u32; 3]>> {
    let GroupSource::Memory(range) = &dispatch.groups else { return Ok(None) };
    let from = CudaMemory::of(&range.memory, shared)?.address() + range.offset;
    let lost = |error| shared.state.lost(&dispatch.label, message(error));
    let mut bytes = [0; GROUP_BYTES];
    // SAFETY: the context is current; the checks put the range within its memory; the bytes are not looked at before the stream is done.
    unsafe { result::memcpy_dtoh_async(&mut bytes, from, shared.handles.stream) }.map_err(lost)?;
    // SAFETY: the context is current, and the stream is the device's.
    unsafe { result::stream::synchronize(shared.handles.stream) }.map_err(lost)?;
    let groups = group_counts(bytes);
    shared.state.checks().grid(dispatch.pipeline.kernel(), groups)?;
    Ok(Some(groups))
}

/// Whether the workgroup counts of a dispatch are read before its launch.
const fn is_in_memory(dispatch: &DispatchCommand) -> bool {
    matches!(dispatch.groups, GroupSource::Memory(_))
}

/// A command made ready.
pub(crate) enum Prepared<'a> {
    /// A dispatch; without a launch it has no workgroups.
    Dispatch(&'a DispatchCommand, Option<Launch<'a>>),
    /// A product of matrices.
    Product(Ready),
    /// A copy.
    Copy(&'a CopyCommand),
    /// The stream runs one launch after the other, so that a barrier is there anyway.
    Barrier,
}

impl Prepared<'_> {
    /// Reads the workgroup counts of a dispatch that has them in memory.
    pub(crate) fn settle(&mut self, shared: &Shared) -> Result<()> {
        if let Self::Dispatch(dispatch, Some(launch)) = self
            && let Some(groups) = read_groups(shared, dispatch)?
        {
            launch.groups = groups;
        }
        Ok(())
    }

    /// Hands it to the stream.
    pub(crate) fn start(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Dispatch(dispatch, launched) => launched.map_or(Ok(()), |ready| launch(shared, dispatch, ready)),
            Self::Product(ready) => ready
                .start(shared.handles.stream)
                .map_err(|error| shared.state.lost(ready.label(), format!("cuBLASLt: {error}"))),
            Self::Copy(command) => copy(shared, command),
            Self::Barrier => Ok(()),
        }
    }
}

/// Launches one dispatch on the stream.
fn launch(shared: &Shared, dispatch: &DispatchCommand, mut launch: Launch<'_>) -> Result<()> {
    if launch.groups.contains(&0) {
        return Ok(());
    }
    let mut arguments = launch.arguments();
    let [x, y, z] = launch.groups;
    let [width, height, depth] = launch.size;
    // SAFETY: the context is current; the function is loaded and takes these arguments, which `finish` checked; the driver copies
    // them during the call; memory that goes meanwhile is freed in the order of the stream.
    unsafe {
        result::launch_kernel(
            launch.pipeline.function,
            (x, y, z),
            (width, height, depth),
            launch.pipeline.dynamic_bytes,
            shared.handles.stream,
            &mut arguments,
        )
    }
    .map_err(|error| shared.state.lost(&dispatch.label, message(error)))
}

/// Launches one by one what is too little to go together, or cannot.
fn start_each(shared: &Shared, waiting: &mut Vec<Waiting<'_>>) -> Result<()> {
    waiting.drain(..).try_for_each(|(dispatch, ready)| launch(shared, dispatch, ready))
}

/// Starts one copy within the GPU on the stream.
fn copy(shared: &Shared, command: &CopyCommand) -> Result<()> {
    let Some(copy) = Copy::of(shared, command)? else { return Ok(()) };
    // SAFETY: the context is current; the checks put both ranges within their memory, which is freed in the order of the stream.
    unsafe { result::memcpy_dtod_async(copy.to, copy.from, copy.bytes, shared.handles.stream) }
        .map_err(|error| shared.state.lost(&command.label, message(error)))
}

/// Whether a transfer of a run goes through the device's pinned memory.
fn is_staged(data: &[u8]) -> bool {
    data.len() < PINNED_MINIMUM || !is_pinned(data)
}

/// Where the next piece starts in a pinned buffer.
fn next_piece(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(BINDING_MULTIPLE as usize).unwrap_or(usize::MAX)
}

/// The next piece of a pinned buffer that [`Queue::staging`] gave for it, of which `rest` is what no piece has yet: a copy of another one may be under way.
fn piece<'p>(rest: &mut &'p mut [u8], bytes: usize) -> &'p mut [u8] {
    let (piece, behind) = std::mem::take(rest).split_at_mut(next_piece(bytes));
    *rest = behind;
    &mut piece[..bytes]
}

impl CudaBackend {
    /// Where a range begins on the GPU.
    pub(crate) fn address(&self, range: &MemoryRange) -> Result<sys::CUdeviceptr> {
        Ok(CudaMemory::of(&range.memory, &self.shared)?.address() + range.offset)
    }

    /// Starts a copy to the GPU. Where `data` is not pinned, the driver has taken a copy of it when the call returns.
    fn start_upload(&self, to: sys::CUdeviceptr, data: &[u8], label: &str) -> Result<()> {
        // SAFETY: the context is current, and callers checked that the range on the GPU is as long as `data`. Where `data` is pinned, the driver may read it after the call: callers keep it, and let nobody write it, until they have waited for the stream.
        unsafe { result::memcpy_htod_async(to, data, self.shared.handles.stream) }
            .map_err(|error| self.shared.state.lost(label, message(error)))
    }

    /// Starts a copy from the GPU. Where `data` is not pinned, the copy is done when the call returns.
    pub(crate) fn start_download(&self, from: sys::CUdeviceptr, data: &mut [u8], label: &str) -> Result<()> {
        // SAFETY: the context is current, and callers checked that the range on the GPU is as long as `data`. Where `data` is pinned, the driver may write it after the call: callers keep it, and neither look at it nor lend it to anybody, until they have waited for the stream or for an event behind the copy.
        unsafe { result::memcpy_dtoh_async(data, from, self.shared.handles.stream) }
            .map_err(|error| self.shared.state.lost(label, message(error)))
    }

    /// A range around what hands a command to the stream.
    pub(crate) fn range(&self, command: &Command) -> Option<Range<'_>> {
        Some(Range::begin(self.ranges.as_ref(), command.label()?))
    }

    /// Waits for everything on the stream.
    pub(crate) fn synchronize(&self, label: &str) -> Result<()> {
        // SAFETY: the context is current, and the stream is the device's.
        unsafe { result::stream::synchronize(self.shared.handles.stream) }
            .map_err(|error| self.shared.state.lost(label, message(error)))
    }

    /// Copies `data` to memory, after everything submitted before.
    pub(crate) fn upload(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        self.shared.state.checks().transfer(to, data.len(), "write")?;
        if data.is_empty() {
            return Ok(());
        }
        let address = self.address(to)?;
        {
            // A list or a run of another thread is whole before or behind it.
            let _queue = lock(&self.queue);
            self.start_upload(address, data, "write")?;
        }
        // Memory that the GPU reaches is the caller's again only when it is done.
        if is_pinned(data) { self.synchronize("write") } else { Ok(()) }
    }

    /// Copies memory to `data`, after everything submitted before.
    pub(crate) fn download(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        self.shared.state.checks().transfer(from, data.len(), "read")?;
        if data.is_empty() {
            return Ok(());
        }
        let address = self.address(from)?;
        // As in `upload`.
        let queue = lock(&self.queue);
        let label = queue.label("read");
        self.start_download(address, data, &label)?;
        drop(queue);
        self.synchronize(&label)
    }

    /// The commands of a list that was checked, made ready before anything runs: a list runs as a whole or not at all.
    pub(crate) fn prepare<'a>(&self, list: &'a [Command]) -> Result<Vec<Prepared<'a>>> {
        let prepared = |command: &'a Command| match command {
            Command::Dispatch(dispatch) => Ok(Prepared::Dispatch(dispatch, Launch::of(&self.shared, dispatch, None)?)),
            Command::Call(call) => self.ready_call(call).map(Prepared::Product),
            Command::Copy(command) => Ok(Prepared::Copy(command)),
            Command::Barrier => Ok(Prepared::Barrier),
        };
        list.iter().map(prepared).collect()
    }

    /// Runs a list without waiting for it.
    pub(crate) fn submit_list(&self, list: &[Command]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        let prepared = self.prepare(list)?;
        let mut queue = lock(&self.queue);
        queue.last = Some(Command::first_label(list));
        let mut waiting: Vec<Waiting<'_>> = Vec::with_capacity(TOGETHER);
        for (command, mut ready) in list.iter().zip(prepared) {
            match ready {
                // It is there anyway.
                Prepared::Barrier => continue,
                // A range of NVTX stands around each call that starts something.
                Prepared::Dispatch(dispatch, Some(launch)) if self.ranges.is_none() && !is_in_memory(dispatch) => {
                    waiting.push((dispatch, launch));
                    if waiting.len() == TOGETHER {
                        if Chain::start(&mut queue.chain, shared, &mut waiting)? {
                            waiting.clear();
                        } else {
                            start_each(shared, &mut waiting)?;
                        }
                    }
                    continue;
                }
                _ => {}
            }
            start_each(shared, &mut waiting)?;
            let _range = self.range(command);
            ready.settle(shared)?;
            ready.start(shared)?;
        }
        start_each(shared, &mut waiting)?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait_all(&self) -> Result<()> {
        let label = lock(&self.queue).label("wait");
        self.synchronize(&label)
    }

    /// Hands a recording's commands to the stream; the caller holds the lock of the queue.
    fn launch_recording(&self, recording: &CudaRecording) -> Result<()> {
        let Some(graph) = recording.graph else { return Ok(()) };
        let label = &*recording.label;
        let _range = Range::begin(self.ranges.as_ref(), label);
        // SAFETY: the context is current; graph and stream are the device's. The caller's lock keeps other threads from launching the graph, and the driver orders this launch behind earlier ones of it. If the recording goes before the launch is done,
        // the driver frees the graph after it, memory is freed in the order of the stream, and kernels are unloaded when the stream is done.
        unsafe { result::graph::launch(graph, self.shared.handles.stream) }
            .map_err(|error| self.shared.state.lost(label, message(error)))
    }

    /// Runs a recording without run words, without waiting for it.
    pub(crate) fn submit_recording(&self, recording: &dyn Recording) -> Result<()> {
        let shared = &self.shared;
        let recording = CudaRecording::of(recording, shared)?;
        recording.rules.expect_none(&recording.label)?;
        let mut queue = lock(&self.queue);
        queue.last = Some(recording.label.clone());
        self.launch_recording(recording)?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }

    /// Runs a recording: uploads, commands, downloads; and waits for it.
    pub(crate) fn run_recording(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        let shared = &self.shared;
        let recording = CudaRecording::of(recording, shared)?;
        let label = &*recording.label;
        let mut ran = lock(&recording.ran);
        shared.state.checks().io(&io, &recording.rules, *ran)?;
        let RunIo { run_words, uploads, downloads } = io;

        // Everything to bring, by address.
        let mut bring = Vec::with_capacity(uploads.len() + 1);
        if let (Some(words), Some(memory)) = (run_words, &recording.run_words) {
            bring.push((memory.address, words, true));
        }
        for (range, data) in uploads {
            bring.push((self.address(range)?, *data, is_staged(data)));
        }
        let mut take = Vec::with_capacity(downloads.len());
        for (range, data) in downloads {
            if !data.is_empty() {
                let staged = is_staged(data);
                take.push((self.address(range)?, &mut **data, staged));
            }
        }

        let mut queue = lock(&self.queue);
        queue.last = Some(recording.label.clone());
        // Both are there before anything starts, so that nothing is given back while the GPU may use it.
        let mut up = queue.staging(shared, bring.iter().filter(|piece| piece.2).map(|(_, data, _)| data.len()))?;
        let mut down = queue.staging(shared, take.iter().filter(|piece| piece.2).map(|(_, data, _)| data.len()))?;
        // Lent piece by piece, until all copies are done.
        let mut bringing = up.as_mut().map(|pinned| pinned.bytes_mut());
        let mut taking = down.as_mut().map(|pinned| pinned.bytes_mut());
        let mut copies = Vec::new();
        let start = || -> Result<()> {
            for (address, data, staged) in bring {
                match &mut bringing {
                    _ if data.is_empty() => {}
                    Some(rest) if staged => {
                        let piece = piece(rest, data.len());
                        piece.copy_from_slice(data);
                        self.start_upload(address, piece, label)?;
                    }
                    _ => self.start_upload(address, data, label)?,
                }
            }
            self.launch_recording(recording)?;
            for (address, data, staged) in take {
                match &mut taking {
                    Some(rest) if staged => {
                        let piece = piece(rest, data.len());
                        self.start_download(address, piece, label)?;
                        copies.push((piece, data));
                    }
                    _ => self.start_download(address, data, label)?,
                }
            }
            Ok(())
        };
        let started = start();
        CounterCells::add(&shared.state.counters.submissions);
        drop(queue);
        // What was started uses the caller's memory and ours until it is done, also where not all of it was.
        let finished = self.synchronize(label);
        started.and(finished)?;
        *ran = true;
        drop(ran);
        for (piece, data) in copies {
            data.copy_from_slice(piece);
        }
        let mut queue = lock(&self.queue);
        for pinned in [up, down].into_iter().flatten() {
            queue.pinned.give(pinned);
        }
        Ok(())
    }
}
