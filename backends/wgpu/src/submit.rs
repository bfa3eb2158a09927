//! Submissions: transfers, lists and runs.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

use trefoil_dsl::device::{Command, MemoryRange, Recording, RunIo};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::device::{Shared, WgpuBackend};
use crate::memory::{Mapping, WgpuMemory, take_mapped, words_around};
use crate::record::{ParamBuffer, Step, WgpuRecording, blocks, steps};

/// The most bytes that one transfer moves at a time, a multiple of 4.
const CHUNK: u64 = 64 * 1024 * 1024;

/// Copies of [`CHUNK`] bytes that are on their way to the host at a time for one read or run: while the host takes one, the device makes the other.
const COPIES_AT_ONCE: usize = 2;

/// The whole words around what is written, and whether bytes before and behind it, within the first and the last of them, must stay as they are.
fn words_written(to: &MemoryRange) -> (Range<u64>, bool, bool) {
    let (words, end) = (words_around(to.offset, to.bytes), to.offset + to.bytes);
    // Behind the memory's end is nothing.
    let (before, behind) = (words.start < to.offset, end < words.end && end < to.memory.bytes());
    (words, before, behind)
}

/// A copy of whole words to a buffer that is mapped, and where the bytes among them go that are wanted.
struct Landing<'d> {
    mapping: Mapping,
    /// Where the bytes begin in these words.
    first: usize,
    to: &'d mut [u8],
}

impl Landing<'_> {
    /// Waits for the copy, and hands the bytes over.
    fn land(self, shared: &Shared, what: &str) -> Result<()> {
        let Self { mapping, first, to } = self;
        mapping.take(shared, what, |words| to.copy_from_slice(&words[first..first + to.len()]))
    }
}

/// Encodes all steps: as one pass, but that copies, and what comes before a dispatch, stand between passes.
fn encode(
    shared: &Shared,
    encoder: &mut wgpu::CommandEncoder,
    steps: &[Step],
    run_words: Option<&wgpu::Buffer>,
    label: &str,
) -> Result<()> {
    let descriptor = wgpu::ComputePassDescriptor { label: Some(label), timestamp_writes: None };
    let mut pass = None;
    for step in steps {
        match step {
            Step::Dispatch(dispatch) => {
                if dispatch.has_before() {
                    pass = None;
                    dispatch.encode_before(shared, encoder)?;
                }
                let pass = pass.get_or_insert_with(|| encoder.begin_compute_pass(&descriptor).forget_lifetime());
                dispatch.encode(shared, pass, run_words)?;
            }
            Step::Copy(copy) => {
                pass = None;
                Step::encode_copy(copy, shared, encoder)?;
            }
            Step::Barrier => {}
        }
    }
    Ok(())
}

