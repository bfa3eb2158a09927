//! Reads that are taken later: a copy to a buffer of their own, which wgpu maps when the copy is done.
//!
//! wgpu finds that out when it is polled, by whoever asks for a read or waits for the device. It keeps a buffer that goes meanwhile until the copy is done.

use std::sync::Arc;

use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::Result;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::check::same_length;

use crate::device::{Shared, WgpuBackend};
use crate::memory::{Mapping, WgpuMemory, words_around};

/// What such a read is called in errors.
const NAME: &str = "read";

/// A read under way.
#[derive(Debug)]
struct WgpuRead {
    shared: Arc<Shared>,
    /// Of the words around the bytes; none where there are no bytes.
    mapping: Option<Mapping>,
    /// Where the bytes begin in these words.
    first: usize,
    bytes: u64,
}

impl WgpuBackend {
    /// Submits the copy, in one piece: what is submitted between two would be seen in the second.
    pub(crate) fn start_read(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        let shared = &self.shared;
        shared.state.checks().range(from, NAME)?;
        let memory = WgpuMemory::of(&from.memory, shared)?;
        let words = words_around(from.offset, from.bytes);
        let mapping = if from.bytes == 0 {
            None
        } else {
            let count = words.end - words.start;
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let staging = shared.buffer(count, usage, "staging for what is read later")?;
            let no_parts = self.no_parts();
            let submission = self.submit(NAME, |encoder| {
                encoder.copy_buffer_to_buffer(&memory.buffer, words.start, &staging, 0, count);
                Ok(())
            })?;
            drop(no_parts);
            Some(Mapping::ask(shared, &staging, count, submission, NAME)?)
        };
        let first = (from.offset - words.start) as usize;
        Ok(Box::new(WgpuRead { shared: shared.clone(), mapping, first, bytes: from.bytes }))
    }
}

impl PendingRead for WgpuRead {
    fn is_ready(&self) -> Result<bool> {
        let is_there = |mapping: &Mapping| mapping.is_there(&self.shared, NAME);
        self.shared.guarded(|| self.mapping.as_ref().map_or(Ok(true), is_there))
    }

    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()> {
        let Self { shared, mapping, first, bytes } = *self;
        shared.guarded(|| {
            same_length(data.len(), bytes, NAME)?;
            let Some(mapping) = mapping else { return Ok(()) };
            mapping.take(&shared, NAME, |words| data.copy_from_slice(&words[first..first + data.len()]))
        })
    }
}
