//! Reads that are taken later: the copy is submitted at once, and the program takes it when the device is done, such as some frames later.
//!
//! A [`Readback`] is no future: not every driver calls a program when a copy is done, so that somebody would have to wait or to ask all the time. Programs ask [`Readback::is_ready`] where they come by anyway, such as
//! once a frame.

use std::fmt;
use std::marker::PhantomData;

use crate::buffer::{Buffer, BufferSlice, expect_length, label, part};
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;

/// A read that was submitted and not taken yet ([`Backend::read_later`](crate::device::Backend::read_later)), for device crates.
///
/// It holds what it needs of the device. One that goes before it was taken does no harm, and what it took is freed when the device is done with it.
pub trait PendingRead: Send + Sync + fmt::Debug {
    /// Whether the bytes are there. It never waits for the device.
    ///
    /// # Errors
    /// The device failed.
    fn is_ready(&self) -> Result<bool>;

    /// Waits for the bytes and copies them to `data`.
    ///
    /// # Errors
    /// `data` has another length than the range that is read, or the device failed.
    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()>;
}

/// Elements of a buffer as they were when [`Buffer::read_later`] or [`BufferSlice::read_later`] was called, on their way to the host.
///
/// It keeps the device open, and the buffer may go. Any number may be under way, and be taken in any order and on any thread. Dropping one that nobody takes is fine: it waits for nothing.
///
/// ```
/// # use trefoil_dsl::{Buffer, Readback, Result};
/// use std::collections::VecDeque;
///
/// /// Once a frame: begins to read what this frame made, and takes what has come of earlier ones.
/// fn newest(made: &Buffer<f32>, under_way: &mut VecDeque<Readback<f32>>) -> Result<Option<Vec<f32>>> {
///     under_way.push_back(made.read_later()?);
///     let mut newest = None;
///     while under_way.front().map_or(Ok(false), Readback::is_ready)? {
///         newest = under_way.pop_front().map(Readback::wait).transpose()?;
///     }
///     Ok(newest)
/// }
/// ```
#[derive(Debug)]
#[must_use = "what is read is there to be taken"]
pub struct Readback<T: Element> {
    device: Device,
    /// None where there are no elements.
    pending: Option<Box<dyn PendingRead>>,
    /// The buffer's length, for errors.
    of: usize,
    first: usize,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Begins to copy all of it to the host, and does not wait for the device; [`BufferSlice::read_later`] copies a part. What was submitted before shows in it, and what comes later does not.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device) -> trefoil_dsl::Result<()> {
    /// let x = device.buffer(&[1.0f32, 2.0, 3.0])?;
    /// let before = x.read_later()?;
    /// x.write(&[0.0; 3])?;
    /// assert_eq!(before.wait()?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no room for the copy, or the device failed.
    pub fn read_later(&self) -> Result<Readback<T>> {
        BufferSlice::from(self).read_later()
    }
}

impl<T: Element> BufferSlice<'_, T> {
    /// Begins to copy these elements to the host, and does not wait for the device. What was submitted before shows in them, and what comes later does not.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device) -> trefoil_dsl::Result<()> {
    /// let mut x = device.buffer(&[0u32, 1, 2, 3])?;
    /// let last = x.slice(2..)?.read_later()?;
    /// x.slice_mut(2..3)?.write(&[20])?;
    /// drop(x);
    /// assert_eq!(last.wait()?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no room for the copy, or the device failed.
    pub fn read_later(self) -> Result<Readback<T>> {
        let buffer = self.buffer();
        let device = buffer.device().clone();
        let pending = if self.is_empty() {
            None
        } else {
            Some(device.backend().read_later(&buffer.range(self.first(), self.len()))?)
        };
        Ok(Readback { device, pending, of: buffer.len(), first: self.first(), len: self.len(), element: PhantomData })
    }
}

impl<T: Element> Readback<T> {
    /// How many elements are read.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the elements are there, so that [`Readback::wait`] has only to hand them over. It never waits for the device, and becomes true without anybody who waits.
    ///
    /// ```
    /// # use trefoil_dsl::Device;
    /// # fn of(device: &Device, draw: impl Fn()) -> trefoil_dsl::Result<()> {
    /// let read = device.buffer(&[1u32, 2])?.read_later()?;
    /// while !read.is_ready()? {
    ///     draw();
    /// }
    /// assert_eq!(read.wait()?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The device was lost.
    pub fn is_ready(&self) -> Result<bool> {
        self.pending.as_ref().map_or(Ok(true), |pending| pending.is_ready())
    }

    /// Waits for the elements. Where kernels assert or print, it also waits for all that was submitted since, and tells of that as every call does that waits ([`Device::reports`]).
    ///
    /// # Errors
    /// The device failed, or a kernel asserted what does not hold.
    pub fn wait(self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        self.wait_into(&mut data)?;
        Ok(data)
    }

    /// As [`Readback::wait`], to memory of the host that is there already.
    ///
    /// # Errors
    /// `into` has another length, the device failed, or a kernel asserted what does not hold.
    pub fn wait_into(self, into: &mut [T]) -> Result<()> {
        expect_length(into.len(), self.len, || self.label())?;
        let Some(pending) = self.pending else { return Ok(()) };
        pending.finish(bytemuck::cast_slice_mut(into))?;
        self.device.hear()
    }

    /// What it is called in errors.
    fn label(&self) -> String {
        if self.len == self.of { label::<T>(self.of) } else { part::<T>(self.of, self.first, self.len) }
    }
}
