//! Typed device memory.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::device::{Command, CopyCommand, Device, Memory, MemoryRange};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::support::check::{BINDING_MULTIPLE, COPY_MULTIPLE};

/// So many bytes of zeros are written at once.
const ZEROS: usize = 1 << 24;

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

/// Elements `first..first + len` of a buffer, for a kernel that writes them.
#[derive(Debug)]
pub struct BufferSliceMut<'a, T: Element> {
    buffer: &'a Buffer<T>,
    first: usize,
    len: usize,
}

/// Elements of a buffer seen as `R` axes, each with an extent and a stride: what a launch takes for a kernel's `&View<T, R>`.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'a, T: Element, const R: usize> {
    slice: BufferSlice<'a, T>,
    extents: [usize; R],
    strides: [usize; R],
}

/// A [`BufferView`] that a kernel writes: what a launch takes for `&mut View<T, R>`.
#[derive(Debug)]
pub struct BufferViewMut<'a, T: Element, const R: usize> {
    slice: BufferSliceMut<'a, T>,
    extents: [usize; R],
    strides: [usize; R],
}

impl Device {
    /// A buffer of `len` elements whose contents are unspecified.
    ///
    /// # Errors
    /// It is larger than the device allows, or memory ran out.
    pub fn uninit<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let label = label::<T>(len);
        // Of a large element there is one even if nobody asks for it, since WGSL binds no less.
        let count = if size_of::<T>() as u64 > BINDING_MULTIPLE { len.max(1) } else { len };
        let bytes = (count as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| Error::TooLarge {
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

    /// A buffer of `len` elements in memory that is there already, from its first byte on, with the contents that it has: memory of the program's own (`trefoil_wgpu::memory`, `trefoil_vulkan::memory`,
    /// `trefoil_cuda::memory`), or that of another buffer ([`Buffer::memory`]), seen as elements of another type. Launches, reads and writes take it as any other buffer.
    ///
    /// It keeps the memory alive. [`Buffer::slice`] gives elements that begin at a later byte.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device) -> trefoil_dsl::Result<()> {
    /// let numbers = device.buffer(&[1.0f32, -2.0])?;
    /// let bits = device.buffer_of::<u32>(numbers.memory(), 2)?;
    /// assert_eq!(bits.read()?, [0x3f80_0000, 0xc000_0000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The memory is another device's, or has fewer bytes than `len` elements take.
    pub fn buffer_of<T: Element>(&self, memory: &Arc<dyn Memory>, len: usize) -> Result<Buffer<T>> {
        self.check_owner(memory.device(), &format!("the memory of a {}", label::<T>(len)))?;
        // What is behind the last element, up to the multiple that bindings cover, memory has room for as well.
        let (size, bytes) = (size_of::<T>() as u64, memory.bytes());
        if (len as u64).checked_mul(size).is_none_or(|wanted| wanted > bytes) {
            return Err(Error::OutOfRange {
                what: format!("{} in memory of {bytes} bytes", label::<T>(len)),
                first: 0,
                count: len as u64,
                length: bytes.checked_div(size).unwrap_or(0),
            });
        }
        Ok(Buffer { device: self.clone(), memory: memory.clone(), len, element: PhantomData })
    }

    /// A buffer of `len` zeros. The zeros are written from the host; where a kernel overwrites every element, [`Device::uninit`] costs nothing.
    ///
    /// # Errors
    /// As [`Device::buffer`].
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let buffer: Buffer<T> = self.uninit(len)?;
        let bytes = buffer.all().bytes;
        let zeros = vec![0; ZEROS.min(usize::try_from(bytes).unwrap_or(ZEROS))];
        let mut offset = 0;
        while offset < bytes {
            let range = MemoryRange { bytes: (bytes - offset).min(ZEROS as u64), offset, ..buffer.all() };
            self.backend().write(&range, &zeros[..range.bytes as usize])?;
            offset += range.bytes;
        }
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

    /// Overwrites all of it; [`BufferSliceMut::write`] overwrites a part.
    ///
    /// # Errors
    /// `data` has another length, or the device failed.
    pub fn write(&self, data: &[T]) -> Result<()> {
        self.expect_length(data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        self.device.backend().write(&self.all(), bytemuck::cast_slice(data))
    }

    /// Overwrites all of it with elements of the same device, by a copy there, without waiting for it; [`BufferSliceMut::copy_from`] overwrites a part.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device) -> trefoil_dsl::Result<()> {
    /// let x = device.buffer(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = device.uninit::<f32>(3)?;
    /// y.copy_from(&x)?;
    /// y.slice_mut(..1)?.copy_from(x.slice(2..)?)?;
    /// assert_eq!(y.read()?, [3.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`BufferSliceMut::copy_from`].
    pub fn copy_from<'from>(&mut self, from: impl Into<BufferSlice<'from, T>>) -> Result<()> {
        let what = label::<T>(self.len);
        copy::<T>(from.into(), self.into(), &what)
    }

    /// Copies all of it to the host and waits for that; [`BufferSlice::read`] copies a part, and [`Buffer::read_later`] does not wait.
    ///
    /// # Errors
    /// The device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// Copies all of it to memory of the host that is there already, as a [`crate::PinnedBuffer`] may be.
    ///
    /// # Errors
    /// `into` has another length, the device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn read_into(&self, into: &mut [T]) -> Result<()> {
        self.expect_length(into.len())?;
        if into.is_empty() {
            return Ok(());
        }
        self.device.backend().read(&self.all(), bytemuck::cast_slice_mut(into))?;
        self.device.hear()
    }

    /// Elements `range` of it.
    ///
    /// # Errors
    /// The range leaves the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<'_, T>> {
        let (first, len) = within(self.len, range, || label::<T>(self.len))?;
        Ok(BufferSlice { buffer: self, first, len })
    }

