//! Buffers on the device, and copies between them and the host.
//!
//! wgpu copies whole words at multiples of 4 bytes. Buffers are padded, so that the word around any byte is within them.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use trefoil_dsl::device::Memory;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::room;
use trefoil_dsl::support::state::lock;

use crate::device::Shared;

/// The bytes of a word.
const WORD: u64 = wgpu::COPY_BUFFER_ALIGNMENT;

/// The whole words around `bytes` bytes from `offset` on.
pub(crate) fn words_around(offset: u64, bytes: u64) -> Range<u64> {
    offset / WORD * WORD..(offset + bytes).next_multiple_of(WORD)
}

/// Memory that callers hold.
#[derive(Debug)]
pub(crate) struct WgpuMemory {
    shared: Arc<Shared>,
    /// The buffer, padded as bindings need it.
    pub(crate) buffer: wgpu::Buffer,
    bytes: u64,
    /// Whether it was made here, and not by the program.
    counted: bool,
}

/// What a buffer must be usable for, so that kernels, copies and transfers may use it.
pub(crate) const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

impl WgpuMemory {
    /// Makes memory of `bytes` bytes, whose size was checked.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let buffer = shared.buffer(room(bytes), USAGE | wgpu::BufferUsages::INDIRECT, label)?;
        shared.state.counters.allocated(bytes);
        Ok(Self { shared: shared.clone(), buffer, bytes, counted: true })
    }

    /// A buffer of the program's own, which was checked.
    pub(crate) fn adopt(shared: &Arc<Shared>, buffer: &wgpu::Buffer) -> Self {
        Self { shared: shared.clone(), buffer: buffer.clone(), bytes: buffer.size(), counted: false }
    }

    /// The memory behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(memory: &'a Arc<dyn Memory>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(memory.as_any(), "a piece of memory")
    }
}

impl Drop for WgpuMemory {
    fn drop(&mut self) {
        self.shared.bind_groups.forget(&self.buffer);
        if self.counted {
            self.shared.state.counters.freed(self.bytes);
        }
    }
}

impl Memory for WgpuMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn room(&self) -> u64 {
        self.buffer.size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.shared.state.id
    }

    fn shares(&self, other: &dyn Memory) -> bool {
        let other: Option<&Self> = other.as_any().downcast_ref();
        other.is_some_and(|other| self.buffer == other.buffer)
    }
}

/// How long an answer that the device has given may take from another thread to this one.
const LONGEST: Duration = Duration::from_secs(10);

/// What wgpu answers to who asked for a buffer to be mapped, on whichever thread it finds out.
#[derive(Clone, Debug, Default)]
struct Answer(Arc<(Mutex<Option<Mapped>>, Condvar)>);

/// Whether a buffer is mapped.
type Mapped = Result<(), wgpu::BufferAsyncError>;

impl Answer {
    fn give(&self, mapped: Mapped) {
        let (answer, given) = &*self.0;
        *lock(answer) = Some(mapped);
        given.notify_all();
    }

    fn get(&self) -> Option<Mapped> {
        lock(&self.0.0).clone()
    }

    /// Waits for it, [`LONGEST`] at most.
    fn wait(&self) -> Option<Mapped> {
        let (answer, given) = &*self.0;
        let waited = given.wait_timeout_while(lock(answer), LONGEST, |answer| answer.is_none());
        let (answer, _) = waited.unwrap_or_else(PoisonError::into_inner);
        answer.clone()
    }
}

/// A buffer that is mapped when the submission that fills it is done.
#[derive(Debug)]
pub(crate) struct Mapping {
    buffer: wgpu::Buffer,
    bytes: u64,
    submission: wgpu::SubmissionIndex,
    answer: Answer,
}

impl Mapping {
    /// Asks for the first `bytes` bytes of a buffer that a submission fills.
    pub(crate) fn ask(
        shared: &Shared,
        buffer: &wgpu::Buffer,
        bytes: u64,
        submission: wgpu::SubmissionIndex,
        label: &str,
    ) -> Result<Self> {
        let answer = Answer::default();
        let give = answer.clone();
        // wgpu tells here that what a lost device made is no buffer; without a scope, it tells the program's handler, or panics.
        let asked = shared.scoped(|| buffer.map_async(wgpu::MapMode::Read, 0..bytes, move |mapped| give.give(mapped)));
        asked.map_err(|error| shared.state.lost(label, error))?;
        Ok(Self { buffer: buffer.clone(), bytes, submission, answer })
    }

    /// Whether it is mapped; it does not wait for that.
    pub(crate) fn is_there(&self, shared: &Shared, label: &str) -> Result<bool> {
        if self.answer.get().is_none() {
            shared.poll(wgpu::PollType::Poll, label)?;
        }
        match self.answer.get() {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(shared.state.lost(label, error)),
        }
    }

    /// Waits until it is mapped, and hands its bytes to `take`.
    pub(crate) fn take<T>(self, shared: &Shared, label: &str, take: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if self.answer.get().is_some() {
            // It is done, while others may keep the device busy.
            shared.wait_asleep(Some(self.submission), label)?;
        } else {
            shared.wait_for(Some(self.submission), label)?;
        }
        // Another thread that waits may have taken the answer from the device, and be about to give it.
        match self.answer.wait() {
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(shared.state.lost(label, error)),
            None => return Err(shared.state.lost(label, "the device did not answer")),
        }
        let view = self.buffer.get_mapped_range(0..self.bytes).map_err(|error| shared.state.lost(label, error))?;
        let taken = take(&view);
        drop(view);
        self.buffer.unmap();
        Ok(taken)
    }
}

/// Waits for a submission, maps a buffer that it filled, and hands its bytes to `take`.
pub(crate) fn take_mapped<T>(
    shared: &Shared,
    buffer: &wgpu::Buffer,
    bytes: u64,
    submission: wgpu::SubmissionIndex,
    label: &str,
    take: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    Mapping::ask(shared, buffer, bytes, submission, label)?.take(shared, label, take)
}
