//! The opened device, and its side of the device interface.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use trefoil_codegen::artefact::{Kernel, Language, ParamTransport, Target};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::check::BINDING_MULTIPLE;
use trefoil_dsl::support::state::{DeviceState, lock};
use trefoil_dsl::support::wait::{self, is_soon};

use crate::bind_groups::BindGroups;
use crate::indirect::CheckedCounts;
use crate::limits::{Offer, describe, instance, rank, required_features, required_limits, unavailable, usable};
use crate::memory::{USAGE, WgpuMemory};
use crate::passthrough;
use crate::pipeline::PipelineStore;
use crate::record::ParamBuffer;

/// What everything that a device made holds.
pub(crate) struct Shared {
    /// What all devices have.
    pub(crate) state: DeviceState,
    /// wgpu's device.
    pub(crate) device: wgpu::Device,
    /// wgpu's queue.
    pub(crate) queue: wgpu::Queue,
    /// What it reads: naga's WGSL, or in a browser the browser's.
    pub(crate) language: Language,
    /// Whether it takes SPIR-V where WGSL cannot say what a kernel does.
    pub(crate) takes_spirv: bool,
    /// Those that lists use.
    pub(crate) bind_groups: BindGroups,
    /// Made for the first dispatch that has its workgroup counts in memory.
    pub(crate) counts: OnceLock<CheckedCounts>,
    /// Whether wgpu tells of its loss as it happens: of a device of the program's it tells the program.
    pub(crate) hears: bool,
    /// Whether dispatches stand in groups with their names.
    pub(crate) labels: bool,
    /// Identifies adapter and driver, for the pipeline cache.
    pub(crate) driver_key: String,
    // Errors that no scope caught.
    stray: Arc<Mutex<Vec<String>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wgpu device {} ({})", self.state.id, self.state.properties.name)
    }
}

impl Shared {
    /// Does something and catches what wgpu says against it. Scopes are a matter of one thread.
    pub(crate) fn scoped<T>(&self, act: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
        let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation]
            .map(|filter| self.device.push_error_scope(filter));
        let result = act();
        let mut first = None;
        // Scopes are popped from the innermost on.
        for scope in scopes.into_iter().rev() {
            first = first.or(pollster::block_on(scope.pop()));
        }
        first.map_or(Ok(result), Err)
    }

    /// What wgpu said of commands: it refused them, and nothing has happened, or they were begun and the device is lost.
    pub(crate) fn failed(&self, label: &str, error: wgpu::Error) -> Error {
        match error {
            wgpu::Error::Validation { .. } => {
                Error::Command { label: label.to_owned(), reason: format!("wgpu refuses it: {error}") }
            }
            other => self.state.lost(label, other),
        }
    }

    /// Where dispatches find the workgroup counts that they have in memory.
    pub(crate) fn counts(&self) -> Result<&CheckedCounts> {
        if let Some(known) = self.counts.get() {
            return Ok(known);
        }
        let made = CheckedCounts::new(self)?;
        Ok(self.counts.get_or_init(|| made))
    }

    /// Makes a buffer.
    pub(crate) fn buffer(&self, bytes: u64, usage: wgpu::BufferUsages, label: &str) -> Result<wgpu::Buffer> {
        let descriptor = wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: false };
        self.scoped(|| self.device.create_buffer(&descriptor)).map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => self.state.out_of_memory(label, bytes),
            other => self.state.driver("making a buffer", other),
        })
    }

    /// Waits for a submission, or for all of them.
    pub(crate) fn wait_for(&self, submission: Option<wgpu::SubmissionIndex>, label: &str) -> Result<()> {
        // Others may keep the queue from being empty, so that this asks for a short time only. (To be told of one submission, a wait with a timeout would have to be asked for, which panics in wgpu-core 30 where
        // another thread submits meanwhile.)
        let is_idle = || {
            let status = self.poll(wgpu::PollType::Poll, label)?;
            Ok(status.is_queue_empty())
        };
        if !self.state.properties.software && is_soon(wait::BRIEF, is_idle)? && self.hears {
            return self.state.failure.check();
        }
        self.wait_asleep(submission, label)
    }

    /// As [`Shared::wait_for`], where it is not likely to be short, or done already. This also finds a submission that was never made.
    pub(crate) fn wait_asleep(&self, submission: Option<wgpu::SubmissionIndex>, label: &str) -> Result<()> {
        self.poll(wgpu::PollType::Wait { submission_index: submission, timeout: None }, label)?;
        self.state.failure.check()
    }

    /// Asks wgpu how far the device is, or to wait for it. What is wrong is its loss, with which wgpu panics.
    pub(crate) fn poll(&self, how: wgpu::PollType, label: &str) -> Result<wgpu::PollStatus> {
        let lost = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
            Ok(message) if message.starts_with("Error in Device::poll") => Err(self.state.lost(label, message)),
            // Polling calls what the program wants called when its work is done, too.
            Ok(other) => resume_unwind(other),
            Err(other) => resume_unwind(other),
        };
        // Nothing of ours is half done, and wgpu panics when it has let go of all its locks.
        let polled = catch_unwind(AssertUnwindSafe(|| self.device.poll(how)));
        polled.map_or_else(lost, |polled| polled.map_err(|error| self.state.lost(label, error)))
    }

    /// Does something unless the device failed before, or this thread is within a call already; what wgpu reports outside of any scope is a failure.
    pub(crate) fn guarded<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        self.state.failure.check()?;
        let _within = Within::begin(&self.state)?;
        let result = act();
        let stray = std::mem::take(&mut *lock(&self.stray));
        if !stray.is_empty() {
            return Err(self.state.lost("an earlier command", stray.join("\n")));
        }
        result
    }
}

