//! Bind groups that are kept from list to list: programs that launch kernels one by one bind the same buffers again and again, and making a bind group costs wgpu as much as all else in a launch.
//!
//! A bind group keeps its buffers alive. So memory that goes takes with it those that bind it ([`BindGroups::forget`]).

use std::collections::HashMap;
use std::sync::Mutex;

use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::lock;

/// The most that are kept: beyond it, all are made anew.
const MOST: usize = 1024;

/// What a bind group is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    /// The pipeline's.
    pub(crate) layout: wgpu::BindGroupLayout,
    /// Buffer, first byte and number of bytes of each binding.
    pub(crate) buffers: Vec<(wgpu::Buffer, u64, u64)>,
}

/// Those of a device.
#[derive(Debug, Default)]
pub(crate) struct BindGroups(Mutex<HashMap<Bound, wgpu::BindGroup>>);

impl BindGroups {
    /// The one that was kept, or what `make` makes, which is kept then.
    pub(crate) fn get(
        &self,
        bound: Bound,
        make: impl FnOnce(&Bound) -> Result<wgpu::BindGroup>,
    ) -> Result<wgpu::BindGroup> {
        let mut kept = lock(&self.0);
        if let Some(known) = kept.get(&bound) {
            return Ok(known.clone());
        }
        let made = make(&bound)?;
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(bound, made.clone());
        Ok(made)
    }

    /// Lets go of those that bind a buffer.
    pub(crate) fn forget(&self, buffer: &wgpu::Buffer) {
        lock(&self.0).retain(|bound, _| bound.buffers.iter().all(|(other, ..)| other != buffer));
    }
}
