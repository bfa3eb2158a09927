//! State that all devices keep alike: the first failure, and the counters.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Counters;
use crate::error::{Error, Result};

/// The first failure of a device, after which every call answers with it.
#[derive(Debug, Default)]
pub struct Failure(OnceLock<Error>);

impl Failure {
    /// Goes on if nothing failed yet.
    ///
    /// # Errors
    /// The first failure.
    pub fn check(&self) -> Result<()> {
        self.0.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Notes that the device was lost while it did what `label` names, and gives the error that every call answers from now on:
    /// this one, or the one noted before.
    pub fn lost(&self, device: &str, label: &str, message: impl ToString) -> Error {
        self.0
            .get_or_init(|| Error::Lost {
                device: device.to_owned(),
                label: label.to_owned(),
                message: message.to_string(),
            })
            .clone()
    }
}

/// [`Counters`] that many threads add to.
#[derive(Debug, Default)]
pub struct CounterCells {
    /// [`Counters::pipelines`].
    pub pipelines: AtomicU64,
    /// [`Counters::pipelines_from_cache`].
    pub pipelines_from_cache: AtomicU64,
    /// [`Counters::recordings`].
    pub recordings: AtomicU64,
    /// [`Counters::submissions`].
    pub submissions: AtomicU64,
    allocations: AtomicU64,
    allocated_bytes: AtomicU64,
}

impl CounterCells {
    /// One more of `cell`.
    pub fn add(cell: &AtomicU64) {
        cell.fetch_add(1, Ordering::Relaxed);
    }

    /// A caller got a piece of memory of that size.
    pub fn allocated(&self, bytes: u64) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.allocated_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A piece of memory of that size is gone.
    pub fn freed(&self, bytes: u64) {
        self.allocated_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What they say now.
    pub fn read(&self) -> Counters {
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Counters {
            pipelines: get(&self.pipelines),
            pipelines_from_cache: get(&self.pipelines_from_cache),
            recordings: get(&self.recordings),
            submissions: get(&self.submissions),
            allocations: get(&self.allocations),
            allocated_bytes: get(&self.allocated_bytes),
        }
    }
}