    /// Elements `range` of it, to be written.
    ///
    /// # Errors
    /// The range leaves the buffer.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferSliceMut<'_, T>> {
        let (first, len) = within(self.len, range, || label::<T>(self.len))?;
        Ok(BufferSliceMut { buffer: self, first, len })
    }

    fn expect_length(&self, given: usize) -> Result<()> {
        expect_length(given, self.len, || label::<T>(self.len))
    }

    fn all(&self) -> MemoryRange {
        self.range(0, self.len)
    }

    /// The bytes of some elements.
    pub(crate) fn range(&self, first: usize, len: usize) -> MemoryRange {
        let bytes = |elements: usize| (elements * size_of::<T>()) as u64;
        MemoryRange { memory: self.memory.clone(), offset: bytes(first), bytes: bytes(len) }
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

    /// Copies these elements to the host.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device) -> trefoil_dsl::Result<()> {
    /// let mut x = device.buffer(&[0u32, 1, 2, 3])?;
    /// x.slice_mut(1..3)?.write(&[10, 20])?;
    /// assert_eq!(x.slice(2..)?.read()?, [20, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn read(self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// Copies these elements to memory of the host that is there already, as a [`crate::PinnedBuffer`] may be.
    ///
    /// # Errors
    /// `into` has another length, the device failed, or a kernel asserted what does not hold ([`Device::reports`]).
    pub fn read_into(self, into: &mut [T]) -> Result<()> {
        expect_length(into.len(), self.len, || part::<T>(self.buffer.len, self.first, self.len))?;
        if into.is_empty() {
            return Ok(());
        }
        let range = self.buffer.range(self.first, self.len);
        self.buffer.device.backend().read(&range, bytemuck::cast_slice_mut(into))?;
        self.buffer.device.hear()
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for BufferSlice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self { buffer, first: 0, len: buffer.len }
    }
}

/// What a buffer is called, on the device and in errors.
pub(crate) fn label<T>(len: usize) -> String {
    let name = std::any::type_name::<T>();
    format!("buffer of {len} {}", name.rsplit("::").next().unwrap_or(name))
}

/// What a part of a buffer is called in errors.
pub(crate) fn part<T>(buffer: usize, first: usize, len: usize) -> String {
    format!("elements {first}..{} of a {}", first + len, label::<T>(buffer))
}

