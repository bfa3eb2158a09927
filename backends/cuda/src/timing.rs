//! Device times of commands, by events on the stream.

use cudarc::driver::{result, sys};
use trefoil_dsl::device::Command;
use trefoil_dsl::error::Result;
use trefoil_dsl::support::state::lock;

use crate::device::{CudaBackend, Shared};
use crate::driver::message;
use crate::submit::Prepared;

/// An event that goes with its scope.
struct Event(sys::CUevent);

impl Event {
    fn record(shared: &Shared) -> Result<Self> {
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map_err(|error| shared.state.driver("making an event", message(error)))?;
        let event = Self(event);
        // SAFETY: event and stream are the device's, and the context is current.
        unsafe { result::event::record(event.0, shared.handles.stream) }
            .map_err(|error| shared.state.driver("recording an event", message(error)))?;
        Ok(event)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is destroyed once; the driver waits with that until it is reached.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

impl CudaBackend {
    /// Runs commands one at a time and gives the time of each in nanoseconds. The clock has steps of about half a microsecond, and
    /// the time of a very short kernel includes part of its launch.
    pub(crate) fn time_list(&self, list: &[Command]) -> Result<Vec<u64>> {
        let shared = &self.shared;
        shared.state.checks().commands(list, None)?;
        let prepared = self.prepare(list)?;
        let label = Command::first_label(list);
        let queue = lock(&self.queue);
        let mut events = Vec::with_capacity(list.len());
        for (command, mut ready) in list.iter().zip(prepared) {
            let _range = self.range(command);
            if matches!(ready, Prepared::Barrier) {
                events.push(None);
                continue;
            }
            ready.settle(shared)?;
            let start = Event::record(shared)?;
            ready.start(shared)?;
            events.push(Some((start, Event::record(shared)?)));
        }
        drop(queue);
        self.synchronize(&label)?;
        events
            .into_iter()
            .map(|pair| match pair {
                None => Ok(0),
                Some((start, end)) => {
                    // SAFETY: both events were recorded on the one stream and are reached.
                    let milliseconds = unsafe { result::event::elapsed(start.0, end.0) }
                        .map_err(|error| shared.state.lost(&label, message(error)))?;
                    Ok((f64::from(milliseconds) * 1e6) as u64)
                }
            })
            .collect()
    }
}
