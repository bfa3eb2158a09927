//! Compute pipelines: made in parallel, kept in memory, and served from the driver's pipeline cache on disk.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Code, Kernel, ParamTransport, Target};
use trefoil_codegen::overrides;
use trefoil_dsl::device::Pipeline;
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::pipelines::{PipelineCache, key};
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::device::Shared;
use crate::passthrough::{select, words};

/// A kernel made ready.
pub(crate) struct WgpuPipeline {
    shared: Arc<Shared>,
    kernel: Arc<Kernel>,
    /// The transport that it was asked for.
    pub(crate) transport: ParamTransport,
    /// wgpu's pipeline.
    pub(crate) handle: wgpu::ComputePipeline,
    /// The layout of its one bind group.
    pub(crate) layout: wgpu::BindGroupLayout,
}

impl WgpuPipeline {
    /// The pipeline behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(pipeline: &'a Arc<dyn Pipeline>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(pipeline.as_any(), "a pipeline")
    }
}

impl fmt::Debug for WgpuPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuPipeline({}, {:?})", self.kernel.name, self.transport)
    }
}

impl Pipeline for WgpuPipeline {
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

/// The code of a kernel, with the values of its specialisation constants, as wgpu takes it.
enum Source {
    Wgsl(String),
    Spirv(Vec<u32>),
}

impl Source {
    fn module(&self, device: &wgpu::Device, kernel: &Kernel, entry: &str) -> wgpu::ShaderModule {
        let label = Some(kernel.name.as_ref());
        match self {
            Source::Wgsl(text) => {
                let module = wgpu::ShaderModuleDescriptor { label, source: wgpu::ShaderSource::Wgsl(text.into()) };
                // SAFETY: the code generator guards every access that it cannot prove within bounds, and loops end.
                unsafe { device.create_shader_module_trusted(module, wgpu::ShaderRuntimeChecks::unchecked()) }
            }
            Source::Spirv(words) => {
                let [x, y, z] = kernel.workgroup_size;
                let entries = [wgpu::PassthroughShaderEntryPoint { name: entry.into(), workgroup_size: (x, y, z) }];
                let module = wgpu::ShaderModuleDescriptorPassthrough {
                    label,
                    entry_points: (&entries[..]).into(),
                    spirv: Some(words.into()),
                    ..wgpu::ShaderModuleDescriptorPassthrough::default()
                };
                // SAFETY: as above; the module declares the bindings of its layout and only features that the device was opened with.
                unsafe { device.create_shader_module_passthrough(module) }
            }
        }
    }
}

/// The pipelines of a device and the caches behind them.
pub(crate) struct PipelineStore {
    cache: Option<wgpu::PipelineCache>,
    pub(crate) disk: Option<DiskCache>,
    /// The length of the driver's cache when it was stored last.
    stored: Mutex<usize>,
    made: PipelineCache<WgpuPipeline>,
}

impl PipelineStore {
    /// Opens the pipeline cache with what an earlier process left. [`DiskCache`] checks that the data is whole and was stored for
    /// exactly this driver.
    pub(crate) fn open(shared: &Shared, folder: Option<&Path>) -> Result<Self> {
        let disk = folder.map(|folder| DiskCache::open(folder, &shared.state.properties.name)).transpose()?;
        let cached = shared.device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let mut stored = 0;
        let cache = match &disk {
            Some(disk) if cached => {
                let earlier = disk.load("wgpu", shared.driver_key.as_bytes());
                stored = earlier.as_ref().map_or(0, Vec::len);
                let descriptor =
                    wgpu::PipelineCacheDescriptor { label: Some("trefoil"), data: earlier.as_deref(), fallback: true };
                // SAFETY: the data is absent or what wgpu gave for this driver.
                let made = shared.scoped(|| unsafe { shared.device.create_pipeline_cache(&descriptor) });
                Some(made.map_err(|error| shared.state.driver("making the pipeline cache", error))?)
            }
            _ => None,
        };
        Ok(Self { cache, disk, stored: Mutex::new(stored), made: PipelineCache::default() })
    }

