//! Matrices that a subgroup holds together, for the matrix units of a GPU.
//!
//! [`MatrixA`] and [`MatrixB`] are the sides of a product, [`Accumulator`] is what it is added to. They are values of the subgroup: each invocation holds a part,
//! and no kernel sees which. Kernels that use them are written for [`Feature::CooperativeMatrices`](crate::intrinsics::target::Feature::CooperativeMatrices):
//! `requires(CooperativeMatrices)`, or in an `if const` with another way beside it. WGSL cannot say what is done with them here; a device of wgpu that has them runs the
//! kernel's SPIR-V.
//!
//! Which shapes there are is for the device to say ([`Properties::matrices`](crate::device::Properties::matrices)); a kernel that wants others is an error when it is
//! loaded. NVIDIA's GPUs have 16x16x16 and 16x8x16 (rows, columns and depth) of `f16` in `f32` and in `f16`, on CUDA also of `bf16` in `f32`. The CPU has every shape, with plain loops.
//! On Vulkan and wgpu a device that lists products of 8x8x8 alone gets larger ones made of these.
//!
//! All invocations of the workgroup must get to a load, a store or a product, or none. Offset and stride are the same for all invocations of a subgroup, as
//! [`subgroup_index`](crate::intrinsics::subgroup_index) is. A store is seen by loads after a [`barrier`](crate::intrinsics::barrier).
//!
//! # Memory
//! Element `(i, j)` is `memory[offset + i * stride + j]`, or `memory[offset + j * stride + i]` with `load_columns` and `store_columns`; a stride of 0 repeats
//! one line. Memory of `Vec4<u32>` holds the bits of the elements, 16 bytes at a time, and offset and stride count these.
//! In memory of scalars, lines begin at multiples of 16 bytes (of a line, where that is shorter). A matrix that is not wholly inside the memory, or does not begin so, is not there: it is read as zero, and not written.
//! The compiler leaves the question out where it proves the answer.
//!
//! Workgroup memory is read fastest if lines are an odd multiple of 16 bytes apart: 40 halves for tiles of 32, or 5 `Vec4<u32>`. Lines that are powers of two apart lie in
//! the same banks.
//!
//! # Example
//! ```
//! use trefoil_dsl::prelude::*;
//!
//! let a: Vec<f16> = (0..4).map(|i| f16::from_f32(i as f32)).collect();
//! let mut out = [0.0; 4];
//! let left = MatrixA::<f16, 2, 2>::load(&a, 0, 2);
//! let right = MatrixB::<f16, 2, 2>::load_columns(&a, 0, 2);
//! let sum = multiply_add(left, right, Accumulator::<f32, 2, 2>::fill(0.5));
//! sum.map(|x| x * 2.0).store(&mut out, 0, 2);
//! assert_eq!(out, [3.0, 7.0, 7.0, 27.0]);
//! ```

use half::{bf16, f16};

use crate::element::Element;
use crate::vector::Vec4;

/// What matrices hold: `f16`, `bf16`, and accumulators `f32`.
pub trait MatrixScalar: Element {
    /// Exactly.
    #[doc(hidden)]
    fn widen(self) -> f32;
    /// To the nearest.
    #[doc(hidden)]
    fn narrow(value: f32) -> Self;
    /// The element at a place of 16 bytes, by number.
    #[doc(hidden)]
    fn of_bits(bits: Vec4<u32>, number: usize) -> Self {
        bytemuck::cast_slice::<u32, Self>(&bits.to_array())[number]
    }
    /// The 16 bytes with another element at that place.
    #[doc(hidden)]
    #[must_use]
    fn in_bits(self, bits: Vec4<u32>, number: usize) -> Vec4<u32> {
        let mut words = bits.to_array();
        bytemuck::cast_slice_mut::<u32, Self>(&mut words)[number] = self;
        let [x, y, z, w] = words;
        Vec4::new(x, y, z, w)
    }
}

impl MatrixScalar for f32 {
    fn widen(self) -> f32 {
        self
    }
    fn narrow(value: f32) -> Self {
        value
    }
}

impl MatrixScalar for f16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

impl MatrixScalar for bf16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }
    fn narrow(value: f32) -> Self {
        Self::from_f32(value)
    }
}

