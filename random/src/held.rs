//! A device that is opened again when a kernel has lost it.
//!
//! Kernels run side by side, and all that were on their way when a device was lost are told so. Each of them then runs once more with the device to itself: the one that loses it again has failed.

use std::sync::{Arc, PoisonError, RwLock};

use trefoil_codegen::artefact::Kernel;
use trefoil_dsl::device::Device;

use crate::run::{Failure, Found, launched};
use crate::syntax::Program;

/// A device, as long as it lives, and those that come after it.
#[derive(Debug)]
pub struct Held {
    /// The device that was opened first: what it is and has, its successors are and have.
    pub device: Device,
    now: RwLock<Device>,
}

impl Held {
    /// Of an open device.
    pub fn new(device: Device) -> Self {
        Self { now: RwLock::new(device.clone()), device }
    }

    /// The kind's name.
    pub fn name(&self) -> &'static str {
        self.device.kind().name()
    }

    /// What it makes of a kernel; nothing where it lacks what the kernel requires.
    ///
    /// # Errors
    /// It or its driver refuses the kernel, or is lost over it.
    pub fn launched(&self, kernel: &Arc<Kernel>, program: &Program) -> Result<Found, Failure> {
        let (before, found) = {
            let device = self.now.read().unwrap_or_else(PoisonError::into_inner);
            (device.id(), launched(&device, kernel, program))
        };
        match found {
            Err(refused) if refused.lost => {
                let mut device = self.now.write().unwrap_or_else(PoisonError::into_inner);
                // Another kernel that was on its way may have come first.
                if device.id() == before {
                    reopen(&mut device)?;
                }
                launched(&device, kernel, program).map_err(|refused| {
                    let opened = if refused.lost { reopen(&mut device) } else { Ok(()) };
                    opened.err().unwrap_or(refused.failure)
                })
            }
            found => found.map_err(|refused| refused.failure),
        }
    }
}

fn reopen(device: &mut Device) -> Result<(), Failure> {
    let failed =
        |error| Failure { place: device.kind().name().to_owned(), words: format!("it does not open again: {error}") };
    *device = device.reopen().map_err(failed)?;
    Ok(())
}
