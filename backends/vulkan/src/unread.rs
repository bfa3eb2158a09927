//! What runs take that the host reads by itself, without a copy on the way: each run's own, as its commands left it.
//!
//! Nobody who only submits waits until a run is done and has read that. But who is about to change such memory, before the run has come to it, waits for the run and reads the bytes in its stead.
//! All of this happens under the lock of the queue, which is the order of submissions.

use std::sync::Arc;

use trefoil_dsl::device::{Memory, MemoryRange};
use trefoil_dsl::error::Result;

use crate::device::Shared;
use crate::memory::VulkanMemory;

/// A range that a run takes. Who called for the run holds its memory meanwhile.
struct Taken {
    /// The submission of the run, and its name.
    value: u64,
    label: Arc<str>,
    range: MemoryRange,
    /// Its bytes, if somebody else has read them.
    bytes: Option<Vec<u8>>,
}

/// What runs that were submitted have not read.
#[derive(Default)]
pub(crate) struct Unread(Vec<Taken>);

impl Unread {
    /// Adds a range that the run of this submission takes.
    pub(crate) fn add(&mut self, value: u64, label: &Arc<str>, range: &MemoryRange) {
        self.0.push(Taken { value, label: label.clone(), range: range.clone(), bytes: None });
    }

    /// Reads for their runs the ranges in memory that is about to change.
    pub(crate) fn read_ahead(&mut self, shared: &Shared, changes: impl Fn(&Arc<dyn Memory>) -> bool) -> Result<()> {
        for taken in self.0.iter_mut().filter(|taken| taken.bytes.is_none() && changes(&taken.range.memory)) {
            let MemoryRange { memory, offset, bytes } = &taken.range;
            let mut read = Vec::new();
            // It lies in memory, so that it can be counted.
            let reserved = read.try_reserve_exact(*bytes as usize);
            reserved.map_err(|_| shared.state.out_of_memory("what a run takes", *bytes))?;
            read.resize(*bytes as usize, 0);
            shared.wait_for(taken.value, &taken.label)?;
            VulkanMemory::of(memory, shared)?.buffer.read_host(*offset, &mut read)?;
            taken.bytes = Some(read);
        }
        Ok(())
    }

    /// Forgets the ranges of a run, and gives in their order what others have read of them.
    pub(crate) fn take(&mut self, value: u64) -> Vec<Option<Vec<u8>>> {
        self.0.extract_if(.., |taken| taken.value == value).map(|taken| taken.bytes).collect()
    }
}
