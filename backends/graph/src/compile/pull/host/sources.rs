//! Where the elements lie that several positions move.

use super::coordinates::Whole;
use super::lanes::{LANES, Lanes};

/// Where an element comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An input's bytes from there on.
    At(usize, i64),
    /// An element of these bits.
    Bits(u64),
}

/// Where the element of each position comes from.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack for one expression; the few that vary are worth no allocation"
)]
pub enum Sources {
    /// Bytes of an input that rise evenly.
    Line {
        /// The input.
        input: usize,
        /// The first byte of the first position.
        first: i64,
        /// How much further the next one's is.
        step: i64,
    },
    /// These bits at every position.
    Bits(u64),
    /// Anything.
    Each([Source; LANES]),
}

impl Sources {
    /// Bytes of an input.
    pub fn of_input(input: usize, bytes: Whole) -> Self {
        match bytes {
            Whole::Line { first, step } => Self::Line { input, first, step },
            Whole::Each(bytes) => Self::Each(bytes.map(|byte| Source::At(input, byte))),
        }
    }

    /// The source of a position.
    pub fn at(&self, lane: usize) -> Source {
        match self {
            Self::Line { input, first, step } => Source::At(*input, first.wrapping_add(step.wrapping_mul(lane as i64))),
            Self::Bits(bits) => Source::Bits(*bits),
            Self::Each(sources) => sources[lane],
        }
    }

    /// By a condition one or the other.
    pub fn pick(condition: Lanes<bool>, accept: &Self, reject: &Self) -> Self {
        Self::Each(std::array::from_fn(|lane| match condition.at(lane) {
            true => accept.at(lane),
            false => reject.at(lane),
        }))
    }
}
