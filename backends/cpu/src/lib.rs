//! trefoil's CPU device: always there, needs nothing.
//!
//! Kernels that were listed when the program was built are compiled Rust; late instances run in the evaluator of
//! `trefoil_codegen::interp`. Nothing here knows what they compute.
//!
//! # How work is done
//! The device has a thread pool of its own. A dispatch is cut into runs of workgroups, which its threads take one after the other;
//! commands run one after the other, and a list is done when the call that submits it returns. So there is nothing to wait
//! for, memory goes when its last handle goes, and barriers are there anyway.

mod device;
mod limits;
mod memory;
mod pipeline;
mod record;
mod submit;
mod timing;

use std::sync::Arc;

use trefoil_dsl::device::{Device, DeviceOptions, next_device_id};
use trefoil_dsl::error::Result;

/// Opens the CPU device. It is the only adapter of its kind; it keeps no cache on disk and has no validation.
///
/// # Errors
/// `options` name another adapter, or the threads could not be started.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::CpuBackend::open(options, id)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// The name of the processor, at the position by which [`DeviceOptions::adapter`] may ask for it.
///
/// # Errors
/// None; other device crates have some.
pub fn adapters() -> Result<Vec<String>> {
    Ok(vec![limits::processor()])
}
