//! State that all devices keep alike: who they are, the first failure, and the counters.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::check::Checks;
use crate::device::{Counters, Properties};
use crate::error::{Error, Result};

/// Locks a mutex; a thread that panicked while it held the lock left nothing half done that matters, because every change under
/// a device's locks is a single step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What every open device has, and the errors that name it.
#[derive(Debug)]
pub struct DeviceState {
    /// The device's id.
    pub id: u64,
    /// What callers may know.
    pub properties: Properties,
    /// The first failure.
    pub failure: Failure,
    /// What was done so far.
    pub counters: CounterCells,
}

impl DeviceState {
    /// A device that has done nothing yet.
    pub fn new(id: u64, properties: Properties) -> Self {
        Self { id, properties, failure: Failure::default(), counters: CounterCells::default() }
    }

    /// A driver call failed.
    pub fn driver(&self, call: &'static str, message: impl ToString) -> Error {
        Error::Driver { device: self.properties.name.clone(), call, message: message.to_string() }
    }

    /// The device failed in what `label` names, and answers nothing from now on.
    pub fn lost(&self, label: &str, message: impl ToString) -> Error {
        self.failure.lost(&self.properties.name, label, message)
    }

    /// The rules of the interface, for this device.
    pub fn checks(&self) -> Checks<'_> {
        Checks { id: self.id, properties: &self.properties }
    }

    /// There is no memory left for the `bytes` bytes that `label` names.
    pub fn out_of_memory(&self, label: &str, bytes: u64) -> Error {
        self.properties.out_of_memory(label, bytes)
    }

    /// The backend's own type behind a handle of the interface.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], which names `what`, if another kind of device made it.
    pub fn own<'a, T: Any>(&self, handle: &'a dyn Any, what: &str) -> Result<&'a T> {
        handle.downcast_ref().ok_or_else(|| self.properties.other_device(what))
    }

    /// Goes on if it was this device that made something.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], which names `what`.
    pub fn made(&self, owner: u64, what: &str) -> Result<()> {
        self.checks().owner(owner, || what.to_owned())
    }
}

/// The first failure of a device, after which every call answers with it. Clones share it, for callbacks of a driver.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<OnceLock<Error>>);

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