/// Copies elements to those that `what` names, on their device.
fn copy<T: Element>(from: BufferSlice<'_, T>, to: BufferSliceMut<'_, T>, what: &str) -> Result<()> {
    expect_length(from.len, to.len, || what.to_owned())?;
    let device = &to.buffer.device;
    let label = format!("copy to {what}");
    device.check_owner(from.buffer.device.id(), &format!("the source of `{label}`"))?;
    if from.is_empty() {
        return Ok(());
    }
    let (from, to) = (from.buffer.range(from.first, from.len), to.buffer.range(to.first, to.len));
    // Behind the last element of memory is padding, so that its last word is copied whole.
    let at_words = [&from, &to].iter().all(|range| range.offset.is_multiple_of(COPY_MULTIPLE));
    let bytes = if at_words && to.offset + to.bytes == to.memory.bytes() {
        to.bytes.next_multiple_of(COPY_MULTIPLE)
    } else {
        to.bytes
    };
    let command =
        CopyCommand { from: MemoryRange { bytes, ..from }, to: MemoryRange { bytes, ..to }, label: label.into() };
    device.backend().execute(&[Command::Copy(command)])
}

/// Checks that as many elements were given as `what` names.
pub(crate) fn expect_length(given: usize, expected: usize, what: impl FnOnce() -> String) -> Result<()> {
    if given == expected {
        return Ok(());
    }
    Err(Error::WrongLength { what: what(), given: given as u64, expected: expected as u64 })
}

/// First element and length of a range of the `length` elements of what `what` names.
fn within(length: usize, range: impl RangeBounds<usize>, what: impl FnOnce() -> String) -> Result<(usize, usize)> {
    let first = match range.start_bound() {
        Bound::Included(&first) => first,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => length,
    };
    if first > end || end > length {
        return Err(Error::OutOfRange {
            what: what(),
            first: first as u64,
            count: end.saturating_sub(first) as u64,
            length: length as u64,
        });
    }
    Ok((first, end - first))
}

impl<'a, T: Element> BufferSliceMut<'a, T> {
    /// The buffer.
    pub fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

    /// The first element.
    pub fn first(&self) -> usize {
        self.first
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements before `middle`, and those from there on.
    ///
    /// # Errors
    /// There are fewer than `middle` elements.
    pub fn split_at(self, middle: usize) -> Result<(Self, Self)> {
        let (_, len) = within(self.len, ..middle, || part::<T>(self.buffer.len, self.first, self.len))?;
        let (buffer, first) = (self.buffer, self.first);
        Ok((Self { buffer, first, len }, Self { buffer, first: first + len, len: self.len - len }))
    }

    /// The same elements, for one of several kernels that write them.
    pub fn reborrow(&mut self) -> BufferSliceMut<'_, T> {
        BufferSliceMut { buffer: self.buffer, first: self.first, len: self.len }
    }

    /// Overwrites these elements and no others.
    ///
    /// # Errors
    /// `data` has another length, or the device failed.
    pub fn write(&mut self, data: &[T]) -> Result<()> {
        expect_length(data.len(), self.len, || part::<T>(self.buffer.len, self.first, self.len))?;
        if data.is_empty() {
            return Ok(());
        }
        let range = self.buffer.range(self.first, self.len);
        self.buffer.device.backend().write(&range, bytemuck::cast_slice(data))
    }

    /// Overwrites these elements and no others with elements of the same device, by a copy there, without waiting for it. What is submitted or read later sees them.
    ///
    /// Devices copy words of 4 bytes: both ranges begin at a multiple of 4 bytes of their memory and are a multiple of 4 bytes long; one that is written up to the end of its memory may have any length. Elements whose size is a multiple of 4 bytes always fit.
    ///
    /// # Errors
    /// `from` has another length or belongs to another device; elements of other sizes do not begin or end at a word; both are parts of one piece of memory, and overlap or the device does not copy within one
    /// ([`Limits::shares_memory_within_dispatch`](crate::device::Limits::shares_memory_within_dispatch)); or the device failed.
    pub fn copy_from<'from>(&mut self, from: impl Into<BufferSlice<'from, T>>) -> Result<()> {
        let what = part::<T>(self.buffer.len, self.first, self.len);
        copy::<T>(from.into(), self.reborrow(), &what)
    }

    /// The same elements, to be read.
    pub fn shared(self) -> BufferSlice<'a, T> {
        BufferSlice { buffer: self.buffer, first: self.first, len: self.len }
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for BufferSliceMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        let len = buffer.len;
        Self { buffer, first: 0, len }
    }
}

