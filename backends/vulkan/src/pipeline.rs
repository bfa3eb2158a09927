//! Compute pipelines: made in parallel, kept in memory, and served from the driver's pipeline cache on disk.

use std::any::Any;
use std::ffi::CString;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ash::vk;
use trefoil_codegen::artefact::{Code, Kernel, ParamTransport, Target, Variant};
use trefoil_dsl::device::{Pipeline, Properties};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::pipelines::{PipelineCache, key};
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::device::Shared;
use crate::float_modes::without_unknown_modes;

/// What the driver's cache is called on disk.
const KIND: &str = "vulkan";
/// The first word of every SPIR-V module.
const SPIRV_MAGIC: u32 = 0x0723_0203;

/// How a pipeline gets its parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Block {
    /// It has none.
    None,
    /// As push constants of that many bytes.
    Push(u32),
    /// As the storage buffer after the last binding, with a dynamic offset, of that many bytes.
    Buffer(u32),
}

/// What a pipeline layout depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LayoutKey {
    /// Storage buffers, the parameter block not counted.
    pub(crate) storage: u32,
    /// The parameter block.
    pub(crate) block: Block,
}

/// A pipeline layout and the layout of its one descriptor set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Of the pipeline.
    pub(crate) pipeline: vk::PipelineLayout,
    /// Of descriptor set 0.
    pub(crate) set: vk::DescriptorSetLayout,
}

/// A kernel made ready.
pub(crate) struct VulkanPipeline {
    shared: Arc<Shared>,
    kernel: Arc<Kernel>,
    /// The transport that it was asked for.
    pub(crate) transport: ParamTransport,
    /// What its layout depends on.
    pub(crate) key: LayoutKey,
    /// Its layout.
    pub(crate) layout: Layout,
    /// The handle.
    pub(crate) handle: vk::Pipeline,
}

impl VulkanPipeline {
    /// The pipeline behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(pipeline: &'a Arc<dyn Pipeline>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(pipeline.as_any(), "a pipeline")
    }
}

impl fmt::Debug for VulkanPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VulkanPipeline({}, {:?})", self.kernel.name, self.transport)
    }
}

impl Drop for VulkanPipeline {
    fn drop(&mut self) {
        // SAFETY: lists that are not finished, and recordings, hold their pipelines.
        unsafe { self.shared.device.destroy_pipeline(self.handle, None) };
    }
}

impl Pipeline for VulkanPipeline {
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn device(&self) -> u64 {
        self.shared.state.id
    }
}

/// What lies on disk.
#[derive(Default)]
struct Stored {
    /// The length of the driver's cache when it was stored last.
    bytes: usize,
    /// The file, as it was then.
    stamp: Option<(SystemTime, u64)>,
}

/// A cache of the driver's that goes with its scope.
struct Scratch<'s> {
    shared: &'s Shared,
    handle: vk::PipelineCache,
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this scope's alone, and no call uses it any more.
        unsafe { self.shared.device.destroy_pipeline_cache(self.handle, None) };
    }
}

/// Makes a cache of the driver's.
fn create_cache(shared: &Shared, data: &[u8]) -> Result<vk::PipelineCache, vk::Result> {
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    // SAFETY: the data is empty or what this driver wrote, as callers ensure.
    unsafe { shared.device.create_pipeline_cache(&info, None) }
}

/// The pipelines of a device and the caches behind them.
pub(crate) struct PipelineStore {
    shared: Arc<Shared>,
    cache: vk::PipelineCache,
    pub(crate) disk: Option<DiskCache>,
    stored: Mutex<Stored>,
    made: PipelineCache<VulkanPipeline>,
}

