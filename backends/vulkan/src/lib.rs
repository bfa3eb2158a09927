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
//! lies in a pinned buffer of its own, which the device copies by itself. What is read later goes to a buffer of its own, which goes with the read, and not before the device is done.
//!
//! # On a device of the program's
//! [`open_on`] takes the program's handles. The queue is the program's as well, and is used by turns; lists begin with a barrier after every earlier command of the queue and end
//! with one before every later command, whoever's they are. The host never writes to memory on the device, since only the queue knows whether a command of the program's uses it. Nothing waits for the whole device.

mod connection;
mod descriptors;
mod device;
mod features;
mod float_modes;
mod foreign;
mod instance;
mod limits;
mod memory;
mod pinned;
mod pipeline;
mod readback;
mod record;
mod submit;
mod timing;
mod unread;

use std::any::Any;
use std::sync::Arc;

use ash::vk;
use trefoil_dsl::device::{Device, DeviceOptions, Memory, next_device_id};
use trefoil_dsl::error::Result;

/// The ash whose handles [`open_on`], [`device_features`] and [`memory()`] take.
pub use ash;

pub use crate::features::{DeviceFeatures, ShaderBfloat16Features};
pub use crate::foreign::{OpenedDevice, WithQueue};

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

/// What a program may enable on a device that it shares with trefoil ([`open_on`]): what the physical device has of what kernels use. The program adds what it wants itself, or copies the flags to structures of its own.
/// A device that has less serves too, if it has what [`DeviceFeatures`] names as needed.
///
/// `api_version` is the version that the instance was made for ([`vk::ApplicationInfo::api_version`]).
///
/// # Errors
/// The version or something that is needed is missing.
///
/// # Safety
/// `entry`, `instance` and `physical` belong together, and the instance was made for that version.
pub unsafe fn device_features(
    entry: &ash::Entry,
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    api_version: u32,
) -> Result<DeviceFeatures> {
    // SAFETY: the caller's promise.
    unsafe { foreign::wanted(limits::Api { entry, instance, version: api_version }, physical) }
}

/// Runs trefoil on a device that the program opened and goes on using, such as that of a renderer.
///
/// Everything goes to the one queue that the program names, which the program and trefoil use by turns ([`WithQueue`]). Each list of trefoil's, and each run, begins with a memory barrier from all commands that
/// were submitted to the queue before (`ALL_COMMANDS`, `MEMORY_WRITE`) and ends with one to all that come after (`ALL_COMMANDS` and the host, `MEMORY_READ | MEMORY_WRITE`). So the program needs none of its own on that
/// queue. What it does on other queues it orders by semaphores that its submissions to this queue wait for and signal, which may be empty.
/// Buffers that other families of queues use too it hands over, or makes with [`vk::SharingMode::CONCURRENT`]; trefoil's are exclusive.
///
/// Pipelines, memory and whatever else trefoil makes goes with the returned device and what was made with it; the program's device and instance stay. trefoil waits for its own submissions alone.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use ash::vk;
/// use trefoil_dsl::device::DeviceOptions;
///
/// // SAFETY: every handle below comes from the one before and outlives what is made with it.
/// unsafe {
///     let Ok(entry) = ash::Entry::load() else { return Ok(()) };
///     let version = vk::API_VERSION_1_2;
///     let application = vk::ApplicationInfo::default().api_version(version);
///     let info = vk::InstanceCreateInfo::default().application_info(&application);
///     let Ok(instance) = entry.create_instance(&info, None) else { return Ok(()) };
///     let Some(&physical) = instance.enumerate_physical_devices()?.first() else { return Ok(()) };
///
///     // The program's device, with what kernels can use; a renderer adds what it needs.
///     let mut features = trefoil_vulkan::device_features(&entry, &instance, physical, version)?;
///     let extensions = features.extension_names();
///     let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
///     let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
///     let device = instance.create_device(physical, &features.push_onto(info), None)?;
///     let queue = Arc::new(Mutex::new(device.get_device_queue(0, 0)));
///
///     let lock = queue.clone();
///     let opened = trefoil_vulkan::OpenedDevice {
///         entry: &entry,
///         instance: &instance,
///         physical,
///         device: &device,
///         enabled: &features,
///         family: 0,
///         queue: Box::new(move |submit| submit(*lock.lock().unwrap())),
///     };
///     let shared = trefoil_vulkan::open_on(opened, &DeviceOptions::default())?;
///
///     // Buffers of trefoil's are the program's to use, and the other way round (`memory`).
///     let numbers = shared.buffer(&[1f32, 2.0])?;
///     assert!(trefoil_vulkan::buffer(&**numbers.memory()).is_some());
///     assert_eq!(numbers.read()?, [1.0, 2.0]);
///
///     drop((numbers, shared));
///     device.destroy_device(None);
///     instance.destroy_instance(None);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The device was opened without something that is needed, which the error names; the queue's family does not compute; `options` ask for another adapter or for validation, which are settled; the cache's folder cannot be made; or the driver failed.
///
/// # Safety
/// * The handles belong together, and `enabled` names only what the instance and the device were made with.
/// * `queue` hands over a queue of the device, of that family, that was made without flags such as protected, and nobody else uses the queue meanwhile.
/// * Instance and device live until the returned device and everything made with it is dropped, and with that `queue` ([`WithQueue`]).
pub unsafe fn open_on(opened: OpenedDevice<'_>, options: &DeviceOptions) -> Result<Device> {
    let id = next_device_id();
    // SAFETY: the caller's promise.
    let backend = unsafe { device::VulkanBackend::open_on(opened, options, id) }?;
    Ok(Device::new(Arc::new(backend), id))
}

