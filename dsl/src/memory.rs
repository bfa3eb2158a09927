//! Kernel-side memory: workgroup arrays, views, and vector access to slices.

use std::ops::{Deref, DerefMut};

use crate::element::Element;
use crate::vector::{Vec2, Vec4};

/// Memory that the invocations of a workgroup share, made by [`workgroup_array`]; used as a slice.
#[derive(Debug)]
pub struct WorkgroupArray<T>(Vec<T>);

/// An array of `length` elements in workgroup memory: `let mut tile = workgroup_array::<f32>(256);`.
///
/// It is one variable of the kernel, wherever the call stands; its contents are unspecified until written (zeros on the host).
/// The length is made of literals, constants and const generics.
pub fn workgroup_array<T: bytemuck::Zeroable>(length: usize) -> WorkgroupArray<T> {
    WorkgroupArray(std::iter::repeat_with(T::zeroed).take(length).collect())
}

impl<T> Deref for WorkgroupArray<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for WorkgroupArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// Vector access to slices of scalars: `x.vec4(i)` is elements `4 * i..4 * i + 4`.
pub trait SliceExt<T: Element> {
    /// Elements `2 * i` and `2 * i + 1`.
    fn vec2(&self, i: usize) -> Vec2<T>;
    /// Elements `4 * i..4 * i + 4`.
    fn vec4(&self, i: usize) -> Vec4<T>;
    /// Writes elements `2 * i` and `2 * i + 1`.
    fn set_vec2(&mut self, i: usize, value: Vec2<T>);
    /// Writes elements `4 * i..4 * i + 4`.
    fn set_vec4(&mut self, i: usize, value: Vec4<T>);
}

impl<T: Element> SliceExt<T> for [T] {
    fn vec2(&self, i: usize) -> Vec2<T> {
        Vec2::new(self[2 * i], self[2 * i + 1])
    }

    fn vec4(&self, i: usize) -> Vec4<T> {
        Vec4::new(self[4 * i], self[4 * i + 1], self[4 * i + 2], self[4 * i + 3])
    }

    fn set_vec2(&mut self, i: usize, value: Vec2<T>) {
        self[2 * i..2 * i + 2].copy_from_slice(&value.to_array());
    }

    fn set_vec4(&mut self, i: usize, value: Vec4<T>) {
        self[4 * i..4 * i + 4].copy_from_slice(&value.to_array());
    }
}

/// A slice seen as `R` axes, each with an extent and a stride: what `&View<T, R>` and `&mut View<T, R>` are in a kernel.
///
/// A launch takes a [`crate::buffer::BufferView`] for it. On the host it owns its elements, for tests.
#[derive(Clone, Debug)]
pub struct View<T: Element, const R: usize> {
    elements: Vec<T>,
    extents: [usize; R],
    strides: [usize; R],
}

impl<T: Element, const R: usize> View<T, R> {
    /// A view of `elements`; for tests on the host. Strides are counted in elements.
    pub fn new(elements: Vec<T>, extents: [usize; R], strides: [usize; R]) -> Self {
        Self { elements, extents, strides }
    }

    fn position(&self, index: [usize; R]) -> usize {
        index.iter().zip(self.strides).map(|(i, s)| i * s).sum()
    }

    /// The element at an index.
    pub fn at(&self, index: [usize; R]) -> T {
        self.elements[self.position(index)]
    }

    /// Writes the element at an index.
    pub fn set(&mut self, index: [usize; R], value: T) {
        let position = self.position(index);
        self.elements[position] = value;
    }

    /// How many elements there are along an axis.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents[axis]
    }

    /// From one element to the next along an axis.
    pub fn stride(&self, axis: usize) -> usize {
        self.strides[axis]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_move_vectors() {
        let mut tile = workgroup_array::<f32>(8);
        tile.set_vec4(1, Vec4::new(1.0, 2.0, 3.0, 4.0));
        tile.set_vec2(0, Vec2::splat(9.0));
        assert_eq!(tile.vec2(3), Vec2::new(3.0, 4.0));
        assert_eq!(&tile[..], [9.0, 9.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(workgroup_array::<crate::atomic::Atomic<u32>>(3)[2].add(1), 0);
    }

    #[test]
    fn views_follow_their_strides() {
        let mut transposed = View::new(vec![1u32, 2, 3, 4, 5, 6], [3, 2], [1, 3]);
        assert_eq!(transposed.at([2, 1]), 6);
        transposed.set([0, 1], 0);
        assert_eq!(transposed.at([0, 1]), 0);
        assert_eq!((transposed.extent(0), transposed.stride(1)), (3, 3));
    }
}
