//! Coordinates at several positions: most of them rise evenly, and then what is made of them takes no more than of one.

use std::ops::{Add, Div, Mul, Rem, Sub};

use super::calculator::{Holds, Plain};
use super::lanes::{LANES, Lanes};
use crate::pull::Index;

/// A coordinate at each position.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack for one expression; the few that vary are worth no allocation"
)]
pub enum Whole {
    /// From the first on, always so much more.
    Line {
        /// The first.
        first: i64,
        /// The difference of neighbours.
        step: i64,
    },
    /// Any.
    Each([i64; LANES]),
}

use Whole::{Each, Line};

impl Index for Whole {}

impl Whole {
    /// A number that is the same at every position.
    pub fn of(value: i64) -> Self {
        Line { first: value, step: 0 }
    }

    /// The number at a position.
    pub fn at(&self, lane: usize) -> i64 {
        match self {
            Line { first, step } => first.wrapping_add(step.wrapping_mul(lane as i64)),
            Each(values) => values[lane],
        }
    }

    /// All of them.
    pub fn lanes(self) -> Lanes<i64> {
        match self {
            Line { first, step: 0 } => Lanes::Same(first),
            Line { .. } => Lanes::Each(std::array::from_fn(|lane| self.at(lane))),
            Each(values) => Lanes::Each(values),
        }
    }

    /// By position.
    pub(super) fn from_lanes(lanes: Lanes<i64>) -> Self {
        match lanes {
            Lanes::Same(value) => Self::of(value),
            Lanes::Each(values) => Each(values),
        }
    }

    /// A function of both at each position.
    fn zip(self, other: Self, of: impl Fn(i64, i64) -> i64) -> Self {
        Self::from_lanes(self.lanes().zip(other.lanes(), of))
    }

    /// A sum or a difference, of which lines make lines.
    fn combined(self, other: Self, of: impl Fn(i64, i64) -> i64) -> Self {
        match (self, other) {
            (Line { first, step }, Line { first: other, step: other_step }) => {
                Line { first: of(first, other), step: of(step, other_step) }
            }
            _ => self.zip(other, of),
        }
    }

    /// What it is everywhere, if it is the same.
    fn same(self) -> Option<i64> {
        match self {
            Line { first, step: 0 } => Some(first),
            _ => None,
        }
    }

    pub(super) fn select(condition: Holds, accept: Self, reject: Self) -> Self {
        condition.0.choose(
            || accept,
            || reject,
            |holds, accept, reject| Self::from_lanes(Lanes::mixed(holds, accept.lanes(), reject.lanes())),
        )
    }

    pub(super) fn less(left: Self, right: Self) -> Holds {
        Holds(match Self::apart(left, right) {
            Some([a, b]) if a < 0 && b < 0 => Lanes::Same(true),
            Some([a, b]) if a >= 0 && b >= 0 => Lanes::Same(false),
            _ => left.lanes().zip(right.lanes(), |left, right| left < right),
        })
    }

    pub(super) fn equal(left: Self, right: Self) -> Holds {
        Holds(match Self::apart(left, right) {
            Some([0, 0]) => Lanes::Same(true),
            Some([a, b]) if a < 0 && b < 0 || a > 0 && b > 0 => Lanes::Same(false),
            _ => left.lanes().zip(right.lanes(), |left, right| left == right),
        })
    }

    /// How far the first ones are apart, and the last ones; all others are so far as lies between.
    fn apart(left: Self, right: Self) -> Option<[i64; 2]> {
        let ([a, b], [c, d]) = (left.ends()?, right.ends()?);
        Some([a.checked_sub(c)?, b.checked_sub(d)?])
    }

    /// The first and the last of numbers that rise evenly; all others lie between them. Of so large ones that they would wrap it is not said.
    fn ends(self) -> Option<[i64; 2]> {
        match self {
            Line { first, step } => {
                let last = step.checked_mul(LANES as i64 - 1).and_then(|far| first.checked_add(far))?;
                Some([first, last])
            }
            Each(_) => None,
        }
    }
}

impl Add for Whole {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.combined(other, i64::wrapping_add)
    }
}

impl Sub for Whole {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.combined(other, i64::wrapping_sub)
    }
}

impl Mul for Whole {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        match (self, other, self.same(), other.same()) {
            (Line { first, step }, _, _, Some(by)) | (_, Line { first, step }, Some(by), _) => {
                Line { first: first.wrapping_mul(by), step: step.wrapping_mul(by) }
            }
            _ => self.zip(other, i64::wrapping_mul),
        }
    }
}

impl Div for Whole {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.zip(other, Plain::div)
    }
}

impl Rem for Whole {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        self.zip(other, |of, by| match (u32::try_from(of), u32::try_from(by)) {
            (Ok(of), Ok(by)) => i64::from(of.checked_rem(by).unwrap_or(0)),
            _ => of.checked_rem(by).unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_their_numbers_are() {
        let numbers = [-200i64, -64, -63, -3, -1, 0, 1, 2, 5, 63, 64, 1 << 40, i64::MAX - 5, i64::MIN + 1];
        let steps = [-7i64, -1, 0, 1, 3, 1 << 58];
        let line = |first, step| Line { first, step };
        let each = |of: Whole| Each(std::array::from_fn(|lane| of.at(lane)));
        for a in numbers.iter().flat_map(|first| steps.map(|step| line(*first, step))) {
            for b in numbers.iter().flat_map(|first| steps.map(|step| line(*first, step))) {
                let same = |found: Whole, wanted: Whole, name: &str| {
                    assert!((0..LANES).all(|lane| found.at(lane) == wanted.at(lane)), "{a:?} {name} {b:?}: {found:?}");
                };
                same(a + b, each(a) + each(b), "+");
                same(a - b, each(a) - each(b), "-");
                same(a * b, each(a) * each(b), "*");
                same(a / b, each(a) / each(b), "/");
                same(a % b, each(a) % each(b), "%");
                let less = Whole::less(a, b).0;
                assert!((0..LANES).all(|lane| less.at(lane) == (a.at(lane) < b.at(lane))), "{a:?} < {b:?}");
                let equal = Whole::equal(a, b).0;
                assert!((0..LANES).all(|lane| equal.at(lane) == (a.at(lane) == b.at(lane))), "{a:?} == {b:?}");
            }
        }
    }
}
