//! Kernels made ready: compiled in parallel, kept in memory and on disk.

use std::any::Any;
use std::ffi::{CString, c_void};
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_codegen::artefact::{Code, Kernel, ParamTransport, Target, Variant, defined_name};
use trefoil_dsl::device::{Pipeline, Properties};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::pipelines::{PipelineCache, key};
use trefoil_dsl::support::state::CounterCells;

use crate::context::Left;
use crate::device::Shared;
use crate::driver::message;
use crate::limits::{ARGUMENT_BYTES, STATIC_WORKGROUP_BYTES};
use crate::nvrtc;
use crate::tensor_map::TensorMaps;

/// A kernel made ready.
pub(crate) struct CudaPipeline {
    shared: Arc<Shared>,
    kernel: Arc<Kernel>,
    /// The transport that it was loaded for.
    pub(crate) transport: ParamTransport,
    /// Bytes of workgroup memory that each launch provides.
    pub(crate) dynamic_bytes: u32,
    /// What it is told of matrices that are copied in bulk.
    pub(crate) maps: TensorMaps,
    /// The function in the module.
    pub(crate) function: sys::CUfunction,
    module: sys::CUmodule,
}

// SAFETY: the driver's handles may be used from any thread in which the context is current.
unsafe impl Send for CudaPipeline {}
// SAFETY: as above; nothing changes them after they are made.
unsafe impl Sync for CudaPipeline {}

impl CudaPipeline {
    /// The pipeline behind a handle that was checked to be this device's.
    pub(crate) fn of<'a>(pipeline: &'a Arc<dyn Pipeline>, shared: &Shared) -> Result<&'a Self> {
        shared.state.own(pipeline.as_any(), "a pipeline")
    }
}

impl fmt::Debug for CudaPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaPipeline({}, {:?})", self.kernel.name, self.transport)
    }
}

impl Drop for CudaPipeline {
    fn drop(&mut self) {
        if let Ok(_entered) = self.shared.enter() {
            // Work that uses it may be under way when the last handle goes; recordings hold their pipelines.
            self.shared.handles.give_back(Left::Module(self.module));
        }
    }
}

impl Pipeline for CudaPipeline {
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

/// The pipelines of a device and the cache behind them.
pub(crate) struct PipelineStore {
    pub(crate) disk: Option<DiskCache>,
    made: PipelineCache<CudaPipeline>,
}

impl PipelineStore {
    /// Opens the cache on disk, if there is to be one.
    pub(crate) fn open(shared: &Shared, folder: Option<&Path>) -> Result<Self> {
        let disk = folder.map(|folder| DiskCache::open(folder, &shared.state.properties.name)).transpose()?;
        Ok(Self { disk, made: PipelineCache::default() })
    }

    /// Makes kernels ready, in parallel.
    pub(crate) fn load(
        &self,
        shared: &Arc<Shared>,
        kernels: &[Arc<Kernel>],
        transport: ParamTransport,
    ) -> Result<Vec<Arc<dyn Pipeline>>> {
        self.made.load(kernels, |kernel| key(kernel, transport), |kernel| self.build(shared, kernel, transport))
    }

