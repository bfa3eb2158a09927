//! Memory of the host, as device memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use trefoil_dsl::device::{Memory, MemoryRange};
use trefoil_dsl::error::Result;
use trefoil_dsl::support::check::padded;

use crate::device::Shared;
use crate::limits::MEMORY_ALIGNMENT;

/// A piece of memory, zero at first, padded to a multiple of 16 bytes.
pub(crate) struct CpuMemory {
    shared: Arc<Shared>,
    pointer: NonNull<u8>,
    /// What was allocated, in which the memory starts at the first aligned byte.
    allocated: NonNull<u8>,
    layout: Layout,
    bytes: u64,
}

// SAFETY: the memory belongs to the value; everything that reads or writes it holds the device's lock, or is a kernel, which
// accesses what other threads write by the IR's rules.
unsafe impl Send for CpuMemory {}
// SAFETY: as above.
unsafe impl Sync for CpuMemory {}

impl CpuMemory {
    /// Makes `bytes` bytes.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let failed = || shared.state.out_of_memory(label, bytes);
        let size = usize::try_from(padded(bytes)).map_err(|_| failed())?;
        // Of no special alignment: then zeros come from the system page by page, when they are first touched, and nobody writes them.
        let room = size.checked_add(MEMORY_ALIGNMENT).ok_or_else(failed)?;
        let layout = Layout::from_size_align(room, align_of::<u64>()).map_err(|_| failed())?;
        // SAFETY: the size is not 0.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        let skipped = allocated.addr().get().next_multiple_of(MEMORY_ALIGNMENT) - allocated.addr().get();
        // SAFETY: less is skipped than there is room beside `size`.
        let pointer = unsafe { allocated.add(skipped) };
        shared.state.counters.allocated(bytes);
        Ok(Self { shared: shared.clone(), pointer, allocated, layout, bytes })
    }

    /// The memory behind a handle.
    pub(crate) fn of<'a>(memory: &'a Arc<dyn Memory>, shared: &Shared) -> Result<&'a Self> {
        let own: &Self = shared.state.own(memory.as_any(), "memory")?;
        shared.state.made(own.shared.state.id, "memory")?;
        Ok(own)
    }

    /// The first byte of a range that was checked to be within its memory.
    pub(crate) fn at(range: &MemoryRange, shared: &Shared) -> Result<*mut u8> {
        let memory = Self::of(&range.memory, shared)?;
        // The range is within the memory, so its offset fits.
        Ok(memory.pointer.as_ptr().wrapping_add(range.offset as usize))
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed once; lists are done when their call returns, and recordings
        // hold their memory.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) };
        self.shared.state.counters.freed(self.bytes);
    }
}

impl fmt::Debug for CpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMemory({} bytes)", self.bytes)
    }
}

impl Memory for CpuMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.shared.state.id
    }
}
