//! Device times of commands, by timestamps around one pass for each.

use trefoil_dsl::device::Command;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::lock;

use crate::device::WgpuBackend;
use crate::memory::take_mapped;
use crate::record::Step;

/// Bytes of a timestamp.
const STAMP: u64 = wgpu::QUERY_SIZE as u64;
/// The commands whose timestamps fit one query set.
const MOST_COMMANDS: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

impl WgpuBackend {
    /// Runs commands one at a time and gives the time of each in nanoseconds.
    pub(crate) fn time_list(&self, list: &[Command]) -> Result<Vec<u64>> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        if !shared.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Err(shared.state.driver("timing", "the adapter has no timestamps"));
        }
        let mut times = Vec::with_capacity(list.len());
        for part in list.chunks(MOST_COMMANDS) {
            self.time_part(part, &mut times)?;
        }
        Ok(times)
    }

    fn time_part(&self, list: &[Command], times: &mut Vec<u64>) -> Result<()> {
        let shared = &self.shared;
        let label = Command::first_label(list);
        let count = list.len() as u32 * 2;
        let bytes = u64::from(count) * STAMP;
        let descriptor = wgpu::QuerySetDescriptor { label: Some("timing"), ty: wgpu::QueryType::Timestamp, count };
        let queries = shared
            .scoped(|| shared.device.create_query_set(&descriptor))
            .map_err(|error| shared.state.driver("making a query set", error))?;
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = shared.buffer(bytes, usage, "timestamps")?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = shared.buffer(bytes, usage, "staging for timestamps")?;
        let mut params = lock(&self.params);
        let steps = self.prepare(list, &mut params)?;
        let no_parts = self.no_parts();
        let submission = self.submit(&label, |encoder| {
            let descriptor = |first, last| wgpu::ComputePassDescriptor {
                label: Some(&*label),
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: first,
                    end_of_pass_write_index: last,
                }),
            };
            for (step, query) in steps.iter().zip((0..count).step_by(2)) {
                if let Step::Copy(copy) = step {
                    // Copies stand outside of passes: two empty ones tell the time around it.
                    drop(encoder.begin_compute_pass(&descriptor(None, Some(query))));
                    Step::encode_copy(copy, shared, encoder)?;
                    drop(encoder.begin_compute_pass(&descriptor(None, Some(query + 1))));
                    continue;
                }
                if let Step::Dispatch(dispatch) = step {
                    dispatch.encode_before(shared, encoder)?;
                }
                let mut pass = encoder.begin_compute_pass(&descriptor(Some(query), Some(query + 1)));
                if let Step::Dispatch(dispatch) = step {
                    dispatch.encode(shared, &mut pass, None)?;
                }
            }
            encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
            encoder.copy_buffer_to_buffer(&resolved, 0, &staging, 0, bytes);
            Ok(())
        })?;
        drop((no_parts, params));
        let ticks: Vec<u64> = take_mapped(shared, &staging, bytes, submission, &label, |view| {
            let (stamps, _) = view.as_chunks::<{ STAMP as usize }>();
            stamps.iter().map(|stamp| u64::from_le_bytes(*stamp)).collect()
        })?;
        let period = f64::from(shared.queue.get_timestamp_period());
        let (pairs, _) = ticks.as_chunks::<2>();
        times.extend(list.iter().zip(pairs).map(|(command, pair)| match command {
            Command::Dispatch(_) | Command::Copy(_) => (pair[1].saturating_sub(pair[0]) as f64 * period) as u64,
            Command::Barrier | Command::Call(_) => 0,
        }));
        Ok(())
    }
}