/// Elements of memory that matrices of `T` lie in: `T` itself, and `Vec4<u32>` as its bits.
pub trait MatrixMemory<T>: Sized {
    /// How many elements of a matrix one of memory holds.
    #[doc(hidden)]
    const COUNT: usize;
    /// One of them.
    #[doc(hidden)]
    fn get(&self, number: usize) -> T;
    /// Changes one of them.
    #[doc(hidden)]
    fn set(&mut self, number: usize, value: T);
}

impl<T: MatrixScalar> MatrixMemory<T> for T {
    const COUNT: usize = 1;
    fn get(&self, _: usize) -> T {
        *self
    }
    fn set(&mut self, _: usize, value: T) {
        *self = value;
    }
}

impl<T: MatrixScalar> MatrixMemory<T> for Vec4<u32> {
    const COUNT: usize = 16 / size_of::<T>();
    fn get(&self, number: usize) -> T {
        T::of_bits(*self, number)
    }
    fn set(&mut self, number: usize, value: T) {
        *self = value.in_bits(*self, number);
    }
}

/// Whether all of a matrix is in memory of that length, with lines where they may begin.
fn is_there<T, S: MatrixMemory<T>>(memory: &[S], [offset, stride]: [usize; 2], [lines, length]: [usize; 2]) -> bool {
    let unit = if S::COUNT == 1 { (16 / size_of::<T>()).min(length.next_power_of_two()) } else { 1 };
    let last = stride.checked_mul(lines - 1).and_then(|last| last.checked_add(offset + length / S::COUNT));
    last.is_some_and(|end| end <= memory.len()) && offset.is_multiple_of(unit) && stride.is_multiple_of(unit)
}

macro_rules! matrices {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name<T, const ROWS: usize, const COLUMNS: usize>([[T; COLUMNS]; ROWS]);

            impl<T: MatrixScalar, const ROWS: usize, const COLUMNS: usize> $name<T, ROWS, COLUMNS> {
                /// A matrix whose elements are all `value`, which is the same for the subgroup.
                #[must_use]
                pub const fn fill(value: T) -> Self {
                    Self([[value; COLUMNS]; ROWS])
                }

                /// A matrix from memory, row by row: the first element is at `offset`, and the next row `stride` elements behind.
                #[must_use]
                pub fn load<S: MatrixMemory<T>>(memory: &[S], offset: usize, stride: usize) -> Self {
                    let mut all = Self::fill(T::narrow(0.0));
                    if is_there(memory, [offset, stride], [ROWS, COLUMNS]) {
                        for (i, row) in all.0.iter_mut().enumerate() {
                            for (j, element) in row.iter_mut().enumerate() {
                                *element = memory[offset + i * stride + j / S::COUNT].get(j % S::COUNT);
                            }
                        }
                    }
                    all
                }

                /// A matrix from memory, column by column: the next column is `stride` elements behind.
                #[must_use]
                pub fn load_columns<S: MatrixMemory<T>>(memory: &[S], offset: usize, stride: usize) -> Self {
                    let mut all = Self::fill(T::narrow(0.0));
                    if is_there(memory, [offset, stride], [COLUMNS, ROWS]) {
                        for (i, row) in all.0.iter_mut().enumerate() {
                            for (j, element) in row.iter_mut().enumerate() {
                                *element = memory[offset + j * stride + i / S::COUNT].get(i % S::COUNT);
                            }
                        }
                    }
                    all
                }
            }
        )*
    };
}

matrices! {
    /// The left side of a product: `f16` or `bf16`.
    MatrixA;
    /// The right side of a product: `f16` or `bf16`.
    MatrixB;
    /// What a product is added to, and its result: `f32`, or `f16` where both sides are.
    Accumulator;
}

impl<T: MatrixScalar, const ROWS: usize, const COLUMNS: usize> Accumulator<T, ROWS, COLUMNS> {
    /// Writes the matrix to memory, row by row, as [`Accumulator::load`] reads it.
    pub fn store<S: MatrixMemory<T>>(self, memory: &mut [S], offset: usize, stride: usize) {
        if is_there(memory, [offset, stride], [ROWS, COLUMNS]) {
            for (i, row) in self.0.iter().enumerate() {
                for (j, element) in row.iter().enumerate() {
                    memory[offset + i * stride + j / S::COUNT].set(j % S::COUNT, *element);
                }
            }
        }
    }

