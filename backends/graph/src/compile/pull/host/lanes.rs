//! Values at several positions at once: an expression's bookkeeping is paid once for all of them, and what is alike at all of them is computed once.

/// Positions that are evaluated together.
pub const LANES: usize = 64;

/// A value at each position.
#[derive(Clone, Copy, Debug)]
pub enum Lanes<T> {
    /// The same everywhere.
    Same(T),
    /// One for each.
    Each([T; LANES]),
}

use Lanes::{Each, Same};

impl<T: Copy> Lanes<T> {
    /// The value at one position.
    #[inline]
    pub fn at(&self, lane: usize) -> T {
        match self {
            Same(value) => *value,
            Each(values) => values[lane],
        }
    }

    /// A function of it.
    #[inline]
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Lanes<U> {
        match self {
            Same(value) => Same(of(value)),
            Each(values) => Each(values.map(of)),
        }
    }

    /// A function of two.
    #[inline]
    pub fn zip<V: Copy, U>(self, with: Lanes<V>, of: impl Fn(T, V) -> U) -> Lanes<U> {
        match (self, with) {
            (Same(a), Same(b)) => Same(of(a, b)),
            (Same(a), Each(b)) => Each(b.map(|b| of(a, b))),
            (Each(a), Same(b)) => Each(a.map(|a| of(a, b))),
            (Each(a), Each(b)) => Each(std::array::from_fn(|lane| of(a[lane], b[lane]))),
        }
    }
}

impl Lanes<bool> {
    /// One of two things where the condition is the same everywhere, so that only that one is made; elsewhere both, mixed by position.
    #[inline]
    pub fn choose<T>(
        self,
        accept: impl FnOnce() -> T,
        reject: impl FnOnce() -> T,
        mixed: impl FnOnce([bool; LANES], T, T) -> T,
    ) -> T {
        match self {
            Same(true) => accept(),
            Same(false) => reject(),
            Each(holds) => match holds.iter().filter(|holds| **holds).count() {
                LANES => accept(),
                0 => reject(),
                _ => mixed(holds, accept(), reject()),
            },
        }
    }

    /// One of two values, by position.
    #[inline]
    pub fn pick<T: Copy>(self, accept: Lanes<T>, reject: Lanes<T>) -> Lanes<T> {
        self.choose(|| accept, || reject, Lanes::mixed)
    }
}

impl<T: Copy> Lanes<T> {
    /// Of two values at each position the first where `holds`.
    #[inline]
    pub fn mixed(holds: [bool; LANES], accept: Self, reject: Self) -> Self {
        Each(std::array::from_fn(|lane| if holds[lane] { accept.at(lane) } else { reject.at(lane) }))
    }
}
