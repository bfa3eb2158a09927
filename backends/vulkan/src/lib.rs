//! trefoil's Vulkan device: any GPU with a Vulkan 1.2 driver that has timeline semaphores and the Vulkan memory model.
//!
//! The loader is opened at run time, so that a machine without it gets an error that says what is missing. Kernels come as
//! SPIR-V; nothing here knows what they compute.
//!
//! # How work reaches the GPU
//! There is one queue. Each submission signals the next value of one timeline semaphore; whatever the GPU may still use (memory,
//! staging buffers, descriptor pools, pipelines) is held until the semaphore passes the value of the last submission that uses
//! it. Every list begins with a barrier against all earlier work and ends with one towards the host, so that lists see each
//! other's writes; inside a list there are only the barriers that it asks for.
//!
//! # Memory
//! Small pieces of memory lie in device memory that the host can write to, where a device has such memory over the whole heap:
//! they are written without a copy on the device. All others are reached through pooled staging buffers, unless what a program brings or takes
//! lies in a pinned buffer of its own, which the device copies by itself.

mod device;
mod float_modes;
mod instance;
mod limits;
mod memory;
mod pinned;
mod pipeline;
mod record;
mod submit;
mod timing;

use std::sync::Arc;

use trefoil_dsl::device::{Device, DeviceOptions, next_device_id};
use trefoil_dsl::error::Result;

/// Opens the Vulkan device that `options` ask for: the best one, discrete GPUs first, unless they name one.
///
/// # Errors
/// The loader, a driver or a feature is missing, no adapter goes by that name, or the driver failed.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::VulkanBackend::open(options, id)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// The names of the usable adapters, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// The loader or every driver is missing, or no adapter is usable, with the reason.
pub fn adapters() -> Result<Vec<String>> {
    let instance = instance::Instance::open(false, false)?;
    Ok(limits::usable(&instance)?.into_iter().map(|adapter| adapter.name).collect())
}
