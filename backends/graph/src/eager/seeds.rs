//! Seeds of random ops, one a launch: many are written at once, so that a launch seldom waits for a write.

use std::sync::Arc;

use super::pool::Buffer;
use crate::graph::SEED_WORDS;

/// Each seed begins at a multiple of this many bytes, where every device can bind it.
const STRIDE: usize = 256;
/// Seeds that are written at once.
const COUNT: usize = 64;

/// The seed of the next launch, and those that the device has already.
#[derive(Debug, Default)]
pub(super) struct Seeds {
    next: u64,
    written: Option<Arc<Buffer>>,
    /// Of those that are written, how many are taken.
    taken: usize,
}

impl Seeds {
    /// Goes on from another seed.
    pub fn set(&mut self, seed: u64) {
        *self = Self { next: seed, ..Self::default() };
    }

    /// Memory that holds the next seed, and the byte at which it lies there; none if more must be written first.
    pub fn take(&mut self) -> Option<(Arc<Buffer>, u64)> {
        let buffer = self.written.clone().filter(|_| self.taken < COUNT)?;
        let offset = self.taken * STRIDE;
        self.taken += 1;
        self.next = self.next.wrapping_add(1);
        Some((buffer, offset as u64))
    }

    /// The bytes to write: the next seed and those after it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; COUNT * STRIDE];
        for (place, ahead) in bytes.chunks_exact_mut(STRIDE).zip(0u64..) {
            let seed = self.next.wrapping_add(ahead).to_le_bytes();
            place[..SEED_WORDS * size_of::<u32>()].copy_from_slice(&seed);
        }
        bytes
    }

    /// They are written.
    pub fn are_in(&mut self, buffer: Arc<Buffer>) {
        self.written = Some(buffer);
        self.taken = 0;
    }
}
