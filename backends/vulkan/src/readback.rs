//! Reads that are taken later: a copy to a buffer that the host sees, which the read and the submission hold together, so that either may go first.
//!
//! One copy takes all of it, since what is submitted between two would be seen in the second.

use std::sync::Arc;

use gpu_allocator::MemoryLocation;
use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::Result;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::check::{padded, same_length};
use trefoil_dsl::support::state::lock;

use crate::device::{Shared, VulkanBackend};
use crate::memory::{RawBuffer, VulkanMemory};
use crate::record::{Encoder, Kept, ONCE};

/// What such a read is called in errors.
const NAME: &str = "read";

/// A read under way.
#[derive(Debug)]
struct VulkanRead {
    shared: Arc<Shared>,
    /// Where the copy goes. The submission keeps it too, until the device is done ([`Kept::pinned`]).
    buffer: Arc<RawBuffer>,
    bytes: u64,
    /// The submission of the copy.
    value: u64,
}

impl VulkanBackend {
    /// Submits the copy.
    pub(crate) fn start_read(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        let shared = &self.shared;
        shared.state.checks().range(from, NAME)?;
        let memory = VulkanMemory::of(&from.memory, shared)?;
        let label = "staging for what is read later";
        let buffer = Arc::new(RawBuffer::new(shared, padded(from.bytes), MemoryLocation::GpuToCpu, label)?);
        let mut queue = lock(&self.queue);
        let mut slot = queue.slot(shared)?;
        let encoder = Encoder::begin(shared, slot.commands.buffers[0], &mut slot.descriptors, ONCE)?;
        if from.bytes > 0 {
            encoder.copy((&memory.buffer, from.offset), (&buffer, 0), from.bytes);
        }
        let commands = encoder.end()?;
        let kept = Kept { memory: vec![from.memory.clone()], pinned: vec![buffer.clone()], ..Kept::default() };
        let value = queue.submit(shared, &[commands], Some(slot), Vec::new(), kept, &Arc::from(NAME))?;
        Ok(Box::new(VulkanRead { shared: shared.clone(), buffer, bytes: from.bytes, value }))
    }
}

impl PendingRead for VulkanRead {
    fn is_ready(&self) -> Result<bool> {
        self.shared.guarded(|| Ok(self.shared.finished(NAME)? >= self.value))
    }

    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()> {
        self.shared.guarded(|| {
            same_length(data.len(), self.bytes, NAME)?;
            self.shared.wait_for(self.value, NAME)?;
            self.buffer.read_host(0, data)
        })
    }
}
