//! trefoil's CUDA device: NVIDIA GPUs from compute capability 7.5 on.
//!
//! The driver and NVRTC are opened at run time, so that a machine without them gets an error that says what is missing. Kernels
//! come as CUDA C, which NVRTC compiles to machine code (cubin) for the very GPU; nothing here knows what they compute.
//!
//! # How work reaches the GPU
//! Each device has one stream of its own, on which everything is ordered: copies, lists, recordings, and the making and freeing
//! of memory. So memory that is freed while the GPU uses it goes when the GPU comes to it, and lists see what earlier lists wrote.
//! A recording is a CUDA graph whose edges are the barriers that the list asked for; running it is one launch.
//!
//! Products of matrices may also be cuBLASLt's, where it is installed: in a recording they are what a stream captured of it.
//!
//! # Pointers
//! A kernel gets one pointer for each binding, then its parameter block: as one struct by value, or as a pointer into the
//! recording's run words.

mod device;
mod driver;
mod library;
mod limits;
mod memory;
mod nvrtc;
mod pipeline;
mod ranges;
mod record;
mod submit;
mod tensor_map;
mod timing;

use std::sync::Arc;

use trefoil_dsl::device::{Device, DeviceOptions, next_device_id};
use trefoil_dsl::error::Result;

/// Opens the CUDA device that `options` ask for: the driver's first unless they name one.
///
/// # Errors
/// The driver, NVRTC or a usable GPU is missing, no GPU goes by that name, or the driver failed.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::CudaBackend::open(options, id)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// The names of the usable GPUs, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// The driver or NVRTC is missing, or no GPU is usable, with the reason.
pub fn adapters() -> Result<Vec<String>> {
    driver::start()?;
    Ok(limits::usable()?.into_iter().map(|adapter| adapter.properties.name).collect())
}