impl PipelineStore {
    /// Opens the pipeline cache with what an earlier process left. [`DiskCache`] checks that the data is whole and was stored for
    /// exactly this driver, so that the driver is never given anything else.
    pub(crate) fn open(shared: &Arc<Shared>, folder: Option<&Path>) -> Result<Self> {
        let disk = folder.map(|folder| DiskCache::open(folder, &shared.state.properties.name)).transpose()?;
        let key = &*shared.traits.driver_key;
        // Asked before the file is read: one that is written meanwhile counts as another.
        let stamp = disk.as_ref().and_then(|disk| disk.stamp(KIND, key));
        let earlier = disk.as_ref().and_then(|disk| disk.load(KIND, key)).unwrap_or_default();
        let cache = create_cache(shared, &earlier)
            .or_else(|_| create_cache(shared, &[]))
            .map_err(|error| shared.state.driver("making the pipeline cache", error))?;
        let stored = Mutex::new(Stored { bytes: 0, stamp });
        Ok(Self { shared: shared.clone(), cache, disk, stored, made: PipelineCache::default() })
    }

    /// Makes kernels ready, in parallel.
    pub(crate) fn load(
        &self,
        shared: &Arc<Shared>,
        kernels: &[Arc<Kernel>],
        transport: ParamTransport,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        let fresh = AtomicBool::new(false);
        let build = |kernel: &Arc<Kernel>| build(shared, self.cache, kernel, transport, &fresh);
        let pipelines = self.made.load(kernels, |kernel| key(kernel, transport), build);
        if fresh.load(Ordering::Relaxed) {
            self.save();
        }
        pipelines
    }

    /// Leaves the driver's cache to later processes, with what others have stored since. A cache that cannot be written costs time in the next process and nothing else.
    fn save(&self) {
        let Some(disk) = &self.disk else { return };
        let key = &*self.shared.traits.driver_key;
        // Held meanwhile, so that no older data comes behind newer.
        let mut stored = lock(&self.stored);
        let bytes = self.bytes();
        if bytes == Some(stored.bytes) {
            return;
        }
        let theirs = disk.stamp(KIND, key).filter(|stamp| Some(*stamp) != stored.stamp);
        let merged = theirs.and_then(|_| self.merged(&disk.load(KIND, key)?));
        // SAFETY: the cache is this device's.
        let own = || unsafe { self.shared.device.get_pipeline_cache_data(self.cache) }.ok();
        if let Some(data) = merged.or_else(own)
            && disk.store(KIND, key, &data)
        {
            *stored = Stored { bytes: bytes.unwrap_or(0), stamp: disk.stamp(KIND, key) };
        }
    }

    /// The length of what the driver's cache would be stored as.
    fn bytes(&self) -> Option<usize> {
        let (device, mut bytes) = (&self.shared.device, 0);
        let get = device.fp_v1_0().get_pipeline_cache_data;
        // SAFETY: the cache is this device's; without a place for the data, the driver tells its length alone.
        let told = unsafe { get(device.handle(), self.cache, &mut bytes, std::ptr::null_mut()) };
        (told == vk::Result::SUCCESS).then_some(bytes)
    }

    /// The driver's cache together with what another process stored.
    fn merged(&self, theirs: &[u8]) -> Option<Vec<u8>> {
        let shared = &*self.shared;
        // Into one of its own, since nobody may use that into which others are merged.
        let both = Scratch { shared, handle: create_cache(shared, theirs).ok()? };
        // SAFETY: both caches are this device's, and the one that is written is ours alone.
        unsafe { shared.device.merge_pipeline_caches(both.handle, &[self.cache]) }.ok()?;
        // SAFETY: as above.
        unsafe { shared.device.get_pipeline_cache_data(both.handle) }.ok()
    }
}

impl Drop for PipelineStore {
    fn drop(&mut self) {
        // SAFETY: no call that uses the cache is under way, since callers borrow the store.
        unsafe { self.shared.device.destroy_pipeline_cache(self.cache, None) };
    }
}

