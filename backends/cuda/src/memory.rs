//! Memory on the GPU, and pinned memory of the host: through which small transfers go, and which callers hold.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_dsl::device::Memory;
use trefoil_dsl::error::Result;
use trefoil_dsl::pinned;
use trefoil_dsl::support::check::padded;

use crate::context::Left;
use crate::device::Shared;
use crate::driver::message;

/// Buffers of the pool are at least this large; and less than this is copied through them sooner than the driver tells that it is pinned already.
pub(crate) const PINNED_MINIMUM: usize = 64 * 1024;
/// The largest transfers of a run that go through pinned memory, all together, in each direction.
pub(crate) const PINNED_MOST: usize = 8 * 1024 * 1024;

/// A piece of memory on the GPU.
pub(crate) struct RawMemory {
    shared: Arc<Shared>,
    /// Its address there.
    pub(crate) address: sys::CUdeviceptr,
}

impl RawMemory {
    /// Makes `bytes` bytes, which must not be 0, in the order of the stream.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut address = 0;
        // SAFETY: the context is current, as in every call of a backend; pool and stream are the device's.
        let made = unsafe {
            match shared.handles.pool {
                Some(pool) => sys::cuMemAllocFromPoolAsync(&mut address, size, pool, shared.handles.stream),
                None => sys::cuMemAlloc_v2(&mut address, size),
            }
        };
        made.result().map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => shared.state.out_of_memory(label, bytes),
            _ => shared.state.lost(label, message(error)),
        })?;
        Ok(Self { shared: shared.clone(), address })
    }
}

impl Drop for RawMemory {
    fn drop(&mut self) {
        // Memory may go on any thread. If the device is lost, its memory goes with the context.
        if let Ok(_entered) = self.shared.enter() {
            self.shared.handles.give_back(Left::Memory(self.address));
        }
    }
}

impl fmt::Debug for RawMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawMemory({:#x})", self.address)
    }
}

/// Memory that callers hold.
pub(crate) struct CudaMemory {
    // Goes before what may keep the context.
    holds: Holds,
    shared: Arc<Shared>,
    address: sys::CUdeviceptr,
    bytes: u64,
}

/// What keeps a piece of memory.
enum Holds {
    /// It was made here, and is freed with this.
    Own(#[expect(dead_code, reason = "it is held")] RawMemory),
    /// What the program gave with memory of its own.
    Program(#[expect(dead_code, reason = "it is held")] Box<dyn Any + Send + Sync>),
}

impl fmt::Debug for CudaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = if matches!(self.holds, Holds::Own(_)) { "" } else { "the program's, " };
        write!(f, "CudaMemory({whose}{} bytes at {:#x})", self.bytes, self.address)
    }
}

impl CudaMemory {
    /// Makes memory of `bytes` bytes, whose size was checked.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let raw = RawMemory::new(shared, padded(bytes), label)?;
        shared.state.counters.allocated(bytes);
        Ok(Self { address: raw.address, holds: Holds::Own(raw), shared: shared.clone(), bytes })
    }

    /// Memory of the program's own, which was checked. `owner` is held as long as it is.
    pub(crate) fn adopt(
        shared: &Arc<Shared>,
        address: sys::CUdeviceptr,
        bytes: u64,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self { holds: Holds::Program(owner), shared: shared.clone(), address, bytes }
    }

    /// Its address on the GPU.
    pub(crate) fn address(&self) -> sys::CUdeviceptr {
        self.address
    }

    /// The memory behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(memory: &'a Arc<dyn Memory>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(memory.as_any(), "a piece of memory")
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if matches!(self.holds, Holds::Own(_)) {
            self.shared.state.counters.freed(self.bytes);
        }
    }
}

impl Memory for CudaMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.shared.state.id
    }

    fn shares(&self, other: &dyn Memory) -> bool {
        let other: Option<&Self> = other.as_any().downcast_ref();
        other.is_some_and(|other| self.device() == other.device() && self.address == other.address)
    }
}

/// Memory of the host that the GPU reaches by itself, so that copies run beside the host.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// The device's.
    pub(crate) shared: Arc<Shared>,
    pointer: *mut u8,
    /// How many they are.
    pub(crate) bytes: usize,
}

// SAFETY: the memory is plain bytes that one owner at a time uses; the driver lets any thread free it.
unsafe impl Send for Pinned {}
// SAFETY: through a shared reference the memory is only read.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Makes `bytes` bytes of zeros.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: usize, label: &str) -> Result<Self> {
        // SAFETY: the context is current, as in every call of a backend; the driver makes no memory of 0 bytes.
        let pointer = unsafe { result::malloc_host(bytes.max(1), 0) }.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => shared.state.out_of_memory(label, bytes as u64),
            _ => shared.state.driver("making pinned memory", message(error)),
        })?;
        // SAFETY: the driver gave that many bytes, whose contents are unspecified; slices of them must be initialised.
        unsafe { std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        Ok(Self { shared: shared.clone(), pointer: pointer.cast(), bytes })
    }
}

impl pinned::Pinned for Pinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is valid and initialised for that many bytes as long as `self`; the GPU writes to it only while whoever lent it waits, or looks at none of it.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone for as long as the slice.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

/// Whether the driver reaches bytes of the host by itself, whoever made that memory: then a transfer that was started with them may not be done when the call returns.
pub(crate) fn is_pinned(bytes: &[u8]) -> bool {
    let mut kind = 0u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let address = bytes.as_ptr().addr() as sys::CUdeviceptr;
    // SAFETY: the context is current; the attribute is a number of 32 bits; of the address the driver only says whether it knows it.
    unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address) }.result().is_ok()
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the driver gave the memory, and it is freed once.
            let _ = unsafe { result::free_host(self.pointer.cast::<c_void>()) };
        }
    }
}

/// Pinned buffers that are free for use.
#[derive(Default)]
pub(crate) struct PinnedPool(Vec<Pinned>);

impl PinnedPool {
    /// A buffer of at least `bytes` bytes.
    pub(crate) fn take(&mut self, shared: &Arc<Shared>, bytes: usize) -> Result<Pinned> {
        let best = self.0.iter().enumerate().filter(|(_, p)| p.bytes >= bytes).min_by_key(|(_, p)| p.bytes);
        match best {
            Some((at, _)) => Ok(self.0.swap_remove(at)),
            None => Pinned::new(shared, bytes.max(PINNED_MINIMUM).next_power_of_two(), "staging of transfers"),
        }
    }

    /// Takes a buffer back that the GPU is done with.
    pub(crate) fn give(&mut self, pinned: Pinned) {
        // Runs of many threads at a time may leave more behind than is worth keeping.
        if self.0.len() < 16 {
            self.0.push(pinned);
        }
    }
}