impl WgpuBackend {
    /// Encodes and submits, one thread at a time: where two submitted at once, both have hung on a GPU (wgpu 30). The checks let nothing wrong through but what they cannot know of a buffer of the program's own, such as that it is mapped.
    pub(crate) fn submit(
        &self,
        label: &str,
        fill: impl FnOnce(&mut wgpu::CommandEncoder) -> Result<()>,
    ) -> Result<wgpu::SubmissionIndex> {
        let shared = &self.shared;
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some(label) };
        let _turn = lock(&self.turn);
        let submitted = shared.scoped(|| {
            let mut encoder = shared.device.create_command_encoder(&descriptor);
            fill(&mut encoder)?;
            Ok(shared.queue.submit([encoder.finish()]))
        });
        let submission = submitted.map_err(|error| shared.failed(label, error)).flatten()?;
        // Scopes are told nothing of a loss.
        shared.state.failure.check()?;
        Ok(submission)
    }

    /// While this is held, nothing is under way that is whole only when all of it is done: a write of a part of a word, whose other parts were read before; a read or a write of more than goes at a time; a run that brings something, or takes more than that.
    pub(crate) fn no_parts(&self) -> RwLockReadGuard<'_, ()> {
        self.words.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this is held, nobody else submits what uses memory, or writes to it: what its holder does is one in the order of submissions. Others wait until it goes, so that it is held no longer than to the last submission.
    fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.words.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies `data` to memory, after everything submitted before.
    pub(crate) fn upload(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        self.shared.state.checks().transfer(to, data.len(), "write")?;
        let (words, before, behind) = words_written(to);
        // Nobody sees one chunk without the others, nor changes what must stay.
        let is_part = before || behind || words.end - words.start > CHUNK;
        let _alone = is_part.then(|| self.alone());
        let _no_parts = (!is_part).then(|| self.no_parts());
        self.put(to, data, "write")
    }

    /// Copies `data` to memory, whose range was checked; the caller is [`WgpuBackend::alone`] unless whole words are written, of one chunk at most.
    fn put(&self, to: &MemoryRange, data: &[u8], what: &str) -> Result<()> {
        let shared = &self.shared;
        if data.is_empty() {
            return Ok(());
        }
        let memory = WgpuMemory::of(&to.memory, shared)?;
        let (words, before, behind) = words_written(to);
        let mut patched;
        let data = if words == (to.offset..to.offset + to.bytes) {
            data
        } else {
            patched = vec![0; (words.end - words.start) as usize];
            let last = patched.len() - 4;
            if before || (behind && last == 0) {
                self.start_copy(&memory.buffer, words.start, &mut patched[..4], what)?.land(shared, what)?;
            }
            if behind && last > 0 {
                self.start_copy(&memory.buffer, words.end - 4, &mut patched[last..], what)?.land(shared, what)?;
            }
            let first = (to.offset - words.start) as usize;
            patched[first..first + data.len()].copy_from_slice(data);
            &patched[..]
        };
        let mut offset = words.start;
        for chunk in data.chunks(CHUNK as usize) {
            shared
                .scoped(|| shared.queue.write_buffer(&memory.buffer, offset, chunk))
                .map_err(|error| shared.failed(what, error))?;
            if chunk.len() as u64 == CHUNK {
                // Lets wgpu free its copy of the chunk before all of them are there.
                self.submit(what, |_| Ok(()))?;
            }
            offset += chunk.len() as u64;
        }
        // As in `submit`.
        shared.state.failure.check()
    }

    /// Submits a copy of the words around some bytes of a buffer.
    fn start_copy<'d>(&self, from: &wgpu::Buffer, offset: u64, to: &'d mut [u8], what: &str) -> Result<Landing<'d>> {
        let shared = &self.shared;
        let words = words_around(offset, to.len() as u64);
        let bytes = words.end - words.start;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = shared.buffer(bytes, usage, "staging for downloads")?;
        let submission = self.submit(what, |encoder| {
            encoder.copy_buffer_to_buffer(from, words.start, &staging, 0, bytes);
            Ok(())
        })?;
        let mapping = Mapping::ask(shared, &staging, bytes, submission, what)?;
        Ok(Landing { mapping, first: (offset - words.start) as usize, to })
    }

    /// Submits copies of a range, and adds them to `landing`; where too many are there, it waits for the oldest first. Of more than one chunk, the caller is [`WgpuBackend::alone`].
    fn start_copies<'d>(
        &self,
        from: &MemoryRange,
        data: &'d mut [u8],
        what: &str,
        landing: &mut VecDeque<Landing<'d>>,
    ) -> Result<()> {
        let memory = WgpuMemory::of(&from.memory, &self.shared)?;
        let mut offset = from.offset;
        for chunk in data.chunks_mut(CHUNK as usize) {
            if landing.len() >= COPIES_AT_ONCE
                && let Some(oldest) = landing.pop_front()
            {
                oldest.land(&self.shared, what)?;
            }
            let bytes = chunk.len() as u64;
            landing.push_back(self.start_copy(&memory.buffer, offset, chunk, what)?);
            offset += bytes;
        }
        Ok(())
    }

    /// Where so many bytes are read that others will be kept waiting while copies of them are waited for: waits for what was submitted before, while others may submit.
    fn before_alone(&self, bytes: u64) -> Result<()> {
        if bytes > COPIES_AT_ONCE as u64 * CHUNK { self.wait_all() } else { Ok(()) }
    }

    /// Copies memory to `data`, after everything submitted before.
    pub(crate) fn download(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().transfer(from, data.len(), "read")?;
        self.before_alone(from.bytes)?;
        let is_large = from.bytes > CHUNK;
        let alone = is_large.then(|| self.alone());
        let no_parts = (!is_large).then(|| self.no_parts());
        let mut landing = VecDeque::new();
        self.start_copies(from, data, "read", &mut landing)?;
        drop((alone, no_parts));
        landing.into_iter().try_for_each(|copy| copy.land(shared, "read"))
    }

    /// Makes a list ready: its parameter blocks are written, in the order of the queue, to the device's buffer for them, which `held`
    /// guards until the list is submitted.
    pub(crate) fn prepare(&self, list: &[Command], held: &mut Option<ParamBuffer>) -> Result<Vec<Step>> {
        let shared = &self.shared;
        let blocks = blocks(list);
        if !blocks.is_empty() {
            if held.as_ref().is_none_or(|params| params.buffer.size() < blocks.len() as u64) {
                let larger = ParamBuffer::new(shared, blocks.len() as u64)?;
                if let Some(smaller) = held.replace(larger) {
                    shared.bind_groups.forget(&smaller.buffer);
                }
            }
            if let Some(params) = held {
                shared
                    .scoped(|| shared.queue.write_buffer(&params.buffer, 0, &blocks))
                    .map_err(|error| shared.state.driver("writing parameter blocks", error))?;
            }
        }
        steps(shared, list, None, held.as_ref().map(|params| &params.buffer), Some(&shared.bind_groups))
    }

    /// Runs a list without waiting for it.
    pub(crate) fn submit_list(&self, list: &[Command]) -> Result<()> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        let label = Command::first_label(list);
        let mut params = lock(&self.params);
        let steps = self.prepare(list, &mut params)?;
        let _no_parts = self.no_parts();
        self.submit(&label, |encoder| encode(shared, encoder, &steps, None, &label))?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }

    /// Waits until everything submitted is done.
    pub(crate) fn wait_all(&self) -> Result<()> {
        // Writes that no list followed are only begun by a submission.
        let submission = self.submit("wait", |_| Ok(()))?;
        self.shared.wait_for(Some(submission), "wait")
    }

    /// Runs a recording: uploads, commands, downloads; and waits for it. What takes more than one submission is done alone, so that nothing of others comes between.
    pub(crate) fn run_recording(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        let shared = &self.shared;
        let recording = WgpuRecording::of(recording, shared)?;
        let label = &*recording.label;
        // Held to the end: another run would write what this one reads.
        let mut state = lock(&recording.state);
        shared.state.checks().io(&io, &recording.rules, state.ran)?;
        let RunIo { run_words, uploads, downloads } = io;

        // Small downloads share a buffer that the recording keeps; large ones follow by themselves.
        let mut staged = Vec::with_capacity(downloads.len());
        let mut large = Vec::new();
        let mut total = 0;
        for (range, data) in downloads {
            let words = words_around(range.offset, range.bytes);
            let bytes = words.end - words.start;
            if data.is_empty() {
                continue;
            }
            if total + bytes > CHUNK {
                large.push((range, data));
            } else {
                staged.push((total, words, range, data));
                total += bytes;
            }
        }
        if total > 0 && state.downloads.as_ref().is_none_or(|buffer| buffer.size() < total) {
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            state.downloads = Some(shared.buffer(total, usage, "staging for downloads")?);
        }
        self.before_alone(large.iter().map(|(range, _)| range.bytes).fold(0, u64::saturating_add))?;
        let in_parts = !uploads.is_empty() || !large.is_empty();
        let alone = in_parts.then(|| self.alone());
        let no_parts = (!in_parts).then(|| self.no_parts());
        for (range, data) in uploads {
            self.put(range, data, label)?;
        }
        if let (Some(words), Some(buffer)) = (run_words, &recording.run_words) {
            // The buffer is padded, so that the last word may be filled up.
            let mut whole = words.to_vec();
            whole.resize(whole.len().next_multiple_of(4), 0);
            shared
                .scoped(|| shared.queue.write_buffer(buffer, 0, &whole))
                .map_err(|error| shared.failed(label, error))?;
        }
        let submission = self.submit(label, |encoder| {
            encode(shared, encoder, &recording.steps, recording.run_words.as_ref(), label)?;
            if let Some(staging) = &state.downloads {
                for (at, words, range, _) in &staged {
                    let from = &WgpuMemory::of(&range.memory, shared)?.buffer;
                    encoder.copy_buffer_to_buffer(from, words.start, staging, *at, words.end - words.start);
                }
            }
            Ok(())
        })?;
        CounterCells::add(&shared.state.counters.submissions);
        // The run words are its own from here on, whatever becomes of what follows.
        state.ran = true;
        let mut landing = VecDeque::new();
        for (range, data) in large {
            self.start_copies(range, data, label, &mut landing)?;
        }
        drop((alone, no_parts));
        match &state.downloads {
            Some(staging) if total > 0 => take_mapped(shared, staging, total, submission, label, |view| {
                for (at, words, range, data) in staged {
                    let first = (at + range.offset - words.start) as usize;
                    data.copy_from_slice(&view[first..first + data.len()]);
                }
            })?,
            _ => shared.wait_for(Some(submission), label)?,
        }
        landing.into_iter().try_for_each(|copy| copy.land(shared, label))
    }

    /// Runs a recording without run words, without waiting for it, behind a run of it that another thread waits for. wgpu keeps what it uses until it is done, and nothing of it is written after it was recorded.
    pub(crate) fn submit_recording(&self, recording: &dyn Recording) -> Result<()> {
        let shared = &self.shared;
        let recording = WgpuRecording::of(recording, shared)?;
        let label = &*recording.label;
        recording.rules.expect_none(label)?;
        let _state = lock(&recording.state);
        let _no_parts = self.no_parts();
        self.submit(label, |encoder| encode(shared, encoder, &recording.steps, None, label))?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }
}
