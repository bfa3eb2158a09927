//! The opened device, and its side of the device interface.

use std::fmt;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, DeviceKind, DeviceOptions, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::adapter::{choose, restrict};
use trefoil_dsl::support::cache::DiskCache;
use trefoil_dsl::support::state::{DeviceState, lock};
use trefoil_dsl::support::threads::asleep;

use crate::checked::Reports;
use crate::limits::{STACK_BYTES, processor, properties};
use crate::memory::CpuMemory;
use crate::pipeline::PipelineStore;

/// What everything that a device made holds.
pub(crate) struct Shared {
    /// What all devices have.
    pub(crate) state: DeviceState,
    /// The threads that run kernels.
    pub(crate) pool: rayon::ThreadPool,
    /// Where what is found goes, on a device that checks.
    pub(crate) reports: Option<Reports>,
    /// Held while something reads or writes device memory, so that lists and copies come one after the other.
    pub(crate) turn: Mutex<()>,
}

impl Shared {
    /// Does something on the threads that run kernels, and waits for it.
    pub(crate) fn on_pool<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        if self.pool.current_thread_index().is_some() {
            return act();
        }
        // Callers hold the turn.
        asleep(|| self.pool.install(act))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CPU device {} ({})", self.state.id, self.state.properties.name)
    }
}

/// The device interface on the CPU.
pub(crate) struct CpuBackend {
    pub(crate) shared: Arc<Shared>,
    pipelines: PipelineStore,
    /// For whoever compiles kernels for it: it has nothing to keep of its own.
    kept: Option<DiskCache>,
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl CpuBackend {
    /// Opens the device with one thread for each processor that the process may use, to check what it runs if there are reports to write.
    pub(crate) fn open(options: &DeviceOptions, id: u64, reports: Option<Reports>) -> Result<Self> {
        choose(DeviceKind::Cpu, &[processor()], options.adapter.as_deref(), |_| 0)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .stack_size(STACK_BYTES)
            .thread_name(|index| format!("trefoil-cpu-{index}"))
            .build()
            .map_err(|error| Error::Unavailable {
                kind: DeviceKind::Cpu.name(),
                reason: format!("its threads do not start: {error}"),
            })?;
        let mut properties = properties(pool.current_num_threads());
        if let Some(reports) = &reports {
            reports.describe(&mut properties)?;
        }
        let properties = restrict(properties, options)?;
        let shared =
            Arc::new(Shared { state: DeviceState::new(id, properties), pool, reports, turn: Mutex::default() });
        let kept = options.cache.as_deref();
        let kept = kept.map(|folder| DiskCache::open(folder, &shared.state.properties.name)).transpose()?;
        Ok(Self { shared, pipelines: PipelineStore::default(), kept })
    }
}

impl Backend for CpuBackend {
    fn properties(&self) -> &Properties {
        &self.shared.state.properties
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.shared.state.failure.check()?;
        self.shared.state.checks().allocation(bytes, label)?;
        let memory: Arc<dyn Memory> = Arc::new(CpuMemory::new(&self.shared, bytes, label)?);
        Ok(memory)
    }

    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        self.shared.state.failure.check()?;
        self.shared.state.checks().transfer(to, data.len(), "write")?;
        let _turn = lock(&self.shared.turn);
        self.shared.upload(to, data)
    }

    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        self.shared.state.failure.check()?;
        self.shared.state.checks().transfer(from, data.len(), "read")?;
        let _turn = lock(&self.shared.turn);
        self.shared.download(from, data)
    }

    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        self.shared.state.failure.check()?;
        self.start_read(from)
    }

    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        self.shared.state.failure.check()?;
        self.pipelines.load(&self.shared, kernels, transport)
    }

    fn execute(&self, commands: &[Command]) -> Result<()> {
        self.shared.state.failure.check()?;
        self.submit_list(commands)
    }

    fn wait(&self) -> Result<()> {
        // Everything submitted is done when its call returns; a call under way on another thread is waited for.
        drop(lock(&self.shared.turn));
        self.shared.state.failure.check()
    }

    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        self.shared.state.failure.check()?;
        self.make_recording(commands, run_words)
    }

    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        self.shared.state.failure.check()?;
        self.run_recording(recording, io)
    }

    fn submit(&self, recording: &dyn Recording) -> Result<()> {
        self.shared.state.failure.check()?;
        self.submit_recording(recording)
    }

    fn time(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.shared.state.failure.check()?;
        self.time_list(commands)
    }

    fn counters(&self) -> Counters {
        self.shared.state.counters.read()
    }

    fn kept(&self) -> Option<&DiskCache> {
        self.kept.as_ref()
    }
}