/// The variant that a device runs, and how it gets its parameters: by push constants where they fit and the kernel has such a variant,
/// otherwise from a buffer.
fn select<'a>(shared: &Shared, kernel: &'a Kernel, transport: ParamTransport) -> Result<(&'a Variant, Block)> {
    let size = kernel.params.size;
    let takes = |variant: &Variant| variant.target == Target::Spirv && variant.transport == transport;
    let fits = size <= shared.traits.push_constant_bytes && kernel.variants.iter().any(takes);
    let actual = if fits { transport } else { ParamTransport::Buffer };
    let Properties { features, matrices, .. } = &shared.state.properties;
    let variant = kernel.variant_with(Target::Spirv, *features, matrices, actual)?;
    shared.state.checks().matrices(kernel, variant)?;
    let block = match actual {
        _ if size == 0 => Block::None,
        ParamTransport::Value => Block::Push(size),
        ParamTransport::Buffer => Block::Buffer(size),
    };
    Ok((variant, block))
}

fn build(
    shared: &Arc<Shared>,
    cache: vk::PipelineCache,
    kernel: &Arc<Kernel>,
    transport: ParamTransport,
    fresh: &AtomicBool,
) -> Result<VulkanPipeline> {
    shared.state.checks().kernel(kernel)?;
    let failed = |message: String| Error::Build {
        kernel: kernel.name.to_string(),
        device: shared.state.properties.name.clone(),
        message,
    };
    if let Some(size) = required_size(shared, kernel) {
        let subgroups = kernel.workgroup_size.iter().product::<u32>().div_ceil(size);
        let most = shared.traits.max_subgroups;
        if subgroups > most {
            return Err(failed(format!(
                "its workgroup is {subgroups} subgroups of {size}, of which the device has {most}"
            )));
        }
    }
    let (variant, block) = select(shared, kernel, transport)?;
    let Code::Spirv(bytes) = &variant.code else {
        return Err(failed("its SPIR-V variant holds text".to_owned()));
    };
    let (chunks, rest) = bytes.as_chunks::<4>();
    let mut words: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if !rest.is_empty() || words.first() != Some(&SPIRV_MAGIC) {
        return Err(failed("its code is not a SPIR-V module".to_owned()));
    }
    without_unknown_modes(&mut words, shared.traits.keeps_what_is_no_number);
    let entry = CString::new(variant.entry.as_bytes()).map_err(|error| failed(error.to_string()))?;
    // Far fewer than 2^32: the device's limit was checked.
    let key = LayoutKey { storage: kernel.bindings.len() as u32, block };
    let layout = layout(shared, key)?;
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    // SAFETY: the words are a SPIR-V module, as emitters wrote it.
    let module =
        unsafe { shared.device.create_shader_module(&info, None) }.map_err(|error| failed(error.to_string()))?;
    let result = create(shared, cache, module, &entry, layout, kernel);
    // SAFETY: pipelines do not need their modules once they are made.
    unsafe { shared.device.destroy_shader_module(module, None) };
    let (handle, served) = result.map_err(|error| failed(error.to_string()))?;
    CounterCells::add(&shared.state.counters.pipelines);
    if served {
        CounterCells::add(&shared.state.counters.pipelines_from_cache);
    } else {
        fresh.store(true, Ordering::Relaxed);
    }
    shared.name_object(handle, &kernel.name);
    Ok(VulkanPipeline { shared: shared.clone(), kernel: kernel.clone(), transport, key, layout, handle })
}

/// The size of subgroups that a pipeline has to ask for; none where the device has one size anyway.
fn required_size(shared: &Shared, kernel: &Kernel) -> Option<u32> {
    kernel.subgroup_size.or(shared.traits.required_subgroup).filter(|_| shared.traits.required_sizes)
}

