//! Places in the stream that can be waited for by themselves: what other threads submit behind one is not waited for.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_dsl::error::Result;

use crate::device::Shared;
use crate::driver::message;

/// A place in the stream, which may be set anew once nobody waits for it.
pub(crate) struct Mark {
    shared: Arc<Shared>,
    event: sys::CUevent,
}

// SAFETY: the driver's handle may be used from any thread in which the context is current.
unsafe impl Send for Mark {}

impl Mark {
    /// Makes one that is set nowhere.
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(|error| shared.state.driver("making an event", message(error)))?;
        Ok(Self { shared: shared.clone(), event })
    }

    /// Sets it behind everything that was submitted so far.
    pub(crate) fn set(&self, label: &str) -> Result<()> {
        // SAFETY: the context is current, as in every call of a backend; event and stream are the device's.
        unsafe { result::event::record(self.event, self.shared.handles.stream) }
            .map_err(|error| self.shared.state.lost(label, message(error)))
    }

    /// Waits until the stream has come there; `label` names what is waited for.
    pub(crate) fn wait(&self, label: &str) -> Result<()> {
        // SAFETY: the context is current, and the event is the device's.
        unsafe { result::event::synchronize(self.event) }.map_err(|error| self.shared.state.lost(label, message(error)))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the event is destroyed once; the driver waits with that until the stream has come there. There is nobody to tell of a failure.
            let _ = unsafe { result::event::destroy(self.event) };
        }
    }
}
