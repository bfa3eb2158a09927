//! A device that the program opened: how trefoil comes to use it, and buffers of the program's own.

use std::any::Any;
use std::fmt;

use ash::vk;
use trefoil_dsl::device::{Device, DeviceOptions};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::BINDING_MULTIPLE;

use crate::connection::Connection;
use crate::device::VulkanBackend;
use crate::features::DeviceFeatures;
use crate::instance::unavailable;
use crate::limits::{Adapter, Api, describe};
use crate::memory::VulkanMemory;

/// How trefoil reaches a queue of the program's: a function that calls what it is given once with the queue, while nobody else uses that. It is called for every submission, on whatever thread makes it, and must not call trefoil; nor may whoever calls trefoil be using the queue.
///
/// Use is whatever Vulkan wants the queue synchronised for: submitting, presenting, and waiting for the queue or the whole device to be idle. Where the queue has a lock, the function takes it: `Box::new(move |submit| submit(*lock.lock().unwrap()))`. What it owns is dropped after trefoil's last use of the device, so that it may hold what keeps the device alive.
pub type WithQueue = dyn Fn(&mut dyn FnMut(vk::Queue)) + Send + Sync;

/// A device that the program opened, for [`open_on`](crate::open_on).
pub struct OpenedDevice<'a> {
    /// The loader.
    pub entry: &'a ash::Entry,
    /// The instance.
    pub instance: &'a ash::Instance,
    /// The physical device.
    pub physical: vk::PhysicalDevice,
    /// The logical device.
    pub device: &'a ash::Device,
    /// What it was made with.
    pub enabled: &'a DeviceFeatures,
    /// The family of the queue, which computes.
    pub family: u32,
    /// The queue.
    pub queue: Box<WithQueue>,
}

impl fmt::Debug for OpenedDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedDevice")
            .field("physical", &self.physical)
            .field("device", &self.device.handle())
            .field("enabled", self.enabled)
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}

/// What a physical device has of what kernels can use.
///
/// # Safety
/// Those of [`crate::device_features`].
pub(crate) unsafe fn wanted(api: Api<'_>, physical: vk::PhysicalDevice) -> Result<DeviceFeatures> {
    // SAFETY: the caller's promise.
    let adapter = unsafe { describe(api, physical, None) }.map_err(unavailable)?;
    Ok(adapter.features)
}

impl OpenedDevice<'_> {
    /// What the device is and allows, if `options` ask for nothing that is settled.
    ///
    /// # Safety
    /// Those of [`crate::open_on`].
    pub(crate) unsafe fn describe(&self, options: &DeviceOptions) -> Result<Adapter> {
        let api = Api { entry: self.entry, instance: self.instance, version: self.enabled.api_version };
        // SAFETY: the caller's promise.
        let adapter =
            unsafe { describe(api, self.physical, Some((self.enabled, self.family))) }.map_err(unavailable)?;
        let refused = [("adapter", options.adapter.is_some()), ("validate", options.validate)];
        if let Some((option, _)) = refused.into_iter().find(|(_, is_set)| *is_set) {
            return Err(unavailable(format!(
                "`DeviceOptions::{option}` is for devices that trefoil opens, and that of {} is open already",
                adapter.name
            )));
        }
        Ok(adapter)
    }

    /// Whether the instance has debug-utils labels.
    pub(crate) fn has_labels(&self) -> bool {
        // SAFETY: the instance is alive. Functions of extensions that it was not made with are not given.
        unsafe { self.entry.get_instance_proc_addr(self.instance.handle(), c"vkSetDebugUtilsObjectNameEXT".as_ptr()) }
            .is_some()
    }

    /// The connection that submits to the queue.
    pub(crate) fn connection(self) -> Connection {
        Connection::Program { queue: self.queue, _entry: self.entry.clone() }
    }
}

/// A buffer of the program's as memory.
///
/// # Safety
/// Those of [`crate::memory`].
pub(crate) unsafe fn adopt(
    device: &Device,
    buffer: vk::Buffer,
    bytes: u64,
    owner: Box<dyn Any + Send + Sync>,
) -> Result<VulkanMemory> {
    let shared = &device.backend_of::<VulkanBackend>("a Vulkan buffer")?.shared;
    let refused = |reason: String| Error::Command { label: "a buffer of the program's own".to_owned(), reason };
    if !shared.connection.is_shared() {
        return Err(refused(format!(
            "trefoil opened {} itself, so that no program has buffers there",
            device.properties().name
        )));
    }
    if buffer == vk::Buffer::null() {
        return Err(refused("its handle is null".to_owned()));
    }
    if bytes == 0 || !bytes.is_multiple_of(BINDING_MULTIPLE) {
        return Err(refused(format!("it has {bytes} bytes, a multiple of {BINDING_MULTIPLE} is expected")));
    }
    // SAFETY: the buffer is a live one of this device, by the caller's promise.
    let takes = unsafe { shared.device.get_buffer_memory_requirements(buffer) }.size;
    if bytes > takes {
        return Err(refused(format!("{bytes} bytes of it are asked for, and it takes {takes}")));
    }
    Ok(VulkanMemory::adopt(shared, buffer, bytes, owner))
}