/// Makes one pipeline, and tells whether the cache on disk served it.
fn create(
    shared: &Shared,
    cache: vk::PipelineCache,
    module: vk::ShaderModule,
    entry: &CString,
    layout: Layout,
    kernel: &Kernel,
) -> Result<(vk::Pipeline, bool), vk::Result> {
    let workgroup_size = kernel.workgroup_size;
    let limits = &shared.state.properties.limits;
    let required = required_size(shared, kernel);
    let full = shared.traits.full_subgroups
        && workgroup_size[0].is_multiple_of(kernel.subgroup_size.unwrap_or(limits.max_subgroup).max(1));
    let flags = if full {
        vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS
    } else {
        vk::PipelineShaderStageCreateFlags::empty()
    };
    let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
        .required_subgroup_size(required.unwrap_or_default());
    let mut stage = vk::PipelineShaderStageCreateInfo::default()
        .flags(flags)
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(entry);
    // Each constant is a word, in order: of an `i32` its two's complement, of a `bool` a `VkBool32`.
    let values: Vec<u8> = kernel.constants.iter().flat_map(|constant| (constant.value as u32).to_ne_bytes()).collect();
    let entries: Vec<_> = (0..kernel.constants.len() as u32)
        .map(|id| vk::SpecializationMapEntry::default().constant_id(id).offset(4 * id).size(4))
        .collect();
    let specialisation = vk::SpecializationInfo::default().map_entries(&entries).data(&values);
    if !entries.is_empty() {
        stage = stage.specialization_info(&specialisation);
    }
    if required.is_some() {
        stage = stage.push_next(&mut size);
    }
    let mut whole = vk::PipelineCreationFeedback::default();
    let mut stages = [vk::PipelineCreationFeedback::default()];
    let mut feedback = vk::PipelineCreationFeedbackCreateInfo::default()
        .pipeline_creation_feedback(&mut whole)
        .pipeline_stage_creation_feedbacks(&mut stages);
    let mut info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.pipeline);
    if shared.traits.feedback {
        info = info.push_next(&mut feedback);
    }
    // Where pipelines can choose, NVIDIA's driver checks nothing for one that says nothing.
    let checks = match kernel.no_robustness {
        true => vk::PipelineRobustnessBufferBehaviorEXT::DISABLED,
        false => vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS,
    };
    let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default().storage_buffers(checks).uniform_buffers(checks);
    if shared.traits.chooses_robustness {
        info = info.push_next(&mut robustness);
    }
    // SAFETY: module, layout and cache are this device's, and everything in `info` outlives the call.
    let made = unsafe { shared.device.create_compute_pipelines(cache, &[info], None) };
    let handle = match made {
        Ok(handles) => handles.first().copied().ok_or(vk::Result::ERROR_UNKNOWN)?,
        Err((_, error)) => return Err(error),
    };
    let hit =
        vk::PipelineCreationFeedbackFlags::VALID | vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT;
    Ok((handle, whole.flags.contains(hit)))
}

/// The layout for `key`, made once a device.
fn layout(shared: &Shared, key: LayoutKey) -> Result<Layout> {
    let mut layouts = lock(&shared.layouts);
    if let Some(layout) = layouts.get(&key) {
        return Ok(*layout);
    }
    let binding = |binding: u32, kind: vk::DescriptorType| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(binding)
            .descriptor_type(kind)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    let mut bindings: Vec<_> = (0..key.storage).map(|i| binding(i, vk::DescriptorType::STORAGE_BUFFER)).collect();
    let mut ranges = Vec::new();
    match key.block {
        Block::None => {}
        Block::Push(size) => ranges
            .push(vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).offset(0).size(size)),
        Block::Buffer(_) => bindings.push(binding(key.storage, vk::DescriptorType::STORAGE_BUFFER_DYNAMIC)),
    }
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the device is alive, and the number of bindings was checked against its limits.
    let set = unsafe { shared.device.create_descriptor_set_layout(&info, None) }
        .map_err(|error| shared.state.driver("making a descriptor set layout", error))?;
    let sets = [set];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&ranges);
    // SAFETY: as above; the size of the push constants was checked against the device's limit.
    match unsafe { shared.device.create_pipeline_layout(&info, None) } {
        Ok(pipeline) => {
            let layout = Layout { pipeline, set };
            layouts.insert(key, layout);
            Ok(layout)
        }
        Err(error) => {
            // SAFETY: nothing uses the set layout yet.
            unsafe { shared.device.destroy_descriptor_set_layout(set, None) };
            Err(shared.state.driver("making a pipeline layout", error))
        }
    }
}