impl<'a, T: Element, const R: usize> BufferView<'a, T, R> {
    /// A view of a slice, whose element at the index 0, 0, .. is the slice's first.
    ///
    /// # Errors
    /// An index within the extents leaves the slice.
    pub fn new(slice: impl Into<BufferSlice<'a, T>>, extents: [usize; R], strides: [usize; R]) -> Result<Self> {
        let slice = slice.into();
        reaches(slice.len, extents, strides)?;
        Ok(Self { slice, extents, strides })
    }

    /// A view whose last axis is contiguous, and every axis before it follows without a gap.
    ///
    /// # Errors
    /// There are fewer elements than the extents ask for.
    pub fn contiguous(slice: impl Into<BufferSlice<'a, T>>, extents: [usize; R]) -> Result<Self> {
        Self::new(slice, extents, contiguous(extents))
    }

    /// The elements that it is within.
    pub fn slice(&self) -> BufferSlice<'a, T> {
        self.slice
    }

    /// How many elements along each axis.
    pub fn extents(&self) -> [usize; R] {
        self.extents
    }

    /// From one element to the next along each axis.
    pub fn strides(&self) -> [usize; R] {
        self.strides
    }
}

impl<'a, T: Element, const R: usize> BufferViewMut<'a, T, R> {
    /// A view of a slice, whose element at the index 0, 0, .. is the slice's first.
    ///
    /// # Errors
    /// An index within the extents leaves the slice.
    pub fn new(slice: impl Into<BufferSliceMut<'a, T>>, extents: [usize; R], strides: [usize; R]) -> Result<Self> {
        let slice = slice.into();
        reaches(slice.len, extents, strides)?;
        Ok(Self { slice, extents, strides })
    }

    /// A view whose last axis is contiguous, and every axis before it follows without a gap.
    ///
    /// # Errors
    /// There are fewer elements than the extents ask for.
    pub fn contiguous(slice: impl Into<BufferSliceMut<'a, T>>, extents: [usize; R]) -> Result<Self> {
        Self::new(slice, extents, contiguous(extents))
    }

    /// The elements that it is within, to be written.
    pub fn slice_mut(&mut self) -> BufferSliceMut<'_, T> {
        self.slice.reborrow()
    }

    /// How many elements along each axis.
    pub fn extents(&self) -> [usize; R] {
        self.extents
    }

    /// From one element to the next along each axis.
    pub fn strides(&self) -> [usize; R] {
        self.strides
    }

    /// The same view, for one of several kernels that write it.
    pub fn reborrow(&mut self) -> BufferViewMut<'_, T, R> {
        BufferViewMut { slice: self.slice.reborrow(), extents: self.extents, strides: self.strides }
    }

    /// The same elements, to be read.
    pub fn shared(self) -> BufferView<'a, T, R> {
        BufferView { slice: self.slice.shared(), extents: self.extents, strides: self.strides }
    }
}

/// Strides of a contiguous view; where they overflow there is no such slice, which [`reaches`] finds.
fn contiguous<const R: usize>(extents: [usize; R]) -> [usize; R] {
    let mut strides = [1usize; R];
    for axis in (1..R).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(extents[axis]);
    }
    strides
}

/// Checks that every index within `extents` is an element of a slice of `length`.
fn reaches<const R: usize>(length: usize, extents: [usize; R], strides: [usize; R]) -> Result<()> {
    if extents.contains(&0) {
        return Ok(());
    }
    let last = extents
        .iter()
        .zip(strides)
        .try_fold(0usize, |sum, (extent, stride)| sum.checked_add((extent - 1).checked_mul(stride)?));
    match last {
        Some(last) if last < length => Ok(()),
        _ => Err(Error::OutOfRange {
            what: format!("a view of extents {extents:?} and strides {strides:?}"),
            first: 0,
            count: last.map_or(u64::MAX, |last| (last as u64).saturating_add(1)),
            length: length as u64,
        }),
    }
}
