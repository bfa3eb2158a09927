//! Buffers on the device, and the staging buffers through which the host reaches them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};
use trefoil_dsl::device::Memory;
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::room;

use crate::device::Shared;

/// Staging buffers are at least this large, and no transfer takes more than [`STAGING_CHUNK`] at a time.
const STAGING_MINIMUM: u64 = 64 * 1024;
/// The most bytes that one staging buffer holds.
pub(crate) const STAGING_CHUNK: u64 = 32 * 1024 * 1024;
/// Staging buffers in the pool beyond this many bytes are freed instead of kept; and no more are in flight, unless one by itself is larger.
pub(crate) const STAGING_KEPT: u64 = 4 * STAGING_CHUNK;

/// Buffers that the host sees lie at a multiple of so many bytes there.
const HOST_ALIGNMENT: u64 = 64;

/// A buffer with memory of its own, or one of the program's.
pub(crate) struct RawBuffer {
    /// What the program gave with a buffer of its own, which is not destroyed here. It goes before what may keep the device.
    owner: Option<Box<dyn Any + Send + Sync>>,
    shared: Arc<Shared>,
    /// The handle.
    pub(crate) handle: vk::Buffer,
    allocation: Option<Allocation>,
    /// Its size in bytes.
    pub(crate) bytes: u64,
}

impl fmt::Debug for RawBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawBuffer({} bytes, mapped: {})", self.bytes, self.mapped().is_some())
    }
}

impl RawBuffer {
    /// Makes a buffer of `bytes` bytes, which must not be 0.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, location: MemoryLocation, label: &str) -> Result<Self> {
        let no_memory = || shared.state.out_of_memory(label, bytes);
        let driver =
            |call, error: &dyn fmt::Display| shared.state.driver(call, format!("`{label}` of {bytes} bytes: {error}"));
        let failed = |call, error: vk::Result| match error {
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => no_memory(),
            other => driver(call, &other),
        };
        let limit = shared.traits.max_buffer_bytes;
        if bytes > limit {
            let device = shared.state.properties.name.clone();
            return Err(Error::TooLarge { what: format!("`{label}`"), bytes, limit, device });
        }
        let info = vk::BufferCreateInfo::default().size(bytes).sharing_mode(vk::SharingMode::EXCLUSIVE).usage(
            vk::BufferUsageFlags::STORAGE_BUFFER
                | vk::BufferUsageFlags::INDIRECT_BUFFER
                | vk::BufferUsageFlags::TRANSFER_SRC
                | vk::BufferUsageFlags::TRANSFER_DST,
        );
        // SAFETY: the device is alive; the size is above 0, by the caller's promise, and at most the device's limit, as was just checked.
        let handle =
            unsafe { shared.device.create_buffer(&info, None) }.map_err(|error| failed("making a buffer", error))?;
        // From here on, dropping the buffer destroys the handle.
        let mut buffer = Self { shared: shared.clone(), handle, allocation: None, owner: None, bytes };
        // SAFETY: the handle was just made by this device.
        let mut requirements = unsafe { shared.device.get_buffer_memory_requirements(handle) };
        // What programs hold of pinned memory is aligned for any element. The mapping of a block begins at a multiple of 64 at least, as Vulkan says.
        requirements.alignment = requirements.alignment.max(HOST_ALIGNMENT);
        let wanted = AllocationCreateDesc {
            name: label,
            requirements,
            location,
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let allocation = shared.allocator(|allocator| allocator.allocate(&wanted))?.map_err(|error| match error {
            AllocationError::OutOfMemory => no_memory(),
            // So the allocator tells of the driver's errors but that the device's memory is full.
            AllocationError::Internal(message) if message.contains("ERROR_OUT_OF_HOST_MEMORY") => no_memory(),
            other => driver("allocating memory", &other),
        })?;
        // SAFETY: the allocation fits the buffer's requirements and is bound once; both live until `drop`.
        let bound = unsafe { shared.device.bind_buffer_memory(handle, allocation.memory(), allocation.offset()) };
        buffer.allocation = Some(allocation);
        bound.map_err(|error| failed("binding memory to a buffer", error))?;
        shared.name_object(handle, label);
        Ok(buffer)
    }

    /// Where the host sees it, and what it writes there the device sees, and the other way round: nobody flushes caches here. Memory for the device alone may be mapped by chance, and lack that.
    fn mapped(&self) -> Option<*mut u8> {
        let is_coherent =
            |allocation: &&Allocation| allocation.memory_properties().contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        let allocation = self.allocation.as_ref().filter(is_coherent)?;
        allocation.mapped_ptr().map(|pointer| pointer.as_ptr().cast())
    }

    /// Whether the host can write to it as soon as trefoil's submissions are done. On a device of the program's it cannot: the program's commands may use it too, of which the queue alone knows.
    pub(crate) fn is_writable(&self) -> bool {
        self.mapped().is_some() && !self.shared.connection.is_shared()
    }

    /// Whether the host can read it so, and so many bytes faster than the device copies them to memory that the host has cached.
    pub(crate) fn is_readable(&self, bytes: usize) -> bool {
        let is_cached =
            |allocation: &Allocation| allocation.memory_properties().contains(vk::MemoryPropertyFlags::HOST_CACHED);
        self.is_writable() && (bytes <= UNCACHED_READ || self.allocation.as_ref().is_some_and(is_cached))
    }

    /// Where the host sees a range of it.
    pub(crate) fn address(&self, offset: u64, length: usize) -> Result<*mut u8> {
        let end = offset.checked_add(length as u64);
        match self.mapped() {
            // The end is within the mapping, hence the offset fits the address space.
            Some(base) if end.is_some_and(|end| end <= self.bytes) => Ok(base.wrapping_add(offset as usize)),
            _ => Err(self.shared.state.driver("reaching a buffer from the host", "the range is not mapped")),
        }
    }

