//! Which launches of a list wait for those before: ones that touch what another writes, or write what another touches. All others may overlap, which on a GPU is worth more than what a short
//! kernel takes: a barrier drains the device, for two microseconds on Vulkan. The buffer that a kernel reports to, its last binding ([`crate::report`]), does not count: every access of it is atomic.

use crate::device::{DispatchCommand, GroupSource, MemoryRange};
use crate::support::check::{overlap, same_memory};

/// The most launches that wait for none of each other, so that a launch is compared with so many at most.
const MOST_TOGETHER: usize = 64;

/// What the launches since the last barrier touch.
#[derive(Default)]
pub struct Order {
    touched: Vec<(MemoryRange, bool)>,
    launches: usize,
}

impl Order {
    /// Adds a launch, and says whether it waits for those before: then a barrier belongs between them.
    pub fn waits(&mut self, dispatch: &DispatchCommand) -> bool {
        let kernel = dispatch.pipeline.kernel();
        let authors = kernel.bindings.len().saturating_sub(usize::from(!kernel.sites.is_empty()));
        let mut touches: Vec<(MemoryRange, bool)> = dispatch
            .bindings
            .iter()
            .zip(&kernel.bindings[..authors])
            .map(|(range, binding)| (range.clone(), binding.access.writes()))
            .collect();
        if let GroupSource::Memory(counts) = &dispatch.groups {
            touches.push((counts.clone(), false));
        }
        let meets = |(a, writes): &(MemoryRange, bool), (b, wrote): &(MemoryRange, bool)| {
            (*writes || *wrote) && overlap(a, b) && same_memory(&a.memory, &b.memory)
        };
        let waits = self.launches == MOST_TOGETHER
            || touches.iter().any(|touch| self.touched.iter().any(|other| meets(touch, other)));
        if waits {
            *self = Self::default();
        }
        self.touched.append(&mut touches);
        self.launches += 1;
        waits
    }
}
