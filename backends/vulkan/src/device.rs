//! The opened device, and its side of the device interface.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use trefoil_codegen::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::{DeviceState, lock};
use trefoil_dsl::support::wait::is_soon;

use crate::instance::{Instance, unavailable};
use crate::limits::{Adapter, Traits, rank, usable};
use crate::memory::VulkanMemory;
use crate::pinned::{PinnedBuffers, VulkanPinned};
use crate::pipeline::{Layout, LayoutKey, PipelineStore};
use crate::submit::Queue;

/// What everything that a device made holds, and what goes last.
pub(crate) struct Shared {
    /// What all devices have.
    pub(crate) state: DeviceState,
    /// What only this crate needs.
    pub(crate) traits: Traits,
    /// The device's functions.
    pub(crate) device: ash::Device,
    /// The semaphore whose value is the last finished submission.
    pub(crate) timeline: vk::Semaphore,
    /// Pipeline layouts by what they depend on.
    pub(crate) layouts: Mutex<HashMap<LayoutKey, Layout>>,
    /// What transfers need not stage.
    pub(crate) pinned: PinnedBuffers,
    debug: Option<ash::ext::debug_utils::Device>,
    allocator: Mutex<Option<Allocator>>,
    instance: Instance,
}

impl Shared {
    /// Uses the allocator.
    pub(crate) fn allocator<T>(&self, use_it: impl FnOnce(&mut Allocator) -> T) -> Result<T> {
        let mut allocator = lock(&self.allocator);
        let allocator = allocator.as_mut().ok_or_else(|| self.state.driver("reaching the allocator", "it is gone"))?;
        Ok(use_it(allocator))
    }

    /// The last finished submission.
    pub(crate) fn finished(&self, label: &str) -> Result<u64> {
        // SAFETY: the semaphore is this device's timeline semaphore.
        unsafe { self.device.get_semaphore_counter_value(self.timeline) }.map_err(|error| self.state.lost(label, error))
    }

    /// Waits until the submission that signals `value` is finished; `label` names what is waited for.
    pub(crate) fn wait_for(&self, value: u64, label: &str) -> Result<()> {
        if self.finished(label)? >= value {
            return Ok(());
        }
        if self.traits.spins && is_soon(|| Ok(self.finished(label)? >= value))? {
            return Ok(());
        }
        let semaphores = [self.timeline];
        let values = [value];
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: as above; the value was submitted, so that it will be signalled or the device is lost.
        unsafe { self.device.wait_semaphores(&info, u64::MAX) }.map_err(|error| self.state.lost(label, error))
    }

    /// Gives an object a name in the validation layer's messages and in debuggers.
    pub(crate) fn name_object<H: vk::Handle>(&self, handle: H, name: &str) {
        if let (Some(debug), Ok(name)) = (&self.debug, std::ffi::CString::new(name)) {
            let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(handle).object_name(&name);
            // SAFETY: the handle is this device's. A name that is not taken is of no consequence.
            let _ = unsafe { debug.set_debug_utils_object_name(&info) };
        }
    }

    /// Starts a named region of a command buffer that is being recorded.
    pub(crate) fn begin_label(&self, commands: vk::CommandBuffer, name: &str) {
        if let (Some(debug), Ok(name)) = (&self.debug, std::ffi::CString::new(name)) {
            let label = vk::DebugUtilsLabelEXT::default().label_name(&name);
            // SAFETY: the command buffer is in recording state, as callers ensure.
            unsafe { debug.cmd_begin_debug_utils_label(commands, &label) };
        }
    }

    /// Ends the region.
    pub(crate) fn end_label(&self, commands: vk::CommandBuffer, name: &str) {
        if let (Some(debug), false) = (&self.debug, name.contains('\0')) {
            // SAFETY: as in `begin_label`, which began a region under the same condition.
            unsafe { debug.cmd_end_debug_utils_label(commands) };
        }
    }

    /// Does something unless the device failed before; what the validation layer says about it is an error.
    pub(crate) fn guarded<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.state.failure.check()?;
        let result = act();
        if self.instance.validates {
            let messages = self.instance.take_messages();
            if !messages.is_empty() {
                return Err(self.state.driver("validation", messages.join("\n")));
            }
        }
        result
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vulkan device {} ({})", self.state.id, self.state.properties.name)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: everything that was made with the device held `self`, so that only these objects are left, and the backend
        // waited for the queue when it went.
        unsafe {
            for layout in lock(&self.layouts).values() {
                self.device.destroy_pipeline_layout(layout.pipeline, None);
                self.device.destroy_descriptor_set_layout(layout.set, None);
            }
            *lock(&self.allocator) = None;
            self.device.destroy_semaphore(self.timeline, None);
            self.device.destroy_device(None);
        }
    }
}

/// The device interface on Vulkan.
pub(crate) struct VulkanBackend {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) pipelines: PipelineStore,
}

impl fmt::Debug for VulkanBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl VulkanBackend {
    /// Opens the device that `options` ask for.
    pub(crate) fn open(options: &DeviceOptions, id: u64) -> Result<Self> {
        let instance = Instance::open(options.validate, options.labels)?;
        let mut adapters = usable(&instance)?;
        let names: Vec<String> = adapters.iter().map(|adapter| adapter.name.clone()).collect();
        let chosen = choose(DeviceKind::Vulkan, &names, options.adapter.as_deref(), |i| rank(adapters[i].kind))?;
        let adapter = adapters.swap_remove(chosen);
        let (shared, queue) = connect(instance, adapter, options, id)?;
        let shared = Arc::new(shared);
        let pipelines = PipelineStore::open(&shared, options.cache.as_deref())?;
        Ok(Self { queue: Mutex::new(Queue::new(queue)), pipelines, shared })
    }
}

