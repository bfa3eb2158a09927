//! The opened device, and its side of the device interface.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::{result, sys};
use trefoil_codegen::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::DeviceState;

use crate::context::{Busy, Entered, Handles, Origin};
use crate::driver::{message, start, unavailable};
use crate::foreign::{self, CAPTURED};
use crate::library::Library;
use crate::limits::{Adapter, usable};
use crate::memory::{self, CudaMemory};
use crate::pipeline::PipelineStore;
use crate::ranges::Ranges;
use crate::readback::Landings;
use crate::submit::Queue;

/// Bytes of freed memory that the pool keeps for later.
const POOL_KEEPS: u64 = 1 << 30;

/// What everything that a device made holds, and what goes last.
pub(crate) struct Shared {
    /// What all devices have.
    pub(crate) state: DeviceState,
    /// What NVRTC compiles for.
    pub(crate) architecture: String,
    /// The GPU's position among the driver's.
    pub(crate) ordinal: i32,
    /// The driver's objects.
    pub(crate) handles: Handles,
}

impl Shared {
    /// Makes the device's context current in this thread, as every driver call needs it, until what is returned goes.
    pub(crate) fn enter(&self) -> Result<Entered> {
        self.handles.enter().map_err(|error| self.state.lost("entering the context", message(error)))
    }

    /// Goes on if the stream takes commands; the context is current.
    pub(crate) fn ready(&self) -> Result<()> {
        self.handles.ready().map_err(|busy| match busy {
            Busy::Captured(error) => {
                let said = error.map(|error| format!(": {}", message(error))).unwrap_or_default();
                self.state.driver("using the program's stream", format!("{CAPTURED}{said}"))
            }
            Busy::Failed(error) => self.state.lost("an earlier command", message(error)),
        })
    }

    /// Does something in the device's context unless the device failed before, or its stream takes no commands.
    fn guarded<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.state.failure.check()?;
        let _entered = self.enter()?;
        self.ready()?;
        self.handles.tidy();
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
    /// What reads that are taken later go to; each of them gives its own back. Who has the lock takes no other.
    pub(crate) landings: Arc<Mutex<Landings>>,
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
        let handles = connect(&adapter)?;
        Self::on(adapter, handles, options, id)
    }

    /// Uses a context and a stream of the program's.
    ///
    /// # Safety
    /// Those of [`crate::open_on_raw`].
    pub(crate) unsafe fn open_on(
        context: sys::CUcontext,
        stream: sys::CUstream,
        owner: Box<dyn Any + Send + Sync>,
        options: &DeviceOptions,
        id: u64,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let (adapter, handles) = unsafe { foreign::connect(context, stream, owner, options) }?;
        Self::on(adapter, handles, options, id)
    }

    /// On a context and a stream that are open.
    fn on(adapter: Adapter, mut handles: Handles, options: &DeviceOptions, id: u64) -> Result<Self> {
        let properties = restrict(adapter.properties.clone(), options)?;
        handles.pool = pool(&adapter, &handles)?;
        let Adapter { architecture, ordinal, .. } = adapter;
        let shared = Arc::new(Shared { state: DeviceState::new(id, properties), architecture, ordinal, handles });
        let ranges = if options.labels { Ranges::load() } else { None };
        let pipelines = PipelineStore::open(&shared, options.cache.as_deref())?;
        let (queue, landings, library) = (Mutex::default(), Arc::default(), Mutex::default());
        Ok(Self { queue, pipelines, landings, library, ranges, shared })
    }
}

fn failed(adapter: &Adapter, call: &'static str) -> impl Fn(result::DriverError) -> Error {
    let device = adapter.properties.name.clone();
    move |error| Error::Driver { device: device.clone(), call, message: message(error) }
}

/// Opens the primary context, and makes a stream there.
fn connect(adapter: &Adapter) -> Result<Handles> {
    let name = &adapter.properties.name;
    // SAFETY: the driver gave the device.
    let context = unsafe { result::primary_ctx::retain(adapter.device) }
        .map_err(|error| unavailable(format!("the driver does not open {name}: {}", message(error))))?;
    // From here on, dropping the handles gives back what was made so far.
    let mut handles = Handles::new(context, std::ptr::null_mut(), Origin::Own(adapter.device));
    let _entered = handles.enter().map_err(failed(adapter, "entering the context"))?;
    handles.stream = result::stream::create(result::stream::StreamKind::NonBlocking)
        .map_err(failed(adapter, "making the stream"))?;
    Ok(handles)
}

/// A memory pool of the device's own, where there are pools: the context's default pool is the program's.
fn pool(adapter: &Adapter, handles: &Handles) -> Result<Option<sys::CUmemoryPool>> {
    if !adapter.pools {
        return Ok(None);
    }
    let _entered = handles.enter().map_err(failed(adapter, "entering the context"))?;
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
    unsafe { sys::cuMemPoolCreate(&mut pool, &properties) }
        .result()
        .map_err(failed(adapter, "making the memory pool"))?;
    let mut keeps = POOL_KEEPS;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a 64-bit number.
    let set = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keeps).cast()) }.result();
    if let Err(error) = set {
        // SAFETY: nothing was made of it yet.
        let _ = unsafe { sys::cuMemPoolDestroy(pool) }.result();
        return Err(failed(adapter, "setting up the memory pool")(error));
    }
    Ok(Some(pool))
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

    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        self.shared.guarded(|| self.start_read(from))
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

    fn submit(&self, recording: &dyn Recording) -> Result<()> {
        self.shared.guarded(|| self.submit_recording(recording))
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
