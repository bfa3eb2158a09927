//! Reads that are taken later: a copy on the stream to pinned memory, and an event behind it.
//!
//! Making and freeing pinned memory may wait for the GPU, so that what reads give back is kept for later ones. Once a read is under way, nothing here uses the stream: it may be taken while the program captures that.

use std::sync::{Arc, Mutex};

use cudarc::driver::{result, sys};
use trefoil_dsl::device::MemoryRange;
use trefoil_dsl::error::Result;
use trefoil_dsl::pinned::Pinned as _;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::check::same_length;
use trefoil_dsl::support::state::lock;

use crate::device::{CudaBackend, Shared};
use crate::driver::message;
use crate::memory::{PINNED_MINIMUM, PINNED_MOST, Pinned};

/// The most bytes that are kept for later reads.
const KEPT: usize = 128 * 1024 * 1024;

/// Pinned memory to which a read is copied, and the event behind that copy.
#[derive(Debug)]
struct Landing {
    event: sys::CUevent,
    // Goes last, when the copy has been waited for.
    pinned: Pinned,
}

// SAFETY: the event may be used from any thread in which the context is current.
unsafe impl Send for Landing {}
// SAFETY: as above; the driver locks what threads share.
unsafe impl Sync for Landing {}

impl Landing {
    /// Of at least `bytes` bytes; the context is current.
    fn new(shared: &Arc<Shared>, bytes: usize) -> Result<Self> {
        // Small ones serve others again; a large one is no larger than it must be.
        let size = if bytes > PINNED_MOST { bytes } else { bytes.max(PINNED_MINIMUM).next_power_of_two() };
        let pinned = Pinned::new(shared, size, "staging for what is read later")?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| shared.state.driver("making an event", message(error)))?;
        Ok(Self { event, pinned })
    }

    /// Puts the event behind what is on the stream; the context is current.
    fn record(&self, label: &str) -> Result<()> {
        // SAFETY: event and stream are the device's, and the context is current.
        unsafe { result::event::record(self.event, self.pinned.shared.handles.stream) }
            .map_err(|error| self.pinned.shared.state.lost(label, message(error)))
    }

    /// Whether the GPU has come to the event, or there was none; the context is current.
    fn is_done(&self) -> Result<bool, result::DriverError> {
        // SAFETY: the event is there as long as `self`, and the context is current.
        match unsafe { result::event::query(self.event) } {
            Ok(()) => Ok(true),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for the event; the context is current.
    fn wait(&self) -> Result<(), result::DriverError> {
        // SAFETY: as in `is_done`.
        unsafe { result::event::synchronize(self.event) }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if let Ok(_entered) = self.pinned.shared.enter() {
            // The memory goes next, and the GPU may be writing there. If the device is lost it writes no more.
            let _ = self.wait();
            // SAFETY: the context is current; the driver made the event, and it is destroyed once.
            let _ = unsafe { result::event::destroy(self.event) };
        }
    }
}

/// Pinned memory that no read has. The GPU may be writing to some of it still, for reads that went before they were taken.
#[derive(Debug, Default)]
pub(crate) struct Landings(Vec<Landing>);

impl Landings {
    /// One of at least `bytes` bytes that the GPU is done with; the context is current.
    fn take(&mut self, shared: &Arc<Shared>, bytes: usize) -> Result<Landing> {
        let fits = |landing: &Landing| landing.pinned.bytes >= bytes && matches!(landing.is_done(), Ok(true));
        let best = self.0.iter().enumerate().filter(|(_, l)| fits(l)).min_by_key(|(_, l)| l.pinned.bytes);
        match best {
            Some((at, _)) => Ok(self.0.swap_remove(at)),
            None => Landing::new(shared, bytes),
        }
    }

    /// Takes one back, and frees what is more than is kept, unless the GPU may be writing there; the context is current.
    fn give(&mut self, landing: Landing) {
        self.0.push(landing);
        let mut kept = 0;
        self.0.retain(|landing| {
            let stays = kept + landing.pinned.bytes <= KEPT || !matches!(landing.is_done(), Ok(true));
            kept += if stays { landing.pinned.bytes } else { 0 };
            stays
        });
    }
}

/// A read under way.
#[derive(Debug)]
struct CudaRead {
    shared: Arc<Shared>,
    landings: Arc<Mutex<Landings>>,
    /// There until this goes.
    landing: Option<Landing>,
    bytes: usize,
    /// For errors that the GPU reports.
    label: Arc<str>,
}

impl CudaBackend {
    /// Starts the copy.
    pub(crate) fn start_read(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        let shared = &self.shared;
        shared.state.checks().range(from, "read")?;
        // It lies in memory, so that it can be counted.
        let bytes = from.bytes as usize;
        let address = self.address(from)?;
        let mut landing = lock(&self.landings).take(shared, bytes)?;
        // A list or a run of another thread is whole before or behind it.
        let queue = lock(&self.queue);
        let label = queue.label("read");
        let started = match bytes {
            0 => Ok(()),
            _ => self.start_download(address, &mut landing.pinned.bytes_mut()[..bytes], &label),
        };
        let started = started.and_then(|()| landing.record(&label));
        drop(queue);
        if let Err(error) = started {
            // The copy may be on its way, of which no event tells.
            let _ = self.synchronize(&label);
            return Err(error);
        }
        let (shared, landings) = (shared.clone(), self.landings.clone());
        Ok(Box::new(CudaRead { shared, landings, landing: Some(landing), bytes, label }))
    }
}

impl PendingRead for CudaRead {
    fn is_ready(&self) -> Result<bool> {
        let shared = &self.shared;
        shared.state.failure.check()?;
        let Some(landing) = &self.landing else { return Ok(true) };
        let _entered = shared.enter()?;
        landing.is_done().map_err(|error| shared.state.lost(&self.label, message(error)))
    }

    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()> {
        let shared = &self.shared;
        shared.state.failure.check()?;
        same_length(data.len(), self.bytes as u64, "read")?;
        let Some(landing) = &self.landing else { return Ok(()) };
        let _entered = shared.enter()?;
        landing.wait().map_err(|error| shared.state.lost(&self.label, message(error)))?;
        data.copy_from_slice(&landing.pinned.bytes()[..self.bytes]);
        Ok(())
    }
}

impl Drop for CudaRead {
    fn drop(&mut self) {
        // Without a context nothing can be given back.
        if let (Some(landing), Ok(_entered)) = (self.landing.take(), self.shared.enter()) {
            lock(&self.landings).give(landing);
        }
    }
}
