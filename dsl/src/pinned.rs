//! Memory of the host that a device reaches by itself, so that what programs keep there is moved without a copy on the way.
//!
//! A [`PinnedBuffer`] is used as the slice that it is: whatever takes a slice takes it, and a device finds out for itself that it made that memory. On CUDA it is page-locked memory of the driver, on Vulkan a buffer that the host sees. wgpu
//! gives no such memory to keep, and the CPU device has no other side to reach: there it is memory like any other.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::{Pod, Zeroable};

use crate::device::Device;
use crate::error::{Error, Result};

/// The bytes of a [`PinnedBuffer`], for device crates: initialised, aligned for any element, and freed when it goes.
///
/// No device uses them but during a call that was handed them.
pub trait Pinned: Send + Sync + fmt::Debug {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, to be written.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Elements of `T` on the host, in memory that the device reaches by itself. Programs own it, as they own a `Vec`.
///
/// ```
/// # use trefoil_dsl::device::Device;
/// # fn of(device: &Device) -> trefoil_dsl::error::Result<()> {
/// let mut frame = device.pinned::<f32>(1 << 20)?;
/// frame.fill(0.5);
/// let on_device = device.buffer(&frame)?;
/// on_device.read_into(&mut frame)?;
/// # Ok(())
/// # }
/// ```
pub struct PinnedBuffer<T: Pod> {
    memory: Box<dyn Pinned>,
    len: usize,
    element: PhantomData<T>,
}

impl Device {
    /// `len` zeros in memory of the host that the device reaches by itself.
    ///
    /// Such memory is taken from the system for good, page by page, and making it takes long: make it once and use it again.
    ///
    /// # Errors
    /// There is no room for it, or the driver does not make it.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let label = format!("pinned buffer of {len} {}", std::any::type_name::<T>());
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or_else(|| self.properties().out_of_memory(&label, u64::MAX))?;
        let memory = self.backend().pin(bytes, &label)?;
        let usable = bytemuck::try_cast_slice::<_, T>(memory.bytes()).is_ok_and(|elements| elements.len() == len);
        if !usable {
            let device = self.properties().name.clone();
            let message = format!("{label} was given {} bytes at {:p}", memory.bytes().len(), memory.bytes());
            return Err(Error::Driver { device, call: "making pinned memory", message });
        }
        Ok(PinnedBuffer { memory, len, element: PhantomData })
    }
}

impl<T: Pod> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.memory.bytes())
    }
}

impl<T: Pod> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.memory.bytes_mut())
    }
}

impl<T: Pod> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} of {})", self.len, std::any::type_name::<T>())
    }
}

/// What [`crate::device::Backend::pin`] gives on devices that have nothing better: memory like any other.
#[derive(Debug)]
pub(crate) struct Ordinary {
    blocks: Vec<Block>,
    bytes: usize,
}

/// Aligned for every element of a kernel; so is the address of no blocks.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Block([u8; 64]);

impl Ordinary {
    /// So many zeros; `None` if there is no room for them.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let count = bytes.div_ceil(size_of::<Block>());
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(count).ok()?;
        blocks.resize(count, Block::zeroed());
        Some(Self { blocks, bytes })
    }
}

impl Pinned for Ordinary {
    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.blocks)[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.blocks)[..self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_like_any_other() {
        let mut memory = Ordinary::new(5).unwrap();
        memory.bytes_mut().copy_from_slice(&[1, 2, 3, 4, 5]);
        assert_eq!(memory.bytes(), [1, 2, 3, 4, 5]);
        assert!(Ordinary::new(0).unwrap().bytes().is_empty());
        assert!(Ordinary::new(usize::MAX).is_none());
        for bytes in [0, 1, 64, 1000] {
            assert!(Ordinary::new(bytes).unwrap().bytes().as_ptr().addr().is_multiple_of(64), "{bytes} bytes");
        }
    }
}