    fn build(&self, shared: &Arc<Shared>, kernel: &Arc<Kernel>, transport: ParamTransport) -> Result<CudaPipeline> {
        shared.state.checks().kernel(kernel)?;
        let failed = |message: String| Error::Build {
            kernel: kernel.name.to_string(),
            device: shared.state.properties.name.clone(),
            message,
        };
        let Properties { features, matrices, .. } = &shared.state.properties;
        let variant = kernel.variant_with(Target::Cuda, *features, matrices, transport)?;
        // The threads that build have no current context.
        let _entered = shared.enter()?;
        let arguments = arguments(kernel, variant);
        let wanted: u64 = arguments.iter().map(|size| (*size as u64).next_multiple_of(16)).sum();
        if wanted > ARGUMENT_BYTES {
            return Err(Error::Limit {
                kernel: kernel.name.to_string(),
                what: "bytes of arguments",
                wanted,
                limit: ARGUMENT_BYTES,
                device: shared.state.properties.name.clone(),
            });
        }
        shared.state.checks().matrices(kernel, variant)?;
        let Code::Text(source) = &variant.code else {
            return Err(failed("its CUDA variant holds no text".to_owned()));
        };
        let mut defined = String::new();
        for constant in &*kernel.constants {
            let _ = writeln!(defined, "#define {} {}", defined_name(&constant.name), constant.value);
        }
        let source = &format!("{defined}{source}");
        let key = nvrtc::key(source, &shared.architecture).map_err(failed)?;
        let stored = self.disk.as_ref().and_then(|disk| disk.load("cuda", &key));
        let from_cache = stored.and_then(|cubin| finish(shared, kernel, variant, &arguments, &cubin).ok());
        let served = from_cache.is_some();
        let pipeline = match from_cache {
            Some(pipeline) => pipeline,
            None => {
                let cubin = nvrtc::compile(&kernel.name, source, &shared.architecture).map_err(failed)?;
                let pipeline = finish(shared, kernel, variant, &arguments, &cubin)?;
                if let Some(disk) = &self.disk {
                    // A cache that cannot be written costs time in the next process and nothing else.
                    disk.store("cuda", &key, &cubin);
                }
                pipeline
            }
        };
        CounterCells::add(&shared.state.counters.pipelines);
        if served {
            CounterCells::add(&shared.state.counters.pipelines_from_cache);
        }
        Ok(pipeline)
    }
}

/// The sizes of a kernel's arguments: a pointer for each binding, then the parameter block or a pointer to it, then tensor maps.
fn arguments(kernel: &Kernel, variant: &Variant) -> Vec<usize> {
    let mut sizes = vec![size_of::<sys::CUdeviceptr>(); kernel.bindings.len()];
    match (kernel.params.size as usize, variant.transport) {
        (0, _) => {}
        (size, ParamTransport::Value) => sizes.push(size),
        (_, ParamTransport::Buffer) => sizes.push(size_of::<sys::CUdeviceptr>()),
    }
    if !variant.tensor_maps.is_empty() {
        sizes.push(variant.tensor_maps.len() * size_of::<sys::CUtensorMap>());
    }
    sizes
}

/// Loads machine code and checks that it is the kernel that its signature describes.
fn finish(
    shared: &Arc<Shared>,
    kernel: &Arc<Kernel>,
    variant: &Variant,
    arguments: &[usize],
    cubin: &[u8],
) -> Result<CudaPipeline> {
    use sys::CUfunction_attribute as Attribute;
    let failed = |message: String| Error::Build {
        kernel: kernel.name.to_string(),
        device: shared.state.properties.name.clone(),
        message,
    };
    let refused = |error| failed(message(error));
    let maps = TensorMaps::new(shared, variant)?;
    // SAFETY: the context is current; the code is a whole cubin, which carries its own length.
    let module = unsafe { result::module::load_data(cubin.as_ptr().cast::<c_void>()) }.map_err(refused)?;
    // From here on, dropping the pipeline unloads the module.
    let mut pipeline = CudaPipeline {
        shared: shared.clone(),
        kernel: kernel.clone(),
        transport: variant.transport,
        dynamic_bytes: 0,
        maps,
        function: std::ptr::null_mut(),
        module,
    };
    let name = CString::new(variant.entry.as_bytes()).map_err(|error| failed(error.to_string()))?;
    // SAFETY: the module is loaded.
    pipeline.function = unsafe { result::module::get_function(module, name) }.map_err(refused)?;
    check_arguments(pipeline.function, arguments).map_err(failed)?;
    // SAFETY: the function is the module's.
    let most = unsafe {
        result::function::get_function_attribute(pipeline.function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    }
    .map_err(refused)?;
    let wanted: u64 = kernel.workgroup_size.iter().map(|size| u64::from(*size)).product();
    let limit = u64::try_from(most).unwrap_or(0);
    if wanted > limit {
        return Err(Error::Limit {
            kernel: kernel.name.to_string(),
            what: "invocations in a workgroup, with the registers that it uses",
            wanted,
            limit,
            device: shared.state.properties.name.clone(),
        });
    }
    if kernel.workgroup_bytes > STATIC_WORKGROUP_BYTES {
        pipeline.dynamic_bytes = kernel.workgroup_bytes;
        // The size was checked against the device's limit, which is far below 2^31.
        let bytes = kernel.workgroup_bytes as i32;
        // SAFETY: as above.
        unsafe {
            result::function::set_function_attribute(
                pipeline.function,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                bytes,
            )
        }
        .map_err(refused)?;
    }
    Ok(pipeline)
}

/// Launches read as many bytes of each argument as the machine code declares, so that it must declare what we pass.
fn check_arguments(function: sys::CUfunction, expected: &[usize]) -> Result<(), String> {
    let declared = |index: usize| {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded; an index past the last argument is an error and nothing else.
        unsafe { sys::cuFuncGetParamInfo(function, index, &mut offset, &mut size) }.result().ok().map(|()| size)
    };
    for (index, size) in expected.iter().enumerate() {
        let found = declared(index);
        if found != Some(*size) {
            return Err(format!(
                "argument {index} takes {found:?} bytes in the machine code and {size} in the signature"
            ));
        }
    }
    match declared(expected.len()) {
        None => Ok(()),
        Some(_) => Err(format!("the machine code has more arguments than the {} of the signature", expected.len())),
    }
}
