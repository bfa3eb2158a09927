//! Atomics: numbers that invocations change together, and the orders of memory that they make.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::element::Element;

/// What holds the bits of an atomic on the host.
///
/// # Safety
/// It may be all zeros.
#[doc(hidden)]
pub unsafe trait Cell: Debug + Default {
    /// An unsigned integer of as many bits.
    type Word: Copy + Eq;
    /// Holds these bits.
    fn new(word: Self::Word) -> Self;
    /// As of [`AtomicU32`].
    fn load(&self, order: Ordering) -> Self::Word;
    /// As of [`AtomicU32`].
    fn store(&self, word: Self::Word, order: Ordering);
    /// As of [`AtomicU32`].
    fn swap(&self, word: Self::Word, order: Ordering) -> Self::Word;
    /// As of [`AtomicU32`].
    fn compare_exchange(
        &self,
        expected: Self::Word,
        new: Self::Word,
        order: Ordering,
        failed: Ordering,
    ) -> Result<Self::Word, Self::Word>;
}

macro_rules! cells {
    ($($cell:ident: $word:ty;)*) => {
        $(
            // SAFETY: it has the representation of its integer.
            unsafe impl Cell for $cell {
                type Word = $word;

                fn new(word: $word) -> Self {
                    Self::new(word)
                }

                fn load(&self, order: Ordering) -> $word {
                    Self::load(self, order)
                }

                fn store(&self, word: $word, order: Ordering) {
                    Self::store(self, word, order);
                }

                fn swap(&self, word: $word, order: Ordering) -> $word {
                    Self::swap(self, word, order)
                }

                fn compare_exchange(
                    &self,
                    expected: $word,
                    new: $word,
                    order: Ordering,
                    failed: Ordering,
                ) -> Result<$word, $word> {
                    Self::compare_exchange(self, expected, new, order, failed)
                }
            }
        )*
    };
}

cells! {
    AtomicU32: u32;
    AtomicU64: u64;
}

/// The types that atomics hold: `u32`, `i32`, `u64`, `i64` and `f32`. Those of 64 bits need [`crate::intrinsics::target::Feature::Int64Atomics`].
pub trait AtomicScalar: Element {
    /// What holds its bits.
    #[doc(hidden)]
    type Cell: Cell;
    /// As bits.
    #[doc(hidden)]
    fn to_word(self) -> <Self::Cell as Cell>::Word;
    /// From bits.
    #[doc(hidden)]
    fn from_word(word: <Self::Cell as Cell>::Word) -> Self;
    /// The sum; integers wrap.
    #[doc(hidden)]
    #[must_use]
    fn sum(self, other: Self) -> Self;
}

/// The atomics that have an order and bits: those of integers.
pub trait AtomicInteger:
    AtomicScalar + Ord + std::ops::BitAnd<Output = Self> + std::ops::BitOr<Output = Self> + std::ops::BitXor<Output = Self>
{
    /// The difference, wrapping.
    #[doc(hidden)]
    #[must_use]
    fn difference(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty: $cell:ident, $to:expr, $from:expr;)*) => {
        $(
            impl AtomicScalar for $ty {
                type Cell = $cell;

                fn to_word(self) -> <$cell as Cell>::Word {
                    ($to)(self)
                }

                fn from_word(word: <$cell as Cell>::Word) -> Self {
                    ($from)(word)
                }

                fn sum(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
            }

            impl AtomicInteger for $ty {
                fn difference(self, other: Self) -> Self {
                    self.wrapping_sub(other)
                }
            }
        )*
    };
}

integers! {
    u32: AtomicU32, |value| value, |word| word;
    i32: AtomicU32, i32::cast_unsigned, u32::cast_signed;
    u64: AtomicU64, |value| value, |word| word;
    i64: AtomicU64, i64::cast_unsigned, u64::cast_signed;
}

impl AtomicScalar for f32 {
    type Cell = AtomicU32;

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

/// A number that invocations change together. Each operation but [`Atomic::store`] gives the value from before.
///
/// A parameter `&[Atomic<u32>]` of a kernel takes a `&mut Buffer<u32>` when it is launched.
///
/// # Orders
/// [`Atomic::add`] and its like are *relaxed*: they say nothing about other memory. Those whose names end in `_acquire`, `_release` and `_acq_rel`
/// order it, as Rust's own do: what an invocation did before an operation that releases has happened for an invocation that acquires the value
/// which that operation wrote. What it did is everything that came before it, the work of others that a [`crate::intrinsics::barrier`] put
/// before it included. They need [`crate::intrinsics::target::Feature::Ordering`], which every device but those of wgpu has.
///
/// ```
/// use trefoil_dsl::prelude::*;
///
/// /// The sum of each workgroup's numbers, and by whoever comes last the sum of all of them.
/// #[device]
/// fn comes_last(done: &[Atomic<u32>], groups: u32) -> bool {
///     // Releases this workgroup's sum, and acquires those of the workgroups before.
///     done[0].add_acq_rel(1) + 1 == groups
/// }
/// assert!(comes_last(&[Atomic::new(2)], 3));
/// ```
///
/// # Scopes
/// An atomic in a buffer is atomic, and orders memory, among all invocations of the device; one in workgroup memory among those of the workgroup.
/// [`Atomic::workgroup`] narrows an operation on a buffer to the workgroup.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Atomic<T: AtomicScalar> {
    word: T::Cell,
    scalar: std::marker::PhantomData<T>,
}

