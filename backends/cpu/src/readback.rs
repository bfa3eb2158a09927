//! Reads that are taken later. Everything submitted is done when its call returns, so that the bytes are copied at once.

use std::fmt;
use std::sync::Arc;

use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::Result;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::check::same_length;
use trefoil_dsl::support::state::lock;

use crate::device::{CpuBackend, Shared};

/// Bytes that were read and not taken yet.
struct CpuRead {
    shared: Arc<Shared>,
    bytes: Vec<u8>,
}

impl CpuBackend {
    /// Copies memory aside.
    pub(crate) fn start_read(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        let shared = &self.shared;
        shared.state.checks().range(from, "read")?;
        // It lies in memory, so that it can be counted.
        let count = from.bytes as usize;
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(count);
        reserved.map_err(|_| shared.state.out_of_memory("what is read later", from.bytes))?;
        bytes.resize(count, 0);
        let _turn = lock(&shared.turn);
        shared.download(from, &mut bytes)?;
        Ok(Box::new(CpuRead { shared: shared.clone(), bytes }))
    }
}

impl fmt::Debug for CpuRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuRead({} bytes)", self.bytes.len())
    }
}

impl PendingRead for CpuRead {
    fn is_ready(&self) -> Result<bool> {
        self.shared.state.failure.check()?;
        Ok(true)
    }

    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()> {
        self.shared.state.failure.check()?;
        same_length(data.len(), self.bytes.len() as u64, "read")?;
        data.copy_from_slice(&self.bytes);
        Ok(())
    }
}
