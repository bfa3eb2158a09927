//! The opened device, and its side of the device interface.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use trefoil_codegen::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::{DeviceState, lock};
use trefoil_dsl::support::wait::{self, is_soon};

use crate::connection::{Connection, Own, failed};
use crate::foreign::OpenedDevice;
use crate::instance::Instance;
use crate::limits::{Adapter, Traits, rank, usable};
use crate::memory::VulkanMemory;
use crate::pinned::{PinnedBuffers, VulkanPinned};
use crate::pipeline::{Layout, LayoutKey, PipelineStore};
use crate::submit::{Queue, Retired};

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
    /// The value that the last submission signals; changed by who holds the lock of what is in flight.
    pub(crate) submitted: AtomicU64,
    /// Pipeline layouts by what they depend on.
    pub(crate) layouts: Mutex<HashMap<LayoutKey, Layout>>,
    /// What transfers need not stage.
    pub(crate) pinned: PinnedBuffers,
    debug: Option<ash::ext::debug_utils::Device>,
    allocator: Mutex<Option<Allocator>>,
    /// The device itself and its queue; goes after everything that was made with them.
    pub(crate) connection: Connection,
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
        unsafe { self.device.get_semaphore_counter_value(self.timeline) }.map_err(|error| self.lost(label, error))
    }

    /// The device failed while somebody waited for it. Callers let go of buffers then, where the GPU may be writing still, if it was not the device that was lost.
    fn lost(&self, label: &str, error: vk::Result) -> Error {
        self.finish();
        self.state.lost(label, error)
    }

    /// Waits until the submission that signals `value` is finished; `label` names what is waited for.
    pub(crate) fn wait_for(&self, value: u64, label: &str) -> Result<()> {
        if self.finished(label)? >= value {
            return Ok(());
        }
        if self.traits.spins && is_soon(wait::LONG, || Ok(self.finished(label)? >= value))? {
            return Ok(());
        }
        let semaphores = [self.timeline];
        let values = [value];
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: as above; the value was submitted, so that it will be signalled or the device is lost.
        unsafe { self.device.wait_semaphores(&info, u64::MAX) }.map_err(|error| self.lost(label, error))
    }

    /// Waits for everything submitted. The program's other queues go on, and if the device is lost there is nothing left to wait for.
    pub(crate) fn finish(&self) {
        let (semaphores, values) = ([self.timeline], [self.submitted.load(Ordering::Acquire)]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: as in `wait_for`.
        let _ = unsafe { self.device.wait_semaphores(&info, u64::MAX) };
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
        let messages = self.connection.validation();
        if messages.is_empty() { result } else { Err(self.state.driver("validation", messages.join("\n"))) }
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
        // waited for what it had submitted when it went.
        unsafe {
            for layout in lock(&self.layouts).values() {
                self.device.destroy_pipeline_layout(layout.pipeline, None);
                self.device.destroy_descriptor_set_layout(layout.set, None);
            }
            *lock(&self.allocator) = None;
            self.device.destroy_semaphore(self.timeline, None);
        }
    }
}