// SAFETY: its cell may be all zeros, and the marker has no bytes.
unsafe impl<T: AtomicScalar> bytemuck::Zeroable for Atomic<T> {}

/// The order of the load of an operation that has failed to write.
const fn failed(order: Ordering) -> Ordering {
    match order {
        Ordering::Acquire | Ordering::AcqRel => Ordering::Acquire,
        _ => Ordering::Relaxed,
    }
}

impl<T: AtomicScalar> Atomic<T> {
    /// An atomic that holds `value`; for tests on the host.
    pub fn new(value: T) -> Self {
        Self { word: T::Cell::new(value.to_word()), scalar: std::marker::PhantomData }
    }

    /// This atomic among the invocations of the workgroup alone: `counts[i].workgroup().add(1)` is atomic among them and no others, which some devices
    /// do faster. An operation follows; by itself it is nothing in a kernel.
    pub const fn workgroup(&self) -> &Self {
        self
    }

    fn change(&self, order: Ordering, f: impl Fn(T) -> T) -> T {
        let mut old = self.word.load(Ordering::Relaxed);
        loop {
            let new = f(T::from_word(old)).to_word();
            match self.word.compare_exchange(old, new, order, failed(order)) {
                Ok(_) => return T::from_word(old),
                Err(now) => old = now,
            }
        }
    }

    /// The value.
    pub fn load(&self) -> T {
        T::from_word(self.word.load(Ordering::Relaxed))
    }

    /// The value; what whoever wrote it did before releasing it has happened.
    pub fn load_acquire(&self) -> T {
        T::from_word(self.word.load(Ordering::Acquire))
    }

    /// Writes a value.
    pub fn store(&self, value: T) {
        self.word.store(value.to_word(), Ordering::Relaxed);
    }

    /// Writes a value; for whoever acquires it, what was done before has happened.
    pub fn store_release(&self, value: T) {
        self.word.store(value.to_word(), Ordering::Release);
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $relaxed:ident $acquire:ident $release:ident $both:ident ($($argument:ident),+) = $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $relaxed(&self, $($argument: T),+) -> T {
                ($body)(self, Ordering::Relaxed, $($argument),+)
            }

            #[doc = concat!("[`Atomic::", stringify!($relaxed), "`] that acquires what the value from before was released with.")]
            pub fn $acquire(&self, $($argument: T),+) -> T {
                ($body)(self, Ordering::Acquire, $($argument),+)
            }

            #[doc = concat!("[`Atomic::", stringify!($relaxed), "`] that releases what was done before.")]
            pub fn $release(&self, $($argument: T),+) -> T {
                ($body)(self, Ordering::Release, $($argument),+)
            }

            #[doc = concat!("[`Atomic::", stringify!($relaxed), "`] that acquires and releases.")]
            pub fn $both(&self, $($argument: T),+) -> T {
                ($body)(self, Ordering::AcqRel, $($argument),+)
            }
        )*
    };
}

impl<T: AtomicScalar> Atomic<T> {
    operations! {
        /// Adds; integers wrap. The order of the sums of a float is that in which invocations come, and is not stated.
        add add_acquire add_release add_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old.sum(value));
        /// Writes a value.
        exchange exchange_acquire exchange_release exchange_acq_rel (value)
            = |this: &Self, order, value: T| T::from_word(this.word.swap(value.to_word(), order));
    }
}

impl<T: AtomicInteger> Atomic<T> {
    operations! {
        /// Subtracts, wrapping.
        sub sub_acquire sub_release sub_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old.difference(value));
        /// Keeps the smaller.
        min min_acquire min_release min_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old.min(value));
        /// Keeps the larger.
        max max_acquire max_release max_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old.max(value));
        /// Bitwise and.
        and and_acquire and_release and_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old & value);
        /// Bitwise or.
        or or_acquire or_release or_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old | value);
        /// Bitwise exclusive or.
        xor xor_acquire xor_release xor_acq_rel (value)
            = |this: &Self, order, value: T| this.change(order, |old| old ^ value);
        /// Writes `new` if the value is `expected`. If it is not, nothing is released.
        compare_exchange compare_exchange_acquire compare_exchange_release compare_exchange_acq_rel (expected, new)
            = |this: &Self, order, expected: T, new: T| {
                match this.word.compare_exchange(expected.to_word(), new.to_word(), order, failed(order)) {
                    Ok(old) | Err(old) => T::from_word(old),
                }
            };
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
        let long = Atomic::new(u64::MAX - 1);
        assert_eq!((long.add(3), long.sub(2), long.max(7), long.load()), (u64::MAX - 1, 1, u64::MAX, u64::MAX));
        let sum = Atomic::new(1.5f32);
        assert_eq!((sum.add(2.0), sum.exchange(-1.0), sum.load()), (1.5, 3.5, -1.0));
    }

    #[test]
    fn orders_change_nothing_of_the_values() {
        let a = Atomic::new(3u32);
        assert_eq!((a.add_acquire(1), a.sub_release(2), a.max_acq_rel(9), a.workgroup().load_acquire()), (3, 4, 2, 9));
        a.store_release(5);
        assert_eq!((a.compare_exchange_acq_rel(5, 6), a.compare_exchange_release(5, 7), a.load()), (5, 6, 6));
        assert_eq!((a.exchange_acquire(1), a.and_release(0), a.or_acquire(2), a.xor_acq_rel(1)), (6, 1, 0, 2));
        assert_eq!(a.min_acquire(8), 3);
    }
}
