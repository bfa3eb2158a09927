//! That what a kernel on the CPU writes is bound once: what it only reads it has as slices, which nobody may write meanwhile. Launches and graphs see to that before they make a dispatch, so that hardly any has bindings to look at here.

use std::ops::Range;

use trefoil_codegen::artefact::Kernel;

use super::words::{Length, lengths};
use super::{overlap, same_memory};
use crate::device::{DispatchCommand, MemoryRange};

/// What a kernel has of a range: as much as its parameters say, or all of it.
#[derive(Clone, Copy, Debug)]
struct Part {
    binding: usize,
    first: u64,
    bytes: u64,
    length: Option<Length>,
}

impl Part {
    fn of(dispatch: &DispatchCommand, binding: usize, range: &MemoryRange) -> Self {
        let length = lengths(dispatch).flatten().find(|length| length.is_of(binding));
        Self { binding, first: range.offset, bytes: range.bytes, length }
    }

    /// Its bytes of the memory, by a parameter block; none that are not there.
    fn bytes(&self, block: &[u8]) -> Option<Range<u64>> {
        let within = match &self.length {
            Some(length) => length.bytes(block)?,
            None => 0..self.bytes,
        };
        Some(self.first.checked_add(within.start)?..self.first.checked_add(within.end)?)
    }

    fn name<'k>(&self, kernel: &'k Kernel) -> &'k str {
        kernel.bindings.get(self.binding).map_or("", |binding| &*binding.name)
    }
}

/// Two bindings whose ranges overlap, one of which at least is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair(Part, Part);

/// Those of a dispatch, which has a range for each binding of its kernel, all of them within their memory.
pub(super) fn pairs(dispatch: &DispatchCommand) -> Vec<Pair> {
    let bound = || dispatch.bindings.iter().zip(&*dispatch.pipeline.kernel().bindings).enumerate();
    let mut pairs = Vec::new();
    for (a, (one, of_one)) in bound() {
        for (b, (other, of_other)) in bound().skip(a + 1) {
            let is_written = of_one.access.writes() || of_other.access.writes();
            if is_written && overlap(one, other) && same_memory(&one.memory, &other.memory) {
                pairs.push(Pair(Part::of(dispatch, a, one), Part::of(dispatch, b, other)));
            }
        }
    }
    pairs
}

impl Pair {
    /// Checks that what the kernel has of both is apart, by a parameter block.
    pub(super) fn check(&self, kernel: &Kernel, block: &[u8]) -> Result<(), String> {
        let Self(one, other) = self;
        let (Some(a), Some(b)) = (one.bytes(block), other.bytes(block)) else { return Ok(()) };
        if a.start.max(b.start) >= a.end.min(b.end) {
            return Ok(());
        }
        Err(format!(
            "`{}` and `{}`, bytes {a:?} and {b:?} of one piece of memory, overlap: what is written must be bound once",
            one.name(kernel),
            other.name(kernel)
        ))
    }
}
