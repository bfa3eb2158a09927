//! trefoil's wgpu device: any GPU with a Vulkan driver, through wgpu 30.
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
//! * Workgroup counts in memory pass a kernel of our own before they are dispatched (`indirect.rs`).
//! * Errors of wgpu are collected, never left to its handler, which would panic. What it refuses is an error of its command; the device goes on.
//!
//! [`Limits::shares_memory_within_dispatch`]: trefoil_dsl::device::Limits::shares_memory_within_dispatch

mod bind_groups;
mod device;
mod indirect;
mod limits;
mod memory;
mod passthrough;
mod pipeline;
mod readback;
mod record;
mod submit;
mod timing;

use std::sync::Arc;

use trefoil_dsl::device::{Device, DeviceOptions, Memory, next_device_id};
use trefoil_dsl::error::Result;

/// The wgpu whose devices and buffers [`open_on`] and [`memory()`] take.
pub use wgpu;

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

/// What a program may ask wgpu for to get a device that it shares with trefoil ([`open_on`]): what the adapter has of the features that kernels use, and all of its limits. A device that has less serves too: kernels that want more are not chosen there.
///
/// Products of matrices on tensor cores want [`wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX`], [`wgpu::Features::PASSTHROUGH_SHADERS`] and [`wgpu::ExperimentalFeatures`] besides, which are for the program to allow.
pub fn device_descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        label: Some("shared with trefoil"),
        required_features: adapter.features() & limits::FEATURES,
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    }
}

/// Runs trefoil on a device that the program opened and goes on using, such as that of a renderer: trefoil's commands and the program's follow each other in the order in which they are submitted to `queue`.
/// `adapter` is the one that gave the device.
///
/// The program's handlers of errors and of the device's loss stay as they are. Of a loss trefoil learns at its next wait or read, from which on every call answers with it; what it submits before that may do nothing.
///
/// From within trefoil's submissions and waits wgpu calls the program's own functions too, such as those of [`wgpu::Queue::on_submitted_work_done`]. They must not call trefoil on this device: such a call is answered with an error.
///
/// ```
/// use trefoil_dsl::device::DeviceOptions;
/// let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
/// let Ok(adapter) = pollster::block_on(instance.request_adapter(&Default::default())) else { return Ok(()) };
/// let (device, queue) = pollster::block_on(adapter.request_device(&trefoil_wgpu::device_descriptor(&adapter)))?;
/// let shared = trefoil_wgpu::open_on(&adapter, &device, &queue, &DeviceOptions::default())?;
///
/// // A buffer of the program's is memory for trefoil, and the other way round.
/// let vertices = device.create_buffer(&wgpu::BufferDescriptor {
///     label: None,
///     size: 64,
///     usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
///     mapped_at_creation: false,
/// });
/// queue.write_buffer(&vertices, 0, &[7; 64]);
/// let memory = trefoil_wgpu::memory(&shared, &vertices)?;
/// // Launches take it as elements.
/// let words = shared.buffer_of::<u32>(&memory, 16)?;
/// assert_eq!(words.read()?, [0x0707_0707; 16]);
/// let numbers = shared.buffer(&[1f32; 10])?;
/// assert_eq!(trefoil_wgpu::buffer(&**numbers.memory()).map(wgpu::Buffer::size), Some(48));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `options` ask for another adapter or for validation, which are settled; or the cache's folder cannot be made.
pub fn open_on(
    adapter: &wgpu::Adapter,
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    options: &DeviceOptions,
) -> Result<Device> {
    let id = next_device_id();
    Ok(Device::new(Arc::new(device::WgpuBackend::open_on(adapter, device, queue, options, id)?), id))
}

/// A buffer of the program's own as memory of `device`, for inputs and outputs of runs, and for launches as a typed buffer ([`Device::buffer_of`]). It must not be mapped or destroyed while trefoil's commands use it.
///
/// As in every call of wgpu, the buffer must be of the same [`wgpu::Instance`]: wgpu panics otherwise, or takes another buffer of that number.
///
/// # Errors
/// `device` is none of wgpu's, the buffer is another device's, its usage lacks storage or copies, or its size is no multiple of 16 bytes.
pub fn memory(device: &Device, buffer: &wgpu::Buffer) -> Result<Arc<dyn Memory>> {
    let backend: &device::WgpuBackend = device.backend_of("a buffer of wgpu")?;
    Ok(Arc::new(backend.adopt(buffer)?))
}

/// The buffer that a piece of memory of a wgpu device is; none of other devices'. It has room for whole multiples of 16 bytes, and for 32 at least. What the program submits with it, to the queue that it shares, is ordered by wgpu.
pub fn buffer(memory: &dyn Memory) -> Option<&wgpu::Buffer> {
    memory.as_any().downcast_ref().map(|memory: &memory::WgpuMemory| &memory.buffer)
}

/// The names of the adapters, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// There is none, with what is probably missing.
pub fn adapters() -> Result<Vec<String>> {
    Ok(limits::usable(&limits::instance(false, false)?)?.into_iter().map(|adapter| adapter.get_info().name).collect())
}
