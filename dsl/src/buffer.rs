//! Typed device memory.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::device::{Device, Memory, MemoryRange};
use crate::element::Element;
use crate::error::{Error, Result};

/// `len` elements of `T` on a device.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    device: Device,
    memory: Arc<dyn Memory>,
    len: usize,
    element: PhantomData<T>,
}

/// Elements `first..first + len` of a buffer.
#[derive(Debug)]
pub struct BufferSlice<'a, T: Element> {
    buffer: &'a Buffer<T>,
    first: usize,
    len: usize,
}

impl<T: Element> Clone for BufferSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for BufferSlice<'_, T> {}

impl Device {
    /// A buffer of `len` elements whose contents are unspecified.
    ///
    /// # Errors
    /// It is larger than the device allows, or memory ran out.
    pub fn uninit<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let name = std::any::type_name::<T>();
        let label = format!("buffer of {len} {}", name.rsplit("::").next().unwrap_or(name));
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| Error::TooLarge {
            what: label.clone(),
            bytes: u64::MAX,
            limit: self.limits().max_allocation_bytes,
            device: self.properties().name.clone(),
        })?;
        let memory = self.backend().allocate(bytes, &label)?;
        Ok(Buffer { device: self.clone(), memory, len, element: PhantomData })
    }

    /// A buffer with a copy of `data`.
    ///
    /// # Errors
    /// As [`Device::uninit`], or the copy failed.
    pub fn buffer<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.uninit(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// As [`Device::buffer`].
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.uninit(len)?;
        buffer.write(&vec![T::zeroed(); len])?;
        Ok(buffer)
    }
}

impl<T: Element> Buffer<T> {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All of it, as raw memory.
    pub fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    /// Overwrites all of it.
    ///
    /// # Errors
    /// `data` has another length, or the device failed.
    pub fn write(&self, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            return Err(Error::WrongLength {
                what: "buffer".to_owned(),
                given: data.len() as u64,
                expected: self.len as u64,
            });
        }
        if data.is_empty() {
            return Ok(());
        }
        self.device.backend().write(&self.all(), bytemuck::cast_slice(data))
    }

    /// Copies all of it to the host.
    ///
    /// # Errors
    /// The device failed.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        if !data.is_empty() {
            self.device.backend().read(&self.all(), bytemuck::cast_slice_mut(&mut data))?;
        }
        Ok(data)
    }

    /// Elements `range` of it.
    ///
    /// # Errors
    /// The range leaves the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>> {
        let first = match range.start_bound() {
            Bound::Included(&first) => first,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if first > end || end > self.len {
            return Err(Error::OutOfRange {
                what: "buffer".to_owned(),
                first: first as u64,
                count: end.saturating_sub(first) as u64,
                length: self.len as u64,
            });
        }
        Ok(BufferSlice { buffer: self, first, len: end - first })
    }

    fn all(&self) -> MemoryRange {
        MemoryRange { memory: self.memory.clone(), offset: 0, bytes: (self.len * size_of::<T>()) as u64 }
    }
}

impl<'a, T: Element> BufferSlice<'a, T> {
    /// The buffer.
    pub fn buffer(self) -> &'a Buffer<T> {
        self.buffer
    }

    /// The first element.
    pub fn first(self) -> usize {
        self.first
    }

    /// How many elements.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for BufferSlice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self { buffer, first: 0, len: buffer.len }
    }
}
