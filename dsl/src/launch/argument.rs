//! What launches take for the slices and views of a kernel.

use crate::buffer::{Buffer, BufferSlice, BufferSliceMut, BufferView, BufferViewMut};
use crate::element::Element;

/// What a launch takes for a kernel's `&[T]`: `&buffer`, or a slice of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `&Buffer<{T}>`",
    label = "a `&Buffer<{T}>` or a slice of one is expected"
)]
pub trait ReadBuffer<'a, T: Element> {
    /// As a slice.
    fn slice(self) -> BufferSlice<'a, T>;
}

impl<'a, T: Element> ReadBuffer<'a, T> for &'a Buffer<T> {
    fn slice(self) -> BufferSlice<'a, T> {
        self.into()
    }
}

impl<'a, T: Element> ReadBuffer<'a, T> for BufferSlice<'a, T> {
    fn slice(self) -> BufferSlice<'a, T> {
        self
    }
}

/// What a launch takes for a kernel's `&mut [T]` and `&[Atomic<T>]`: `&mut buffer`, or a slice of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `&mut Buffer<{T}>`",
    label = "a `&mut Buffer<{T}>` or a slice of one is expected"
)]
pub trait WriteBuffer<'a, T: Element> {
    /// As a slice.
    fn slice_mut(self) -> BufferSliceMut<'a, T>;
}

impl<'a, T: Element> WriteBuffer<'a, T> for &'a mut Buffer<T> {
    fn slice_mut(self) -> BufferSliceMut<'a, T> {
        self.into()
    }
}

impl<'a, T: Element> WriteBuffer<'a, T> for BufferSliceMut<'a, T> {
    fn slice_mut(self) -> BufferSliceMut<'a, T> {
        self
    }
}

/// What a launch takes for a kernel's `&View<T, R>`: a [`BufferView`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `BufferView<{T}, {R}>`",
    label = "a `BufferView<{T}, {R}>` is expected"
)]
pub trait ReadView<'a, T: Element, const R: usize> {
    /// As a view.
    fn view(self) -> BufferView<'a, T, R>;
}

impl<'a, T: Element, const R: usize> ReadView<'a, T, R> for BufferView<'a, T, R> {
    fn view(self) -> BufferView<'a, T, R> {
        self
    }
}

/// What a launch takes for a kernel's `&mut View<T, R>`: a [`BufferViewMut`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `BufferViewMut<{T}, {R}>`",
    label = "a `BufferViewMut<{T}, {R}>` is expected"
)]
pub trait WriteView<'a, T: Element, const R: usize> {
    /// As a view.
    fn view_mut(self) -> BufferViewMut<'a, T, R>;
}

impl<'a, T: Element, const R: usize> WriteView<'a, T, R> for BufferViewMut<'a, T, R> {
    fn view_mut(self) -> BufferViewMut<'a, T, R> {
        self
    }
}
