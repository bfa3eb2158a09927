//! The order of elements, as numbers: the smaller the number, the earlier the element.
//!
//! An element is a word of 32 bits, those of narrower types in its upper bits. Floats of every width are a sign and a magnitude, so that five numbers say the order of all types, ascending and
//! descending; the host makes them.

use trefoil_dsl::prelude::*;

/// The place of an element in the order. Of floats -0 may be equal to 0, and every NaN is behind all numbers, or before them in a descending order.
///
/// `order`: the word that is equal to 0, for floats that of -0; the largest magnitude of a number; which bits of negative elements turn, and which of the others; and which of all
/// of them turn at last.
#[device]
pub fn rank_of(word: u32, order: [u32; 5]) -> u32 {
    let bits = if word == order[0] { 0 } else { word };
    let ascending = if (bits & 0x7fff_ffff) > order[1] {
        u32::MAX
    } else if bits >> 31 == 1 {
        bits ^ order[2]
    } else {
        bits ^ order[3]
    };
    ascending ^ order[4]
}

/// The element at a place in the order: of several the same for all, so that a NaN may become another.
#[device]
pub fn word_of(rank: u32, order: [u32; 5]) -> u32 {
    let ascending = rank ^ order[4];
    // Elements with and without a sign turn differently in floats alone.
    let positive = ascending ^ order[3];
    if positive >> 31 == 1 && order[2] != order[3] { ascending ^ order[2] } else { positive }
}

/// An element by its place in the order, and where it stands.
#[device(methods)]
#[derive(Debug, PartialEq)]
pub struct Ranked {
    /// The smaller, the earlier.
    pub rank: u32,
    /// Its index.
    pub column: u32,
}

#[device]
impl Ranked {
    /// Behind every element.
    pub const NONE: Self = Self { rank: u32::MAX, column: u32::MAX };

    /// Of equals the one with the lower index comes first.
    pub fn before(self, other: Self) -> bool {
        self.rank < other.rank || (self.rank == other.rank && self.column < other.column)
    }
}

/// Puts runs of `width` elements of `held` in order, `width` being a power of two and `SIZE` the workgroup's invocations, by bitonic sorting; begins and ends with a barrier.
#[device]
pub fn sort_runs<const SIZE: usize, const HELD: usize>(held: &mut [Ranked], width: usize) {
    let mut run = 2;
    while run <= width {
        // Runs of half the length are in order, every other one backwards: together they rise and fall, and exchanges over distances that halve put them in order.
        let mut distance = run / 2;
        while distance > 0 {
            barrier();
            for part in unroll(0..HELD / 2 / SIZE) {
                let pair = local_index() + part * SIZE;
                let low = 2 * pair - (pair & (distance - 1));
                let first = held[low];
                let second = held[low + distance];
                if second.before(first) == ((low & (width - 1) & run) == 0) {
                    held[low] = second;
                    held[low + distance] = first;
                }
            }
            distance /= 2;
        }
        run *= 2;
    }
    barrier();
}
