//! Kernel-side memory: atomics, workgroup arrays, views, and vector access to slices.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::element::Element;
use crate::vector::{Vec2, Vec4};

/// The types that atomics hold: `u32`, `i32` and `f32`.
pub trait AtomicScalar: Element {
    /// As bits.
    #[doc(hidden)]
    fn to_word(self) -> u32;
    /// From bits.
    #[doc(hidden)]
    fn from_word(word: u32) -> Self;
    /// The sum; integers wrap.
    #[doc(hidden)]
    #[must_use]
    fn sum(self, other: Self) -> Self;
}

/// The atomics that have an order and bits: of `u32` and `i32`.
pub trait AtomicInteger: AtomicScalar + Ord {}

impl AtomicScalar for u32 {
    fn to_word(self) -> u32 {
        self
    }

    fn from_word(word: u32) -> Self {
        word
    }

    fn sum(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl AtomicScalar for i32 {
    fn to_word(self) -> u32 {
        self.cast_unsigned()
    }

    fn from_word(word: u32) -> Self {
        word.cast_signed()
    }

    fn sum(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl AtomicScalar for f32 {
    fn to_word(self) -> u32 {
        self.to_bits()
    }

    fn from_word(word: u32) -> Self {
        Self::from_bits(word)
    }

    fn sum(self, other: Self) -> Self {
        self + other
    }
}

impl AtomicInteger for u32 {}
impl AtomicInteger for i32 {}

/// A number that invocations change together. Every operation is relaxed; each but [`Atomic::store`] gives the value from before.
///
/// A parameter `&[Atomic<u32>]` of a kernel takes a `&mut Buffer<u32>` when it is launched.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Atomic<T: AtomicScalar> {
    word: AtomicU32,
    scalar: std::marker::PhantomData<T>,
}

// SAFETY: an `AtomicU32` may be all zeros, and the marker has no bytes.
unsafe impl<T: AtomicScalar> bytemuck::Zeroable for Atomic<T> {}

impl<T: AtomicScalar> Atomic<T> {
    /// An atomic that holds `value`; for tests on the host.
    pub fn new(value: T) -> Self {
        Self { word: AtomicU32::new(value.to_word()), scalar: std::marker::PhantomData }
    }

    fn change(&self, f: impl Fn(T) -> T) -> T {
        let mut old = self.word.load(Ordering::Relaxed);
        loop {
            let new = f(T::from_word(old)).to_word();
            match self.word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return T::from_word(old),
                Err(now) => old = now,
            }
        }
    }

    /// The value.
    pub fn load(&self) -> T {
        T::from_word(self.word.load(Ordering::Relaxed))
    }

    /// Writes a value.
    pub fn store(&self, value: T) {
        self.word.store(value.to_word(), Ordering::Relaxed);
    }

    /// Adds; integers wrap. The order of the sums of a float is that in which invocations come, and is not stated.
    // Named as in every target; it is no operator, since it takes `&self`.
    pub fn add(&self, value: T) -> T {
        self.change(|old| old.sum(value))
    }

    /// Writes a value.
    pub fn exchange(&self, value: T) -> T {
        T::from_word(self.word.swap(value.to_word(), Ordering::Relaxed))
    }
}

impl<T: AtomicInteger> Atomic<T> {
    fn change_word(&self, value: T, f: impl Fn(u32, u32) -> u32) -> T {
        self.change(|old| T::from_word(f(old.to_word(), value.to_word())))
    }

    /// Subtracts, wrapping.
    pub fn sub(&self, value: T) -> T {
        self.change_word(value, u32::wrapping_sub)
    }

    /// Keeps the smaller.
    pub fn min(&self, value: T) -> T {
        self.change(|old| old.min(value))
    }

    /// Keeps the larger.
    pub fn max(&self, value: T) -> T {
        self.change(|old| old.max(value))
    }

    /// Bitwise and.
    pub fn and(&self, value: T) -> T {
        self.change_word(value, |a, b| a & b)
    }

    /// Bitwise or.
    pub fn or(&self, value: T) -> T {
        self.change_word(value, |a, b| a | b)
    }

    /// Bitwise exclusive or.
    pub fn xor(&self, value: T) -> T {
        self.change_word(value, |a, b| a ^ b)
    }

    /// Writes `new` if the value is `expected`.
    pub fn compare_exchange(&self, expected: T, new: T) -> T {
        let (expected, new) = (expected.to_word(), new.to_word());
        match self.word.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(old) | Err(old) => T::from_word(old),
        }
    }
}

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
    fn atomics_give_the_value_from_before() {
        let a = Atomic::new(-5i32);
        assert_eq!(a.add(2), -5);
        assert_eq!(a.min(-10), -3);
        assert_eq!(a.max(4), -10);
        assert_eq!(a.exchange(i32::MAX), 4);
        assert_eq!(a.add(1), i32::MAX);
        assert_eq!(a.compare_exchange(0, 7), i32::MIN);
        assert_eq!(a.compare_exchange(i32::MIN, 7), i32::MIN);
        assert_eq!((a.xor(1), a.or(8), a.and(12), a.sub(1)), (7, 6, 14, 12));
        assert_eq!(a.load(), 11);
        let sum = Atomic::new(1.5f32);
        assert_eq!((sum.add(2.0), sum.exchange(-1.0), sum.load()), (1.5, 3.5, -1.0));
    }

    #[test]
    fn slices_move_vectors() {
        let mut tile = workgroup_array::<f32>(8);
        tile.set_vec4(1, Vec4::new(1.0, 2.0, 3.0, 4.0));
        tile.set_vec2(0, Vec2::splat(9.0));
        assert_eq!(tile.vec2(3), Vec2::new(3.0, 4.0));
        assert_eq!(&tile[..], [9.0, 9.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(workgroup_array::<Atomic<u32>>(3)[2].add(1), 0);
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