    /// Copies `data` to it. The GPU must not be using these bytes, or callers get a mixture.
    pub(crate) fn write_host(&self, offset: u64, data: &[u8]) -> Result<()> {
        let to = self.address(offset, data.len())?;
        // SAFETY: `address` checked that the range is within the mapping, which lives as long as `self`; references point only into pinned buffers, which are never written so.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
        Ok(())
    }

    /// Copies from it. The GPU must be done with writing these bytes, or callers get a mixture.
    pub(crate) fn read_host(&self, offset: u64, data: &mut [u8]) -> Result<()> {
        let from = self.address(offset, data.len())?;
        // SAFETY: as in `write_host`.
        unsafe { std::ptr::copy_nonoverlapping(from.cast_const(), data.as_mut_ptr(), data.len()) };
        Ok(())
    }
}

impl Drop for RawBuffer {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        // SAFETY: whoever submits work holds the buffers that it uses until the work is done.
        unsafe { self.shared.device.destroy_buffer(self.handle, None) };
        if let Some(allocation) = self.allocation.take() {
            // A failure here would mean a foreign allocation, and there is nobody to tell.
            let _ = self.shared.allocator(|allocator| allocator.free(allocation));
        }
    }
}

/// A read past the caches takes about a microsecond for each 16 bytes; a copy by the device, its barriers and the recording of both take as long as some of them.
const UNCACHED_READ: usize = 128;

/// Memory that callers hold.
#[derive(Debug)]
pub(crate) struct VulkanMemory {
    /// The buffer, padded as bindings need it.
    pub(crate) buffer: RawBuffer,
    bytes: u64,
}

impl VulkanMemory {
    /// Makes memory of `bytes` bytes, whose size was checked.
    pub(crate) fn new(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        let location = if room(bytes) <= shared.traits.direct_bytes {
            // gpu-allocator prefers memory that is on the device as well.
            MemoryLocation::CpuToGpu
        } else {
            MemoryLocation::GpuOnly
        };
        Self::at(shared, location, bytes, label)
    }

    /// The same, of memory that the host has cached.
    pub(crate) fn near_host(shared: &Arc<Shared>, bytes: u64, label: &str) -> Result<Self> {
        Self::at(shared, MemoryLocation::GpuToCpu, bytes, label)
    }

    fn at(shared: &Arc<Shared>, location: MemoryLocation, bytes: u64, label: &str) -> Result<Self> {
        let buffer = RawBuffer::new(shared, room(bytes), location, label)?;
        shared.state.counters.allocated(bytes);
        Ok(Self { buffer, bytes })
    }

    /// A buffer of the program's own, which was checked. `owner` is held as long as it is used.
    pub(crate) fn adopt(
        shared: &Arc<Shared>,
        handle: vk::Buffer,
        bytes: u64,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let buffer = RawBuffer { shared: shared.clone(), handle, allocation: None, owner: Some(owner), bytes };
        Self { buffer, bytes }
    }

    /// The memory behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(memory: &'a Arc<dyn Memory>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(memory.as_any(), "a piece of memory")
    }
}

impl Drop for VulkanMemory {
    fn drop(&mut self) {
        if self.buffer.owner.is_none() {
            self.buffer.shared.state.counters.freed(self.bytes);
        }
    }
}

impl Memory for VulkanMemory {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn room(&self) -> u64 {
        self.buffer.bytes
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.buffer.shared.state.id
    }

    fn shares(&self, other: &dyn Memory) -> bool {
        let other: Option<&Self> = other.as_any().downcast_ref();
        other.is_some_and(|other| self.device() == other.device() && self.buffer.handle == other.buffer.handle)
    }
}

/// Which way a staging buffer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The host writes, the device reads.
    Upload,
    /// The device writes, the host reads.
    Download,
}

/// A buffer that the host sees.
#[derive(Debug)]
pub(crate) struct Staging {
    /// The buffer.
    pub(crate) buffer: RawBuffer,
    direction: Direction,
}

/// Staging buffers that are free for use.
#[derive(Debug, Default)]
pub(crate) struct StagingPool {
    free: Vec<Staging>,
    bytes: u64,
}

impl StagingPool {
    /// A staging buffer of at least `bytes` bytes.
    pub(crate) fn take(&mut self, shared: &Arc<Shared>, bytes: u64, direction: Direction) -> Result<Staging> {
        let fits = |staging: &Staging| staging.direction == direction && staging.buffer.bytes >= bytes;
        let best = self.free.iter().enumerate().filter(|(_, s)| fits(s)).min_by_key(|(_, s)| s.buffer.bytes);
        if let Some((at, _)) = best {
            let staging = self.free.swap_remove(at);
            self.bytes -= staging.buffer.bytes;
            return Ok(staging);
        }
        let (location, label) = match direction {
            Direction::Upload => (MemoryLocation::CpuToGpu, "staging for uploads"),
            Direction::Download => (MemoryLocation::GpuToCpu, "staging for downloads"),
        };
        let size = bytes.max(STAGING_MINIMUM).checked_next_power_of_two().unwrap_or(bytes);
        Ok(Staging { buffer: RawBuffer::new(shared, size, location, label)?, direction })
    }

    /// Takes a staging buffer back that the device is done with.
    pub(crate) fn give(&mut self, staging: Staging) {
        if self.bytes + staging.buffer.bytes <= STAGING_KEPT {
            self.bytes += staging.buffer.bytes;
            self.free.push(staging);
        }
    }
}