/// The device interface on Vulkan.
pub(crate) struct VulkanBackend {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) pipelines: PipelineStore,
    retired: Retired,
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
        let mut adapters = usable(instance.api())?;
        let names: Vec<String> = adapters.iter().map(|adapter| adapter.name.clone()).collect();
        let chosen = choose(DeviceKind::Vulkan, &names, options.adapter.as_deref(), |i| rank(adapters[i].kind))?;
        let mut adapter = adapters.swap_remove(chosen);
        adapter.properties = restrict(adapter.properties, options)?;
        let (own, device) = Own::open(instance, &adapter)?;
        let (instance, names) = (own.instance.raw.clone(), own.instance.names);
        Self::on(adapter, (&instance, device), names, Connection::Own(Box::new(own)), options, id)
    }

    /// Uses a device that the program opened.
    ///
    /// # Safety
    /// Those of [`crate::open_on`].
    pub(crate) unsafe fn open_on(opened: OpenedDevice<'_>, options: &DeviceOptions, id: u64) -> Result<Self> {
        // SAFETY: the caller's promise.
        let mut adapter = unsafe { opened.describe(options) }?;
        adapter.properties = restrict(adapter.properties, options)?;
        // The host must not touch what commands of the program's may be using, of which the queue alone knows.
        adapter.traits.direct_bytes = 0;
        let (instance, device, names) = (opened.instance, opened.device.clone(), options.labels && opened.has_labels());
        Self::on(adapter, (instance, device), names, opened.connection(), options, id)
    }

    /// On a device that is open.
    fn on(
        adapter: Adapter,
        (instance, device): (&ash::Instance, ash::Device),
        names: bool,
        connection: Connection,
        options: &DeviceOptions,
        id: u64,
    ) -> Result<Self> {
        let Adapter { physical, name, properties, mut traits, .. } = adapter;
        if options.subgroup_size.is_some() {
            traits.required_subgroup = options.subgroup_size;
        }
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: instance.clone(),
            device: device.clone(),
            physical_device: physical,
            debug_settings: gpu_allocator::AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: gpu_allocator::AllocationSizes::new(64 << 20, 16 << 20)
                .with_max_device_memblock_size(256 << 20)
                .with_max_host_memblock_size(64 << 20),
        })
        .map_err(|error| failed(&name, "making the allocator", error))?;
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: timeline semaphores are enabled.
        let timeline = unsafe { device.create_semaphore(&info, None) }
            .map_err(|error| failed(&name, "making the timeline semaphore", error))?;
        let shared = Arc::new(Shared {
            state: DeviceState::new(id, properties),
            traits,
            debug: names.then(|| ash::ext::debug_utils::Device::new(instance, &device)),
            device,
            timeline,
            submitted: AtomicU64::new(0),
            layouts: Mutex::default(),
            pinned: PinnedBuffers::default(),
            allocator: Mutex::new(Some(allocator)),
            connection,
        });
        let pipelines = PipelineStore::open(&shared, options.cache.as_deref())?;
        let retired = Retired::default();
        Ok(Self { queue: Mutex::new(Queue::new(retired.clone())), pipelines, retired, shared })
    }

    /// Does something as [`Shared::guarded`] does it, and lets go of what the device turned out to be done with.
    fn guarded<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = self.shared.guarded(act);
        self.let_go();
        result
    }

    /// Lets go of what the device turned out to be done with; callers hold no lock.
    fn let_go(&self) {
        let next = || lock(&self.retired).pop();
        while let Some(done) = next() {
            drop(done);
        }
    }

    /// Makes what takes memory. What the device is done with goes before; and if there is no memory, all that the device still uses of what callers let go.
    fn with_room<T>(&self, make: impl Fn() -> Result<T>) -> Result<T> {
        self.guarded(|| {
            lock(&self.queue).retire(&self.shared)?;
            self.let_go();
            match make() {
                Err(Error::OutOfMemory { .. }) => {
                    self.wait_all()?;
                    self.let_go();
                    make()
                }
                made => made,
            }
        })
    }

    /// Memory as `make` makes it, of a size that the device allows.
    fn make_memory(
        &self,
        bytes: u64,
        label: &str,
        make: fn(&Arc<Shared>, u64, &str) -> Result<VulkanMemory>,
    ) -> Result<Arc<dyn Memory>> {
        self.with_room(|| {
            self.shared.state.checks().allocation(bytes, label)?;
            let memory: Arc<dyn Memory> = Arc::new(make(&self.shared, bytes, label)?);
            Ok(memory)
        })
    }
}

impl Drop for VulkanBackend {
    fn drop(&mut self) {
        self.shared.finish();
    }
}

impl Backend for VulkanBackend {
    fn properties(&self) -> &Properties {
        &self.shared.state.properties
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.make_memory(bytes, label, VulkanMemory::new)
    }

    fn allocate_near_host(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.make_memory(bytes, label, VulkanMemory::near_host)
    }

    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        self.with_room(|| {
            let memory: Box<dyn Pinned> = Box::new(VulkanPinned::new(&self.shared, bytes, label)?);
            Ok(memory)
        })
    }

    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        self.guarded(|| self.upload(to, data))
    }

    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        self.guarded(|| self.download(from, data))
    }

    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        self.with_room(|| self.start_read(from))
    }

    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        self.guarded(|| self.pipelines.load(&self.shared, kernels, transport))
    }

    fn execute(&self, commands: &[Command]) -> Result<()> {
        self.guarded(|| self.submit_list(commands))
    }

    fn wait(&self) -> Result<()> {
        self.guarded(|| self.wait_all())
    }

    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        self.with_room(|| self.make_recording(commands, run_words))
    }

    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        self.guarded(|| self.run_recording(recording, io))
    }

    fn submit(&self, recording: &dyn Recording) -> Result<()> {
        self.guarded(|| self.submit_recording(recording))
    }

    fn time(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.guarded(|| self.time_list(commands))
    }

    fn counters(&self) -> Counters {
        self.shared.state.counters.read()
    }

    fn kept(&self) -> Option<&DiskCache> {
        self.pipelines.disk.as_ref()
    }
}
