//! Buffers that the host sees and callers hold, and how a transfer finds that its bytes lie in one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gpu_allocator::MemoryLocation;
use trefoil_dsl::error::Result;
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::support::check::padded;
use trefoil_dsl::support::state::lock;

use crate::device::Shared;
use crate::memory::RawBuffer;

/// The pinned buffers of a device by the address of their first byte.
#[derive(Debug, Default)]
pub(crate) struct PinnedBuffers(Mutex<BTreeMap<usize, Arc<RawBuffer>>>);

impl PinnedBuffers {
    /// The buffer in which bytes of the host lie, and where in it; `None` if the device has no part in that memory.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<(Arc<RawBuffer>, u64)> {
        let first = bytes.as_ptr().addr();
        let buffers = lock(&self.0);
        let (base, buffer) = buffers.range(..=first).next_back()?;
        let offset = (first - base) as u64;
        let end = offset.checked_add(bytes.len() as u64)?;
        (!bytes.is_empty() && end <= buffer.bytes).then(|| (buffer.clone(), offset))
    }
}

/// A buffer that the host sees and a caller holds.
#[derive(Debug)]
pub(crate) struct VulkanPinned {
    shared: Arc<Shared>,
    /// Keeps the mapping.
    _buffer: Arc<RawBuffer>,
    pointer: *mut u8,
    bytes: usize,
}

// SAFETY: the pointer is to memory of the buffer, which may be used and freed on any thread.
unsafe impl Send for VulkanPinned {}
// SAFETY: through a shared reference the memory is only read.
unsafe impl Sync for VulkanPinned {}

impl VulkanPinned {
    /// Makes `bytes` bytes of zeros.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: usize, label: &str) -> Result<Self> {
        let buffer = RawBuffer::new(shared, padded(bytes as u64), MemoryLocation::GpuToCpu, label)?;
        let pointer = buffer.address(0, bytes)?;
        // SAFETY: `address` checked that the range is within the mapping, and the buffer is new, so that nobody else uses it.
        unsafe { std::ptr::write_bytes(pointer, 0, bytes) };
        let buffer = Arc::new(buffer);
        lock(&shared.pinned.0).insert(pointer.addr(), buffer.clone());
        Ok(Self { shared: shared.clone(), _buffer: buffer, pointer, bytes })
    }
}

impl Drop for VulkanPinned {
    fn drop(&mut self) {
        lock(&self.shared.pinned.0).remove(&self.pointer.addr());
    }
}

impl Pinned for VulkanPinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping lives as long as the buffer, which `self` holds, and all of it was initialised; whoever submits work on these bytes was lent them until it is done.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}