    /// Writes the matrix to memory, column by column.
    pub fn store_columns<S: MatrixMemory<T>>(self, memory: &mut [S], offset: usize, stride: usize) {
        if is_there(memory, [offset, stride], [COLUMNS, ROWS]) {
            for (i, row) in self.0.iter().enumerate() {
                for (j, element) in row.iter().enumerate() {
                    memory[offset + j * stride + i / S::COUNT].set(i % S::COUNT, *element);
                }
            }
        }
    }

    /// The matrix with `f` of each element in its place. The closure captures nothing and does not know which element it has.
    #[must_use]
    pub fn map(self, f: impl Fn(T) -> T) -> Self {
        Self(self.0.map(|row| row.map(&f)))
    }

    /// The matrix of `f` of each element and the one of `other` at its place. A matrix that repeats a line (a stride of 0) gives each row or column a number of its own,
    /// [`Accumulator::fill`] all of them one.
    #[must_use]
    pub fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Self(std::array::from_fn(|i| std::array::from_fn(|j| f(self.0[i][j], other.0[i][j]))))
    }

    /// Adds a number to each element.
    pub(crate) fn add_each(&mut self, number: impl Fn(usize, usize) -> f32) {
        for (i, row) in self.0.iter_mut().enumerate() {
            for (j, element) in row.iter_mut().enumerate() {
                *element = T::narrow(element.widen() + number(i, j));
            }
        }
    }

    /// The matrix with elements of another type, rounded to the nearest.
    #[must_use]
    pub fn convert<U: MatrixScalar>(from: Accumulator<U, ROWS, COLUMNS>) -> Self {
        Self(from.0.map(|row| row.map(|element| T::narrow(element.widen()))))
    }
}

/// `a * b + c`, summed in `f32`, in no stated order.
///
/// On devices all invocations of the workgroup must get here or none, and the device must list the shape.
#[must_use]
pub fn multiply_add<T, U, const ROWS: usize, const COLUMNS: usize, const DEPTH: usize>(
    a: MatrixA<T, ROWS, DEPTH>,
    b: MatrixB<T, DEPTH, COLUMNS>,
    c: Accumulator<U, ROWS, COLUMNS>,
) -> Accumulator<U, ROWS, COLUMNS>
where
    T: MatrixScalar,
    U: MatrixScalar,
{
    Accumulator(std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let products = (0..DEPTH).map(|k| a.0[i][k].widen() * b.0[k][j].widen());
            U::narrow(products.fold(c.0[i][j].widen(), |sum, product| sum + product))
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_zero_and_stays() {
        let memory = [1.0f32; 20];
        let sum = |matrix: Accumulator<f32, 4, 4>| matrix.0.iter().flatten().sum::<f32>();
        assert_eq!(sum(Accumulator::load(&memory, 4, 4)), 16.0);
        for (offset, stride) in [(8, 4), (0, 8), (1, 4), (0, 5), (usize::MAX - 3, 4), (0, usize::MAX - 3)] {
            assert_eq!(
                sum(Accumulator::load(&memory, offset.min(1 << 32), stride.min(1 << 62))),
                0.0,
                "{offset} {stride}"
            );
        }
        let mut out = [0.0f32; 20];
        Accumulator::<f32, 4, 4>::fill(1.0).store(&mut out, 8, 4);
        assert_eq!(out, [0.0; 20]);
    }

    #[test]
    fn bits_are_elements() {
        let mut memory = [Vec4::splat(0u32); 4];
        let matrix = Accumulator::<f16, 4, 8>::fill(f16::from_f32(1.5));
        matrix.store(&mut memory, 0, 1);
        assert_eq!(memory, [Vec4::splat(0x3e00_3e00); 4]);
        assert_eq!(Accumulator::<f16, 4, 8>::load(&memory, 0, 1).0[3][7], f16::from_f32(1.5));
        let repeated = Accumulator::<f32, 2, 4>::load_columns(&[1.0, 2.0], 0, 0);
        assert_eq!(repeated.zip(Accumulator::fill(2.0), |a, b| a * b).0, [[2.0; 4], [4.0; 4]]);
    }
}
