//! The opened device, and its side of the device interface.

use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::{result, sys};
use trefoil_codegen::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::DeviceState;

use crate::driver::{message, start, unavailable};
use crate::library::Library;
use crate::limits::{Adapter, usable};
use crate::memory::{self, CudaMemory};
use crate::pipeline::PipelineStore;
use crate::ranges::Ranges;
use crate::submit::Queue;

/// Bytes of freed memory that the pool keeps for later.
const POOL_KEEPS: u64 = 1 << 30;

/// The driver's objects of an open device.
pub(crate) struct Handles {
    device: sys::CUdevice,
    /// The device's primary context.
    pub(crate) context: sys::CUcontext,
    /// The one stream; never the default stream, which other users of the context share.
    pub(crate) stream: sys::CUstream,
    /// Where memory comes from, if the device has pools.
    pub(crate) pool: Option<sys::CUmemoryPool>,
}

// SAFETY: the driver's handles may be used from any thread in which the context is current, which `Shared::enter` sees to.
unsafe impl Send for Handles {}
// SAFETY: as above; the driver locks what threads share.
unsafe impl Sync for Handles {}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: everything that was made with the device held `Shared`, which holds `self`, so that only these objects are left.
        // There is nobody to tell of a failure.
        unsafe {
            if result::ctx::set_current(self.context).is_ok() {
                if !self.stream.is_null() {
                    let _ = result::stream::synchronize(self.stream);
                }
                if let Some(pool) = self.pool {
                    let _ = sys::cuMemPoolDestroy(pool).result();
                }
                if !self.stream.is_null() {
                    let _ = result::stream::destroy(self.stream);
                }
            }
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// What everything that a device made holds, and what goes last.
pub(crate) struct Shared {
    /// What all devices have.
    pub(crate) state: DeviceState,
    /// What NVRTC compiles for.
    pub(crate) architecture: String,
    /// The driver's objects.
    pub(crate) handles: Handles,
}

impl Shared {
    /// Makes the device's context current in this thread, as every driver call needs it.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained until `Handles` goes.
        unsafe { result::ctx::set_current(self.handles.context) }
            .map_err(|error| self.state.lost("entering the context", message(error)))
    }

    /// Does something in the device's context unless the device failed before.
    fn guarded<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.state.failure.check()?;
        self.enter()?;
        act()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA device {} ({})", self.state.id, self.state.properties.name)
    }
}

/// The device interface on CUDA.
pub(crate) struct CudaBackend {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Mutex<Queue>,
    pub(crate) pipelines: PipelineStore,
    /// Opened by the first product that wants it.
    pub(crate) library: Mutex<Option<Arc<Library>>>,
    /// If labels were asked for, and the library for them is there.
    pub(crate) ranges: Option<Ranges>,
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl CudaBackend {
    /// Opens the device that `options` ask for. CUDA has no validation to turn on.
    pub(crate) fn open(options: &DeviceOptions, id: u64) -> Result<Self> {
        start()?;
        let mut adapters = usable()?;
        let names: Vec<String> = adapters.iter().map(|adapter| adapter.properties.name.clone()).collect();
        let chosen = choose(DeviceKind::Cuda, &names, options.adapter.as_deref(), |_| 0)?;
        let adapter = adapters.swap_remove(chosen);
        let properties = restrict(adapter.properties.clone(), options)?;
        let handles = connect(&adapter)?;
        let shared =
            Arc::new(Shared { state: DeviceState::new(id, properties), architecture: adapter.architecture, handles });
        let ranges = if options.labels { Ranges::load() } else { None };
        let pipelines = PipelineStore::open(&shared, options.cache.as_deref())?;
        Ok(Self { queue: Mutex::default(), pipelines, library: Mutex::default(), ranges, shared })
    }
}

/// Makes the driver's objects.
fn connect(adapter: &Adapter) -> Result<Handles> {
    let name = &adapter.properties.name;
    let failed = |call: &'static str| {
        let name = name.clone();
        move |error| Error::Driver { device: name, call, message: message(error) }
    };
    // SAFETY: the driver gave the device.
    let context = unsafe { result::primary_ctx::retain(adapter.device) }
        .map_err(|error| unavailable(format!("the driver does not open {name}: {}", message(error))))?;
    // From here on, dropping the handles gives back what was made so far.
    let mut handles = Handles { device: adapter.device, context, stream: std::ptr::null_mut(), pool: None };
    // SAFETY: the context was just retained.
    unsafe { result::ctx::set_current(context) }.map_err(failed("entering the context"))?;
    handles.stream =
        result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed("making the stream"))?;
    if adapter.pools {
        let properties = sys::CUmemPoolProps_st {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation_st {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: adapter.ordinal,
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: the properties are complete and outlive the call.
        unsafe { sys::cuMemPoolCreate(&mut pool, &properties) }.result().map_err(failed("making the memory pool"))?;
        handles.pool = Some(pool);
        let mut keeps = POOL_KEEPS;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the attribute is a 64-bit number.
        unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keeps).cast()) }
            .result()
            .map_err(failed("setting up the memory pool"))?;
    }
    Ok(handles)
}

impl Backend for CudaBackend {
    fn properties(&self) -> &Properties {
        &self.shared.state.properties
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.shared.guarded(|| {
            self.shared.state.checks().allocation(bytes, label)?;
            let memory: Arc<dyn Memory> = Arc::new(CudaMemory::new(&self.shared, bytes, label)?);
            Ok(memory)
        })
    }

    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        self.shared.guarded(|| {
            let memory: Box<dyn Pinned> = Box::new(memory::Pinned::new(&self.shared, bytes, label)?);
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
