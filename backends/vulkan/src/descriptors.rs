//! Descriptor sets, from pools that grow.

use std::sync::Arc;

use ash::vk;
use trefoil_dsl::error::Result;

use crate::device::Shared;

/// Descriptor sets of one descriptor pool.
const SETS: u32 = 128;
/// Storage buffers of one descriptor pool, for each of its sets on average.
const BUFFERS_PER_SET: u32 = 8;

/// Descriptor pools that grow, and are emptied all at once.
pub(crate) struct Descriptors {
    shared: Arc<Shared>,
    pools: Vec<vk::DescriptorPool>,
    current: usize,
}

impl Descriptors {
    /// None yet.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), pools: Vec::new(), current: 0 }
    }

    /// Empties all pools; the device must be done with their sets.
    pub(crate) fn reset(&mut self) -> Result<()> {
        for pool in &self.pools {
            // SAFETY: callers ensure that no set of the pool is in use.
            unsafe { self.shared.device.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty()) }
                .map_err(|error| self.shared.state.driver("emptying a descriptor pool", error))?;
        }
        self.current = 0;
        Ok(())
    }

    /// A set for a layout with so many storage buffers.
    pub(crate) fn set(&mut self, layout: vk::DescriptorSetLayout, storage: u32) -> Result<vk::DescriptorSet> {
        loop {
            let fresh = self.current == self.pools.len();
            if fresh {
                self.pools.push(self.pool(storage)?);
            }
            let layouts = [layout];
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: pool and layout are this device's.
            match unsafe { self.shared.device.allocate_descriptor_sets(&info) } {
                Ok(sets) => {
                    return sets
                        .first()
                        .copied()
                        .ok_or_else(|| self.shared.state.driver("making a descriptor set", "the driver gave none"));
                }
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) if !fresh => {
                    self.current += 1;
                }
                Err(error) => return Err(self.shared.state.driver("making a descriptor set", error)),
            }
        }
    }

    fn pool(&self, storage: u32) -> Result<vk::DescriptorPool> {
        let size = |kind, count| vk::DescriptorPoolSize { ty: kind, descriptor_count: count };
        let sizes = [
            size(vk::DescriptorType::STORAGE_BUFFER, (SETS * BUFFERS_PER_SET).max(storage)),
            size(vk::DescriptorType::STORAGE_BUFFER_DYNAMIC, SETS),
        ];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(SETS).pool_sizes(&sizes);
        // SAFETY: the device is alive.
        unsafe { self.shared.device.create_descriptor_pool(&info, None) }
            .map_err(|error| self.shared.state.driver("making a descriptor pool", error))
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        for pool in &self.pools {
            // SAFETY: slots and recordings go only when the device is done with them.
            unsafe { self.shared.device.destroy_descriptor_pool(*pool, None) };
        }
    }
}