    /// Makes kernels ready, in parallel.
    pub(crate) fn load(
        &self,
        shared: &Arc<Shared>,
        kernels: &[Arc<Kernel>],
        transport: ParamTransport,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        let fresh = AtomicBool::new(false);
        let pipelines = self.made.load(
            kernels,
            |kernel| key(kernel, transport),
            |kernel| {
                fresh.store(true, Ordering::Relaxed);
                self.build(shared, kernel, transport)
            },
        );
        if let (true, Some(disk), Some(cache)) = (fresh.load(Ordering::Relaxed), &self.disk, &self.cache) {
            // Held meanwhile, so that no older data comes behind newer.
            let mut stored = lock(&self.stored);
            // If it is as long as it was, the driver found all in it. A cache that cannot be written costs time in the next process and nothing else.
            if let Some(data) = cache.get_data()
                && data.len() != *stored
                && disk.store("wgpu", shared.driver_key.as_bytes(), &data)
            {
                *stored = data.len();
            }
        }
        pipelines
    }

    fn build(&self, shared: &Arc<Shared>, kernel: &Arc<Kernel>, transport: ParamTransport) -> Result<WgpuPipeline> {
        shared.state.checks().kernel(kernel)?;
        let largest = shared.device.limits().max_uniform_buffer_binding_size;
        if u64::from(kernel.params.size) > largest {
            return Err(Error::Limit {
                kernel: kernel.name.to_string(),
                what: "bytes of parameters",
                wanted: kernel.params.size.into(),
                limit: largest,
                device: shared.state.properties.name.clone(),
            });
        }
        let failed = |message: String| Error::Build {
            kernel: kernel.name.to_string(),
            device: shared.state.properties.name.clone(),
            message,
        };
        let variant = select(shared, kernel)?;
        shared.state.checks().matrices(kernel, variant)?;
        let (block, source) = match (variant.target, &variant.code) {
            (Target::Wgsl, Code::Text(text)) => {
                (wgpu::BufferBindingType::Uniform, Source::Wgsl(overrides::settled(text, &kernel.constants)))
            }
            (Target::Spirv, code) => match words(code, &kernel.constants) {
                Some(words) => (wgpu::BufferBindingType::Storage { read_only: true }, Source::Spirv(words)),
                None => return Err(failed("its code is not a SPIR-V module".to_owned())),
            },
            _ => return Err(failed("its WGSL variant holds SPIR-V".to_owned())),
        };
        let entry =
            |binding: usize, ty: wgpu::BufferBindingType, dynamic: bool, size: u64| wgpu::BindGroupLayoutEntry {
                // The number of bindings was checked against the device's limit.
                binding: binding as u32,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty,
                    has_dynamic_offset: dynamic,
                    min_binding_size: NonZeroU64::new(size),
                },
                count: None,
            };
        let mut entries: Vec<_> = kernel
            .bindings
            .iter()
            .enumerate()
            .map(|(i, binding)| {
                let ty = wgpu::BufferBindingType::Storage { read_only: !binding.access.writes() };
                entry(i, ty, false, 0)
            })
            .collect();
        if kernel.params.size > 0 {
            entries.push(entry(entries.len(), block, true, kernel.params.size.into()));
        }
        let (handle, layout) = shared
            .scoped(|| {
                let module = source.module(&shared.device, kernel, &variant.entry);
                let layout = shared.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label: Some(&kernel.name),
                    entries: &entries,
                });
                let pipeline_layout = shared.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: Some(&kernel.name),
                    bind_group_layouts: &[Some(&layout)],
                    immediate_size: 0,
                });
                let handle = shared.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some(&kernel.name),
                    layout: Some(&pipeline_layout),
                    module: &module,
                    entry_point: Some(&variant.entry),
                    compilation_options: wgpu::PipelineCompilationOptions {
                        constants: &[],
                        zero_initialize_workgroup_memory: false,
                    },
                    cache: self.cache.as_ref(),
                });
                (handle, layout)
            })
            .map_err(|error| failed(error.to_string()))?;
        CounterCells::add(&shared.state.counters.pipelines);
        Ok(WgpuPipeline { shared: shared.clone(), kernel: kernel.clone(), transport, handle, layout })
    }
}
