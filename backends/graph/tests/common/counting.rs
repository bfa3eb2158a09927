//! A device that counts the bytes that go to it and come from it, and says when it is at work.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_dsl::artefact::{Kernel, ParamTransport};
use trefoil_dsl::device::{
    Backend, Command, Counters, Device, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo,
};
use trefoil_dsl::error::Result;
use trefoil_dsl::pinned::Pinned;
use trefoil_dsl::readback::PendingRead;
use trefoil_dsl::support::cache::DiskCache;

/// A device behind which another works.
#[derive(Debug)]
pub struct Counting {
    device: Device,
    /// Bytes of inputs.
    pub up: AtomicU64,
    /// Bytes of outputs.
    pub down: AtomicU64,
    /// Bytes copied on the device.
    pub copied: AtomicU64,
}

thread_local! {
    /// Whether this thread is within a call of such a device.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is within a call of such a device.
pub fn is_within_device() -> bool {
    WITHIN.get()
}

fn within<T>(call: impl FnOnce() -> T) -> T {
    WITHIN.set(true);
    let answer = call();
    WITHIN.set(false);
    answer
}

impl Counting {
    /// The same device, counted.
    pub fn of(device: &Device) -> (Arc<Self>, Device) {
        let zero = || AtomicU64::new(0);
        let counting = Arc::new(Self { device: device.clone(), up: zero(), down: zero(), copied: zero() });
        (counting.clone(), Device::new(counting, device.id()))
    }

    /// Bytes up, down and copied since the last call.
    pub fn take(&self) -> [u64; 3] {
        [&self.up, &self.down, &self.copied].map(|counter| counter.swap(0, Ordering::Relaxed))
    }

    fn add(counter: &AtomicU64, bytes: usize) {
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Backend for Counting {
    fn properties(&self) -> &Properties {
        self.device.properties()
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.device.backend().allocate(bytes, label)
    }

    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        self.device.backend().pin(bytes, label)
    }

    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        Self::add(&self.up, data.len());
        self.device.backend().write(to, data)
    }

    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        Self::add(&self.down, data.len());
        self.device.backend().read(from, data)
    }

    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        Self::add(&self.down, from.bytes as usize);
        self.device.backend().read_later(from)
    }

    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        self.device.backend().load(kernels, transport)
    }

    fn execute(&self, commands: &[Command]) -> Result<()> {
        for command in commands {
            if let Command::Copy(copy) = command {
                Self::add(&self.copied, copy.to.bytes as usize);
            }
        }
        within(|| self.device.backend().execute(commands))
    }

    fn wait(&self) -> Result<()> {
        self.device.backend().wait()
    }

    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        self.device.backend().record(commands, run_words)
    }

    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        Self::add(&self.up, io.uploads.iter().map(|(_, data)| data.len()).sum());
        Self::add(&self.down, io.downloads.iter().map(|(_, data)| data.len()).sum());
        within(|| self.device.backend().run(recording, io))
    }

    fn submit(&self, recording: &dyn Recording) -> Result<()> {
        within(|| self.device.backend().submit(recording))
    }

    fn time(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.device.backend().time(commands)
    }

    fn counters(&self) -> Counters {
        self.device.backend().counters()
    }

    fn kept(&self) -> Option<&DiskCache> {
        self.device.backend().kept()
    }
}
