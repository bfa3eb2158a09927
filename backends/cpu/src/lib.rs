//! trefoil's CPU device: always there, needs nothing.
//!
//! Kernels that were listed when the program was built are compiled Rust; late instances run in the evaluator of
//! `trefoil_codegen::interp`. Nothing here knows what they compute.
//!
//! [`open_checked`] opens it as a device that checks what it runs: races, accesses past the end and the like are reported with the author's lines.
//!
//! # How work is done
//! The device has a thread pool of its own. A dispatch is cut into runs of workgroups, which its threads take one after the other;
//! commands run one after the other, and a list is done when the call that submits it returns. So there is nothing to wait
//! for, memory goes when its last handle goes, and barriers are there anyway. Where indices wrap, so that workgroups of a grid may touch elements of each other's which they access
//! plainly, as many run before the next ones begin as are apart (`CpuFunction::at_once`).
//!
//! With the feature `gemm` lists may hold products of matrices by the crate of that name.

mod checked;
mod device;
#[cfg(feature = "gemm")]
mod library;
mod limits;
mod memory;
mod pipeline;
mod readback;
mod record;
mod submit;
mod timing;

use std::sync::Arc;

use trefoil_codegen::check;
use trefoil_dsl::device::{Device, DeviceOptions, next_device_id};
use trefoil_dsl::error::Result;

pub use checked::Reports;

/// Opens the CPU device. It is the only adapter of its kind; its cache on disk holds what graphs compile for it, and it has no validation.
///
/// # Errors
/// `options` name another adapter, or the threads could not be started.
pub fn open(options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    let backend = device::CpuBackend::open(options, id, None)?;
    let options = options.clone();
    Ok(Device::new(Arc::new(backend), id).opened_by(move || open(&options)))
}

/// Opens the CPU device as one on which [`check`] runs every kernel, and gives what it finds. A kernel needs no code for the CPU there.
///
/// It is for tests: a hundred times as slow, and one dispatch at a time. Functions of the host in a list run as ever.
///
/// # Errors
/// As [`open`], or the size of a subgroup is none.
pub fn open_checked(options: &DeviceOptions, checks: &check::Options) -> Result<(Device, Reports)> {
    let reports = Reports::new(checks.clone());
    Ok((reopen_checked(options, &reports)?, reports))
}

fn reopen_checked(options: &DeviceOptions, reports: &Reports) -> Result<Device> {
    let id = next_device_id();
    let backend = device::CpuBackend::open(options, id, Some(reports.clone()))?;
    let (options, reports) = (options.clone(), reports.clone());
    Ok(Device::new(Arc::new(backend), id).without_reports().opened_by(move || reopen_checked(&options, &reports)))
}

/// The name of the processor, at the position by which [`DeviceOptions::adapter`] may ask for it.
///
/// # Errors
/// None; other device crates have some.
pub fn adapters() -> Result<Vec<String>> {
    Ok(vec![limits::processor()])
}