thread_local! {
    /// The devices within whose calls this thread is.
    static WITHIN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// That this thread is within a call of a device, until this goes.
struct Within;

impl Within {
    /// Begins a call. From within submissions and waits wgpu calls functions of the program; a call that these make would wait for locks that the call around it holds.
    fn begin(state: &DeviceState) -> Result<Self> {
        let begun = WITHIN.try_with(|within| {
            let mut within = within.borrow_mut();
            let is_first = !within.contains(&state.id);
            if is_first {
                within.push(state.id);
            }
            is_first
        });
        // A thread that ends has no such list any more.
        if begun.unwrap_or(true) {
            return Ok(Self);
        }
        let reason = "this thread is within a call of the same device: wgpu calls from there what the program wants called when work is done, as by `Queue::on_submitted_work_done`, and that must not call trefoil";
        Err(state.driver("beginning a call", reason))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        // The last one begun is the first to end.
        let _ = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
}

/// The device interface on wgpu.
pub(crate) struct WgpuBackend {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pipelines: PipelineStore,
    /// Where blocks given by value go; who holds it submits a list.
    pub(crate) params: Mutex<Option<ParamBuffer>>,
    /// Taken alone while something is done that is whole only when all of it is ([`WgpuBackend::no_parts`]), and shared by whoever else submits what uses memory. Who has it takes no lock that somebody holds who waits for it.
    pub(crate) words: RwLock<()>,
    /// Held while something is encoded and submitted; who has it takes none of the others.
    pub(crate) turn: Mutex<()>,
    /// The first takes copies.
    anchors: [wgpu::Buffer; 2],
}

impl fmt::Debug for WgpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl WgpuBackend {
    /// Opens the device that `options` ask for.
    pub(crate) fn open(options: &DeviceOptions, id: u64) -> Result<Self> {
        let instance = instance(options.validate, options.labels)?;
        let mut adapters = usable(&instance)?;
        let names: Vec<String> = adapters.iter().map(|adapter| adapter.get_info().name).collect();
        let chosen = choose(DeviceKind::Wgpu, &names, options.adapter.as_deref(), |i| rank(&adapters[i]))?;
        let adapter = adapters.swap_remove(chosen);
        let properties = restrict(describe(Offer::of(&adapter)), options)?;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("trefoil"),
            required_features: required_features(&adapter, properties.features),
            required_limits: required_limits(&adapter, &properties.limits),
            // SAFETY: of what wgpu calls experimental, only the extension for matrices is asked for. Its bugs can only lie in naga's matrices, and no WGSL of ours has any:
            // modules with matrices are our own SPIR-V.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| unavailable(format!("{} does not open: {error}", properties.name)))?;
        let backend = Self::on(&adapter, (device, true), queue, DeviceState::new(id, properties), options)?;
        let Shared { state, device, stray, .. } = &*backend.shared;
        let (errors, failure, name) = (stray.clone(), state.failure.clone(), state.properties.name.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| lock(&errors).push(error.to_string())));
        device.set_device_lost_callback(move |reason, message| {
            // wgpu calls this also when the last handle goes, which is no failure.
            if reason != wgpu::DeviceLostReason::Destroyed {
                failure.lost(&name, "an earlier command", message);
            }
        });
        Ok(backend)
    }

    /// Uses a device that the program opened. What wgpu reports outside of any scope, and its loss, the program hears. Ours are all within scopes, but the loss: the next wait or read finds it.
    pub(crate) fn open_on(
        adapter: &wgpu::Adapter,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        options: &DeviceOptions,
        id: u64,
    ) -> Result<Self> {
        let refused = [("adapter", options.adapter.is_some()), ("validate", options.validate)];
        if let Some((option, _)) = refused.into_iter().find(|(_, is_set)| *is_set) {
            let given = device.adapter_info().name;
            return Err(unavailable(format!(
                "`DeviceOptions::{option}` is for devices that trefoil opens, and that of {given} is open already"
            )));
        }
        let properties = restrict(describe(Offer::opened(adapter, device)), options)?;
        Self::on(adapter, (device.clone(), false), queue.clone(), DeviceState::new(id, properties), options)
    }

    /// On a device that is open.
    fn on(
        adapter: &wgpu::Adapter,
        (device, hears): (wgpu::Device, bool),
        queue: wgpu::Queue,
        state: DeviceState,
        options: &DeviceOptions,
    ) -> Result<Self> {
        let info = adapter.get_info();
        let browser = info.backend == wgpu::Backend::BrowserWebGpu;
        let shared = Arc::new(Shared {
            state,
            takes_spirv: device.features().contains(passthrough::wanted()),
            device,
            queue,
            language: if browser { Language::BROWSERS } else { Target::Wgsl.into() },
            bind_groups: BindGroups::default(),
            counts: OnceLock::new(),
            hears,
            labels: options.labels,
            driver_key: format!(
                "wgpu 30\n{}\n{}\n{}\n{} {}\n{}",
                info.name, info.driver, info.driver_info, info.vendor, info.device, info.backend
            ),
            stray: Arc::default(),
        });
        let pipelines = PipelineStore::open(&shared, options.cache.as_deref())?;
        let anchors = anchors(&shared)?;
        Ok(Self {
            shared,
            pipelines,
            params: Mutex::default(),
            words: RwLock::default(),
            turn: Mutex::default(),
            anchors,
        })
    }

    /// Makes what takes memory. Where there is none, wgpu first gives back what callers let go, which it does when it finds that the device is done with it.
    fn with_room<T>(&self, make: impl Fn() -> Result<T>) -> Result<T> {
        self.shared.guarded(|| match make() {
            Err(Error::OutOfMemory { .. }) => {
                self.wait_all()?;
                make()
            }
            made => made,
        })
    }

    /// A buffer of the program's own as memory of the device.
    pub(crate) fn adopt(&self, buffer: &wgpu::Buffer) -> Result<WgpuMemory> {
        let shared = &self.shared;
        let refused = |reason: String| Error::Command { label: "a buffer of the program's own".to_owned(), reason };
        let missing = USAGE - buffer.usage();
        if !missing.is_empty() {
            return Err(refused(format!("its usage lacks {missing:?}")));
        }
        if buffer.size() == 0 || !buffer.size().is_multiple_of(BINDING_MULTIPLE) {
            let reason = format!("it has {} bytes, a multiple of {BINDING_MULTIPLE} is expected", buffer.size());
            return Err(refused(reason));
        }
        // wgpu tells nobody whose a buffer is, and refuses commands with those of another device.
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("whose buffer it is") };
        let tried = shared.scoped(|| {
            let mut encoder = shared.device.create_command_encoder(&descriptor);
            encoder.copy_buffer_to_buffer(buffer, 0, &self.anchors[0], 0, self.anchors[0].size());
            encoder.finish()
        });
        tried.map_err(|error| refused(error.to_string()))?;
        Ok(WgpuMemory::adopt(shared, buffer))
    }
}

/// A small buffer in each kind of memory that transfers use. wgpu takes memory in blocks and gives empty ones back: each run that stages something would wait up to
/// 20 ms for a block, and the GPU lowers its clock meanwhile.
fn anchors(shared: &Shared) -> Result<[wgpu::Buffer; 2]> {
    use wgpu::BufferUsages as Usage;
    let anchor = |usage| shared.buffer(4, usage, "anchor of a block of memory");
    Ok([anchor(Usage::MAP_READ | Usage::COPY_DST)?, anchor(Usage::MAP_WRITE | Usage::COPY_SRC)?])
}

impl Backend for WgpuBackend {
    fn properties(&self) -> &Properties {
        &self.shared.state.properties
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.with_room(|| {
            self.shared.state.checks().allocation(bytes, label)?;
            let memory: Arc<dyn Memory> = Arc::new(WgpuMemory::new(&self.shared, bytes, label)?);
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
        self.with_room(|| self.start_read(from))
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
        self.with_room(|| self.make_recording(commands, run_words))
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
