//! Buffers on the device, and copies between them and the host.
//!
//! wgpu copies whole words at multiples of 4 bytes. Buffers are padded, so that the word around any byte is within them.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use trefoil_dsl::device::Memory;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::room;

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
const ANSWER: std::time::Duration = std::time::Duration::from_secs(10);

/// Waits for a submission, maps a buffer that it filled, and hands its bytes to `take`.
pub(crate) fn take_mapped<T>(
    shared: &Shared,
    buffer: &wgpu::Buffer,
    bytes: u64,
    submission: wgpu::SubmissionIndex,
    label: &str,
    take: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let answer = move |mapped| {
        // The receiver may be gone if waiting failed.
        let _ = sender.send(mapped);
    };
    // wgpu tells here that what a lost device made is no buffer; without a scope, it tells the program's handler, or panics.
    let mapped = shared.scoped(|| buffer.map_async(wgpu::MapMode::Read, 0..bytes, answer));
    mapped.map_err(|error| shared.state.lost(label, error))?;
    shared.wait_for(Some(submission), label)?;
    // Another thread that waits may have taken the answer from the device, and be about to send it.
    match receiver.recv_timeout(ANSWER) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(shared.state.lost(label, error)),
        Err(_) => return Err(shared.state.lost(label, "the device did not answer")),
    }
    let view = buffer.get_mapped_range(0..bytes).map_err(|error| shared.state.lost(label, error))?;
    let taken = take(&view);
    drop(view);
    buffer.unmap();
    Ok(taken)
}
