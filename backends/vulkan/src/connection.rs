//! The logical device and its queue: opened here and closed with the last handle, or the program's, which is never closed here.

use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use trefoil_dsl::error::{Error, Result};

use crate::features::DeviceFeatures;
use crate::foreign::WithQueue;
use crate::instance::{Instance, unavailable};
use crate::limits::Adapter;

/// Whose the device is.
pub(crate) enum Connection {
    /// Opened here.
    Own(Box<Own>),
    /// The program's.
    Program {
        /// How its queue is reached.
        queue: Box<WithQueue>,
        /// Keeps the loader's library open.
        _entry: ash::Entry,
    },
}

/// A device that goes with its scope, and then its instance.
pub(crate) struct Own {
    device: ash::Device,
    queue: vk::Queue,
    /// The instance.
    pub(crate) instance: Instance,
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: whoever made objects with the device held this, so that none is left, and its submissions were waited for.
        unsafe { self.device.destroy_device(None) };
    }
}

impl Own {
    /// Makes a logical device, and gives its functions too.
    pub(crate) fn open(instance: Instance, adapter: &Adapter) -> Result<(Self, ash::Device)> {
        let family = adapter.traits.family;
        let mut features: DeviceFeatures = adapter.features.clone();
        let extensions = features.extension_names();
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
        let info = features.push_onto(info);
        // SAFETY: the physical device is this instance's, and every feature and extension named was found present.
        let device = unsafe { instance.raw.create_device(adapter.physical, &info, None) }
            .map_err(|error| unavailable(format!("the driver does not open {}: {error}", adapter.name)))?;
        // SAFETY: one queue of that family was asked for.
        let queue = unsafe { device.get_device_queue(family, 0) };
        Ok((Self { device: device.clone(), queue, instance }, device))
    }
}

impl Connection {
    /// Whether the program uses the device and its queue too.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self, Self::Program { .. })
    }

    /// What the validation layer said since it was last asked; it listens to devices that are opened here.
    pub(crate) fn validation(&self) -> Vec<String> {
        match self {
            Self::Own(own) if own.instance.validates => own.instance.take_messages(),
            _ => Vec::new(),
        }
    }

    /// Submits, and stores `value` in `submitted` as soon as that is done; the message says why nothing was.
    ///
    /// # Safety
    /// What vkQueueSubmit asks for, but that nobody else uses the queue; for that callers need the lock of what is in flight.
    pub(crate) unsafe fn submit(
        &self,
        device: &ash::Device,
        info: &vk::SubmitInfo<'_>,
        submitted: &AtomicU64,
        value: u64,
    ) -> Result<(), String> {
        let submit = |queue| {
            // SAFETY: the caller's promise; nobody else uses the queue, by its lock or within the program's function.
            unsafe { device.queue_submit(queue, std::slice::from_ref(info), vk::Fence::null()) }
                .map_err(|error| error.to_string())?;
            submitted.store(value, Ordering::Release);
            Ok(())
        };
        match self {
            Self::Own(own) => submit(own.queue),
            Self::Program { queue, .. } => {
                let mut result = None;
                queue(&mut |queue| {
                    // Once, however often it is called.
                    if result.is_none() {
                        result = Some(submit(queue));
                    }
                });
                result.unwrap_or_else(|| Err("the program's function did not hand its queue over".to_owned()))
            }
        }
    }
}

/// An error of a call before there is a device to name.
pub(crate) fn failed(name: &str, call: &'static str, error: impl ToString) -> Error {
    Error::Driver { device: name.to_owned(), call, message: error.to_string() }
}
