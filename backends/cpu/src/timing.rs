//! Times of commands, by the clock of the host.

use std::time::Instant;

use trefoil_dsl::device::Command;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::lock;

use crate::device::CpuBackend;

impl CpuBackend {
    /// Runs commands one at a time and gives the time of each in nanoseconds, from the first workgroup to the last.
    pub(crate) fn time_list(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.check(commands)?;
        let _turn = lock(&self.shared.turn);
        let shared = &self.shared;
        shared.on_pool(|| {
            commands
                .iter()
                .map(|command| {
                    if matches!(command, Command::Barrier) {
                        return Ok(0);
                    }
                    let start = Instant::now();
                    shared.command(command, &[])?;
                    Ok(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
                })
                .collect()
        })
    }
}
