//! A Vulkan device of the program's own, as a renderer has one.

#![allow(clippy::undocumented_unsafe_blocks, reason = "the program's side is Vulkan from end to end")]

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk;
use trefoil_dsl::device::{Device, DeviceKind, DeviceOptions};
use trefoil_dsl::error::{Error, Result};
use trefoil_vulkan::{DeviceFeatures, OpenedDevice};

/// The program's device; the last handle destroys it.
pub struct Program {
    entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    pub device: ash::Device,
    pub enabled: DeviceFeatures,
    pub family: u32,
    pub queue: Mutex<vk::Queue>,
}

impl Drop for Program {
    fn drop(&mut self) {
        unsafe { self.device.destroy_device(None) };
    }
}

const VERSION: u32 = vk::API_VERSION_1_3;

impl Program {
    /// Opens the first device, with those features of its own that `enabled` leaves.
    pub fn open(enabled: impl FnOnce(&mut DeviceFeatures)) -> Result<Arc<Self>> {
        // One instance stays, so that the driver's library does.
        static INSTANCE: OnceLock<Result<(ash::Entry, ash::Instance), String>> = OnceLock::new();
        let none = |reason: String| Error::Unavailable { kind: DeviceKind::Vulkan.name(), reason };
        let made = INSTANCE.get_or_init(|| unsafe {
            let entry = ash::Entry::load().map_err(|error| error.to_string())?;
            let application = vk::ApplicationInfo::default().api_version(VERSION);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).map_err(|error| error.to_string())?;
            Ok((entry, instance))
        });
        let (entry, instance) = made.clone().map_err(none)?;
        unsafe {
            let all = instance.enumerate_physical_devices().map_err(|error| none(error.to_string()))?;
            let physical = *all.first().ok_or_else(|| none("no device".to_owned()))?;
            let families = instance.get_physical_device_queue_family_properties(physical);
            let family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
            let family = family.unwrap() as u32;
            let mut features = trefoil_vulkan::device_features(&entry, &instance, physical, VERSION)?;
            enabled(&mut features);
            let extensions = features.extension_names();
            let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
            let device = instance.create_device(physical, &features.push_onto(info), None).unwrap();
            let queue = Mutex::new(device.get_device_queue(family, 0));
            Ok(Arc::new(Self { entry, instance, physical, device, enabled: features, family, queue }))
        }
    }

    /// What trefoil is told; it keeps the device.
    pub fn opened(self: &Arc<Self>) -> OpenedDevice<'_> {
        let program = self.clone();
        OpenedDevice {
            entry: &self.entry,
            instance: &self.instance,
            physical: self.physical,
            device: &self.device,
            enabled: &self.enabled,
            family: self.family,
            queue: Box::new(move |submit| submit(*program.queue.lock().unwrap())),
        }
    }

    /// trefoil on it.
    pub fn share(self: &Arc<Self>, options: &DeviceOptions) -> Result<Device> {
        unsafe { trefoil_vulkan::open_on(self.opened(), options) }
    }

    /// Submits commands of the program's, and does not wait for them.
    pub fn submit(&self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Commands<'_> {
        let device = &self.device;
        unsafe {
            let info = vk::CommandPoolCreateInfo::default().queue_family_index(self.family);
            let pool = device.create_command_pool(&info, None).unwrap();
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            let commands = device.allocate_command_buffers(&info).unwrap();
            device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
            record(device, commands[0]);
            device.end_command_buffer(commands[0]).unwrap();
            let info = vk::SubmitInfo::default().command_buffers(&commands);
            device.queue_submit(*self.queue.lock().unwrap(), &[info], vk::Fence::null()).unwrap();
            Commands { program: self, pool }
        }
    }
}

/// Commands that were submitted; waits for them in the end.
pub struct Commands<'p> {
    program: &'p Program,
    pool: vk::CommandPool,
}

impl Drop for Commands<'_> {
    fn drop(&mut self) {
        unsafe {
            self.program.device.queue_wait_idle(*self.program.queue.lock().unwrap()).unwrap();
            self.program.device.destroy_command_pool(self.pool, None);
        }
    }
}

/// A buffer of the program's; the last handle destroys it.
pub struct Buffer {
    program: Arc<Program>,
    pub handle: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        unsafe {
            self.program.device.destroy_buffer(self.handle, None);
            self.program.device.free_memory(self.memory, None);
        }
    }
}

impl Buffer {
    pub fn new(program: &Arc<Program>, bytes: u64) -> Arc<Self> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let device = &program.device;
        unsafe {
            let handle = device.create_buffer(&vk::BufferCreateInfo::default().size(bytes).usage(usage), None).unwrap();
            let wants = device.get_buffer_memory_requirements(handle);
            let kind = wants.memory_type_bits.trailing_zeros();
            let info = vk::MemoryAllocateInfo::default().allocation_size(wants.size).memory_type_index(kind);
            let memory = device.allocate_memory(&info, None).unwrap();
            device.bind_buffer_memory(handle, memory, 0).unwrap();
            Arc::new(Self { program: program.clone(), handle, memory })
        }
    }
}
