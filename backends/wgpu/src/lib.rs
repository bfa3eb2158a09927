//! trefoil's wgpu device: any GPU that wgpu 30 reaches.
//!
//! Kernels come as WGSL; nothing here knows what they compute. wgpu orders dispatches by the buffers that they use, so that barriers
//! of a list need nothing here.
//!
//! # What is particular to wgpu
//! * Kernels that WGSL cannot say come as SPIR-V, where wgpu runs on Vulkan and the adapter multiplies matrices (`passthrough.rs`).
//! * Parameters are always a uniform buffer with a dynamic offset. Blocks given by value are written to one buffer of the device just
//!   before their list is submitted, which the queue orders after every earlier list.
//! * A recording keeps its bind groups; a run encodes one compute pass with them.
//! * Shaders are made without wgpu's run-time checks: kernels carry their own guards where they are needed.
//! * One dispatch may not bind one buffer for reading and for writing, not even in parts ([`Limits::shares_memory_within_dispatch`]).
//! * Errors of wgpu are collected, never left to its handler, which would panic.
//!
//! [`Limits::shares_memory_within_dispatch`]: trefoil_dsl::device::Limits::shares_memory_within_dispatch

mod bind_groups;
mod device;
mod limits;
mod memory;
mod passthrough;
mod pipeline;
mod record;
mod submit;
mod timing;

use std::sync::Arc;

use trefoil_dsl::device::{Device, DeviceOptions, next_device_id};
use trefoil_dsl::error::Result;

/// Opens the wgpu device that `options` ask for: the best one, discrete GPUs first, unless they name one.
///
/// # Errors
/// No driver is there, no adapter goes by that name, or the driver failed.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::WgpuBackend::open(options, id)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// The names of the adapters, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// There is none, with what is probably missing.
pub fn adapters() -> Result<Vec<String>> {
    Ok(limits::usable(&limits::instance(false, false))?.into_iter().map(|adapter| adapter.get_info().name).collect())
}
