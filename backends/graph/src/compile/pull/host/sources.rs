//! Where the elements lie that several positions move.

use super::coordinates::Whole;
use super::lanes::LANES;

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
    /// An input's bytes from there on.
    Input(usize, Whole),
    /// These bits at every position.
    Bits(u64),
    /// Anything.
    Each([Source; LANES]),
}

impl Sources {
    /// The source of a position.
    pub fn at(&self, lane: usize) -> Source {
        match self {
            Self::Input(input, bytes) => Source::At(*input, bytes.at(lane)),
            Self::Bits(bits) => Source::Bits(*bits),
            Self::Each(sources) => sources[lane],
        }
    }

    /// Of two sources at each position the first where `holds`.
    pub fn mixed(holds: [bool; LANES], accept: Self, reject: Self) -> Self {
        Self::Each(std::array::from_fn(|lane| if holds[lane] { accept.at(lane) } else { reject.at(lane) }))
    }
}
