//! Device times of commands, by the timestamps of the queue.

use ash::vk;
use trefoil_dsl::device::Command;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::lock;

use crate::device::{Shared, VulkanBackend};
use crate::memory::Direction;
use crate::record::{Encoder, Kept, ONCE, spilled_bytes};

/// A query pool that goes with its scope.
struct Queries<'a> {
    shared: &'a Shared,
    handle: vk::QueryPool,
}

impl Drop for Queries<'_> {
    fn drop(&mut self) {
        if self.shared.state.failure.check().is_err() {
            self.shared.finish();
        }
        // SAFETY: the list that used it was waited for.
        unsafe { self.shared.device.destroy_query_pool(self.handle, None) };
    }
}

impl VulkanBackend {
    /// Runs commands one at a time and gives the time of each in nanoseconds.
    pub(crate) fn time_list(&self, list: &[Command]) -> Result<Vec<u64>> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        if shared.traits.tick == 0.0 {
            return Err(shared.state.driver("timing", "the queue has no clock"));
        }
        if list.is_empty() {
            return Ok(Vec::new());
        }
        let count = u32::try_from(list.len() * 2).map_err(|_| shared.state.driver("timing", "the list is too long"))?;
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(count);
        // SAFETY: the device is alive, and the queue has timestamps.
        let handle = unsafe { shared.device.create_query_pool(&info, None) }
            .map_err(|error| shared.state.driver("making a query pool", error))?;
        let queries = Queries { shared, handle };
        let spill = spilled_bytes(shared, list)?;
        let label = Command::first_label(list);

        let mut queue = lock(&self.queue);
        let mut slot = queue.slot(shared)?;
        let staging = match spill {
            0 => None,
            bytes => Some(queue.take_staging(shared, bytes, Direction::Upload)?),
        };
        let commands = slot.commands.buffers[0];
        let mut encoder = Encoder::begin(shared, commands, &mut slot.descriptors, ONCE)?
            .with(None, staging.as_ref().map(|staging| &staging.buffer));
        // SAFETY: the command buffer is being recorded; the queries are reset before they are written.
        unsafe { shared.device.cmd_reset_query_pool(encoder.raw(), handle, 0, count) };
        let stamp = |encoder: &Encoder<'_>, query: u32| {
            // SAFETY: as above.
            unsafe {
                let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
                shared.device.cmd_write_timestamp(encoder.raw(), stage, handle, query);
            }
        };
        for (command, query) in list.iter().zip((0..count).step_by(2)) {
            encoder.full_barrier();
            stamp(&encoder, query);
            match command {
                Command::Dispatch(dispatch) => encoder.dispatch(dispatch)?,
                Command::Copy(copy) => encoder.copy_command(copy)?,
                Command::Call(host) => return Err(host.refused(&shared.state.properties)),
                Command::Barrier => {}
            }
            // It waits for the end of all commands before it.
            stamp(&encoder, query + 1);
        }
        let commands = encoder.end()?;
        let staging = staging.into_iter().collect();
        let value = queue.submit(shared, &[commands], Some(slot), staging, Kept::of(list), &label)?;
        drop(queue);
        shared.wait_for(value, &label)?;

        let mut ticks = vec![0u64; count as usize];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: the list is finished; the results fit the slice.
        unsafe { shared.device.get_query_pool_results(queries.handle, 0, &mut ticks, flags) }
            .map_err(|error| shared.state.lost(&label, error))?;
        let nanoseconds = |pair: &[u64; 2]| {
            let ticks = pair[1].wrapping_sub(pair[0]) & shared.traits.timestamp_mask;
            (ticks as f64 * shared.traits.tick) as u64
        };
        let (pairs, _) = ticks.as_chunks::<2>();
        Ok(list
            .iter()
            .zip(pairs)
            .map(|(command, pair)| if matches!(command, Command::Barrier) { 0 } else { nanoseconds(pair) })
            .collect())
    }
}