impl Drop for VulkanBackend {
    fn drop(&mut self) {
        // SAFETY: the device is alive. If it is lost there is nothing left to wait for.
        let _ = unsafe { self.shared.device.device_wait_idle() };
    }
}

/// Makes the logical device and what every later call needs.
fn connect(instance: Instance, adapter: Adapter, options: &DeviceOptions, id: u64) -> Result<(Shared, vk::Queue)> {
    let Adapter { physical, name, properties, mut traits, .. } = adapter;
    let properties = restrict(properties, options)?;
    if options.subgroup_size.is_some() {
        traits.required_subgroup = options.subgroup_size;
    }
    let family = traits.family;
    let failed = |call: &'static str, error: &dyn ToString| Error::Driver {
        device: name.clone(),
        call,
        message: error.to_string(),
    };
    let enable = traits.enable;
    let mut features_11 =
        vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(enable.storage_16bit);
    let mut features_12 = vk::PhysicalDeviceVulkan12Features::default()
        .timeline_semaphore(true)
        .vulkan_memory_model(true)
        .shader_buffer_int64_atomics(enable.int64_atomics)
        .shader_shared_int64_atomics(enable.int64_atomics)
        .vulkan_memory_model_device_scope(enable.memory_model_device_scope)
        .shader_float16(enable.matrices)
        .shader_subgroup_extended_types(enable.subgroup_extended_types);
    let mut features_13 = vk::PhysicalDeviceVulkan13Features::default()
        .subgroup_size_control(enable.subgroup_size_control)
        .shader_integer_dot_product(enable.integer_dot)
        .compute_full_subgroups(enable.compute_full_subgroups);
    let core = vk::PhysicalDeviceFeatures::default().shader_int64(enable.int64).shader_float64(enable.float64);
    let mut extensions = Vec::new();
    if enable.portability_subset {
        extensions.push(ash::khr::portability_subset::NAME.as_ptr());
    }
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    if enable.matrices {
        extensions.push(ash::khr::cooperative_matrix::NAME.as_ptr());
    }
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&core)
        .push_next(&mut features_11)
        .push_next(&mut features_12);
    if enable.version_1_3 {
        info = info.push_next(&mut features_13);
    }
    if enable.matrices {
        info = info.push_next(&mut matrices);
    }
    // SAFETY: the physical device is this instance's, and every feature and extension named was found present.
    let device = unsafe { instance.raw.create_device(physical, &info, None) }
        .map_err(|error| unavailable(format!("the driver does not open {name}: {error}")))?;
    // From here on a failure must give the device back.
    let made = (|| {
        // SAFETY: one queue of that family was asked for.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw.clone(),
            device: device.clone(),
            physical_device: physical,
            debug_settings: gpu_allocator::AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: gpu_allocator::AllocationSizes::new(64 << 20, 16 << 20)
                .with_max_device_memblock_size(256 << 20)
                .with_max_host_memblock_size(64 << 20),
        })
        .map_err(|error| failed("making the allocator", &error))?;
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: timeline semaphores are enabled.
        let timeline = unsafe { device.create_semaphore(&info, None) }
            .map_err(|error| failed("making the timeline semaphore", &error))?;
        Ok((queue, allocator, timeline))
    })();
    let (queue, allocator, timeline) = match made {
        Ok(made) => made,
        Err(error) => {
            // SAFETY: nothing that the device made is left.
            unsafe { device.destroy_device(None) };
            return Err(error);
        }
    };
    let debug = instance.names.then(|| ash::ext::debug_utils::Device::new(&instance.raw, &device));
    let shared = Shared {
        state: DeviceState::new(id, properties),
        traits,
        device,
        timeline,
        layouts: Mutex::default(),
        pinned: PinnedBuffers::default(),
        debug,
        allocator: Mutex::new(Some(allocator)),
        instance,
    };
    Ok((shared, queue))
}

impl Backend for VulkanBackend {
    fn properties(&self) -> &Properties {
        &self.shared.state.properties
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.shared.guarded(|| {
            self.shared.state.checks().allocation(bytes, label)?;
            let memory: Arc<dyn Memory> = Arc::new(VulkanMemory::new(&self.shared, bytes, label)?);
            Ok(memory)
        })
    }

    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        self.shared.guarded(|| {
            let memory: Box<dyn Pinned> = Box::new(VulkanPinned::new(&self.shared, bytes, label)?);
            Ok(memory)
        })
    }

    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        self.shared.guarded(|| self.upload(to, data))
    }

    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        self.shared.guarded(|| self.download(from, data))
    }

    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        self.shared.guarded(|| self.pipelines.load(&self.shared, kernels, transport))
    }

    fn execute(&self, commands: &[Command]) -> Result<()> {
        self.shared.guarded(|| self.submit_list(commands))
    }

    fn wait(&self) -> Result<()> {
        self.shared.guarded(|| self.wait_all())
    }

    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        self.shared.guarded(|| self.make_recording(commands, run_words))
    }

    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        self.shared.guarded(|| self.run_recording(recording, io))
    }

    fn time(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.shared.guarded(|| self.time_list(commands))
    }

    fn counters(&self) -> Counters {
        self.shared.state.counters.read()
    }

    fn kept(&self) -> Option<&DiskCache> {
        self.pipelines.disk.as_ref()
    }
}
