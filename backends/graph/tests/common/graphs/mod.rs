//! Graphs drawn at random from the op table, what their outputs may be, and small graphs made of those that fail.
//!
//! A graph is a function of its seed. Every op comes from the table's own uses ([`trefoil_graph::ops::table::uses`]), so that a new op is drawn by itself: its use is built aside and grafted, with tensors that are there in the
//! place of its inputs, where they fit as they are, by a view or by a cast. Extents of the table are exchanged for others, and for symbols, wherever the op takes them.

mod bounds;
mod draw;
mod reduce;
mod run;

pub use draw::{Drawn, draw};
pub use reduce::{listing, reduced};
pub use run::{Failure, Outcome, check};

/// Numbers without a pattern (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        if all.is_empty() { None } else { all.get(self.below(all.len())) }
    }
}