/// The first `bytes` bytes of a buffer of the program's own as memory of a device that it shares ([`open_on`]), for inputs and outputs of runs, and for launches as a typed buffer ([`Device::buffer_of`]). A part of a buffer is a range of this memory; bound ranges begin at multiples
/// of [`Limits::binding_alignment`](trefoil_dsl::device::Limits::binding_alignment).
///
/// `owner` is held until the memory has gone and the device is done with it, so that it may be what keeps the buffer alive; `()` where the program sees to that.
///
/// # Errors
/// `device` is none of Vulkan's, or is one that trefoil opened; the handle is null; or `bytes` is no multiple of 16, or more than the buffer takes.
///
/// # Safety
/// * The buffer is one of that device, bound to memory, at least that long, and made with [`vk::BufferUsageFlags::STORAGE_BUFFER`], [`vk::BufferUsageFlags::TRANSFER_SRC`] and [`vk::BufferUsageFlags::TRANSFER_DST`]; with
///   [`vk::BufferUsageFlags::INDIRECT_BUFFER`] too if workgroups are counted there.
/// * It lives until `owner` is dropped.
/// * The program's host does not use its bytes while submissions that use them are not done.
pub unsafe fn memory(
    device: &Device,
    buffer: vk::Buffer,
    bytes: u64,
    owner: impl Any + Send + Sync,
) -> Result<Arc<dyn Memory>> {
    // SAFETY: the caller's promise.
    Ok(Arc::new(unsafe { foreign::adopt(device, buffer, bytes, Box::new(owner)) }?))
}

/// The buffer that a piece of memory of a Vulkan device is, from its first byte on; none of other devices'. It was made for storage, indirect dispatches and copies both ways, and has room for whole multiples of 16 bytes. It lives as long as the memory.
pub fn buffer(memory: &dyn Memory) -> Option<vk::Buffer> {
    memory.as_any().downcast_ref().map(|memory: &memory::VulkanMemory| memory.buffer.handle)
}

/// The names of the usable adapters, at the positions by which [`DeviceOptions::adapter`] may ask for them.
///
/// # Errors
/// The loader or every driver is missing, or no adapter is usable, with the reason.
pub fn adapters() -> Result<Vec<String>> {
    let instance = instance::Instance::open(false, false)?;
    Ok(limits::usable(instance.api())?.into_iter().map(|adapter| adapter.name).collect())
}
