//! Devices that fail on request, for tests of what programs do when a device fails.
//!
//! [`Faults::over`] wraps a device in another that does the same until the call that a [`Fault`] names, and counts what is alive of what it handed out. Memory, pipelines and recordings are the wrapped device's own, so that whatever
//! holds them cannot tell the difference.
//!
//! ```
//! # use trefoil_dsl::device::Device;
//! use trefoil_dsl::support::faults::{Call, Fault, Faults, Then};
//! # fn of(device: &Device) -> trefoil_dsl::error::Result<()> {
//! let (faults, device) = Faults::over(device);
//! faults.plant(Fault { call: Call::Allocation, after: 1, then: Then::GoesOn });
//! let first = device.backend().allocate(4, "first")?;
//! assert!(device.backend().allocate(4, "second").is_err());
//! drop(first);
//! assert_eq!(faults.alive().memory, 0);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use trefoil_codegen::artefact::{Kernel, ParamTransport};

use super::cache::DiskCache;
use super::state::lock;
use crate::device::{Backend, Command, Counters, Device, Memory, MemoryRange, Pipeline, Properties, Recording, RunIo};
use crate::error::{Error, Result};
use crate::pinned::Pinned;
use crate::readback::PendingRead;

/// What may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Backend::allocate`] and [`Backend::pin`].
    Allocation,
    /// [`Backend::write`].
    Write,
    /// [`Backend::load`].
    Load,
    /// [`Backend::record`].
    Record,
    /// [`Backend::execute`], [`Backend::run`], [`Backend::submit`], [`Backend::time`] and [`Backend::read_later`]: nothing of it runs.
    Submission,
    /// [`Backend::wait`].
    Wait,
    /// [`Backend::read`], [`PendingRead::finish`], and the downloads of a [`Backend::run`], whose commands have run by then. What should have been read is filled with bytes that mean nothing.
    Readback,
}

impl Call {
    /// Every call that may fail.
    pub const ALL: [Self; 7] =
        [Self::Allocation, Self::Write, Self::Load, Self::Record, Self::Submission, Self::Wait, Self::Readback];
}

/// What the device does after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on, as a driver does that was out of memory for a moment.
    GoesOn,
    /// It is lost: it answers every call with the same error.
    Lost,
}

/// One call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub call: Call,
    /// How many of its kind succeed before, counted from [`Faults::plant`] on.
    pub after: u64,
    /// What comes next.
    pub then: Then,
}

/// What is alive of what a device handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alive {
    /// Pieces of memory.
    pub memory: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Recordings.
    pub recordings: usize,
    /// Pipelines that somebody holds beside the device's own cache of them.
    pub pipelines: usize,
}

/// Who is told of calls.
#[derive(Clone)]
struct Watcher(Arc<dyn Fn(Call) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

#[derive(Debug, Default)]
struct State {
    watcher: Option<Watcher>,
    fault: Option<Fault>,
    /// Calls since the fault was planted, in the order of [`Call::ALL`].
    calls: [u64; Call::ALL.len()],
    lost: Option<Error>,
    memory: Vec<Weak<dyn Memory>>,
    recordings: Vec<Weak<dyn Recording>>,
    pipelines: Vec<Weak<dyn Pipeline>>,
}

/// The hand on a device that fails on request.
#[derive(Debug)]
pub struct Faults {
    inner: Device,
    state: Mutex<State>,
}

impl Faults {
    /// A device that does what `device` does until a fault is planted, and the hand on it.
    pub fn over(device: &Device) -> (Arc<Self>, Device) {
        let faults = Arc::new(Self { inner: device.clone(), state: Mutex::default() });
        let wrapped = Device::new(Arc::new(Faulty(faults.clone())), device.id());
        let inner = device.clone();
        (faults, wrapped.opened_by(move || inner.reopen()))
    }

    /// Lets a call fail, counted from here on, instead of any that was planted before.
    pub fn plant(&self, fault: Fault) {
        let mut state = lock(&self.state);
        state.fault = Some(fault);
        state.calls = Default::default();
    }

    /// Tells `watcher` of every call that may fail, where it would fail, on the thread that makes it: whatever that thread has locked then stays so until `watcher` returns. It takes the place of the one before.
    ///
    /// ```
    /// # use trefoil_dsl::device::Device;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use trefoil_dsl::support::faults::{Call, Faults};
    /// # fn of(device: &Device) -> trefoil_dsl::error::Result<()> {
    /// let (faults, device) = Faults::over(device);
    /// let writes = Arc::new(AtomicU64::new(0));
    /// let counted = writes.clone();
    /// faults.watch(move |call| {
    ///     counted.fetch_add(u64::from(call == Call::Write), Ordering::Relaxed);
    /// });
    /// device.buffer(&[1f32])?;
    /// assert_eq!(writes.load(Ordering::Relaxed), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, watcher: impl Fn(Call) + Send + Sync + 'static) {
        let before = lock(&self.state).watcher.replace(Watcher(Arc::new(watcher)));
        // What it owns may be of this device.
        drop(before);
    }

    /// Calls of that kind since a fault was last planted, or since the beginning.
    pub fn calls(&self, call: Call) -> u64 {
        lock(&self.state).calls[call as usize]
    }

    /// What is alive, once the device is done with everything.
    pub fn alive(&self) -> Alive {
        // A device that is lost is done with everything too.
        let _ = self.inner.backend().wait();
        let mut state = lock(&self.state);
        state.memory.retain(|piece| piece.strong_count() > 0);
        state.recordings.retain(|recording| recording.strong_count() > 0);
        state.pipelines.retain(|pipeline| pipeline.strong_count() > 0);
        Alive {
            memory: state.memory.len(),
            bytes: state.memory.iter().filter_map(Weak::upgrade).map(|piece| piece.bytes()).sum(),
            recordings: state.recordings.len(),
            pipelines: state.pipelines.iter().filter(|pipeline| pipeline.strong_count() > 1).count(),
        }
    }

    /// Whether the device was lost.
    pub fn is_lost(&self) -> bool {
        lock(&self.state).lost.is_some()
    }

    /// Counts a call and fails if it is the one that was planted; what a device says that goes on is up to the call.
    fn meets(&self, call: Call, label: &str, refused: impl FnOnce() -> Error) -> Result<()> {
        let watcher = lock(&self.state).watcher.clone();
        if let Some(Watcher(told)) = watcher {
            told(call);
        }
        let mut state = lock(&self.state);
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        let before = state.calls[call as usize];
        state.calls[call as usize] += 1;
        match state.fault {
            Some(Fault { call: planted, after, then }) if planted == call && after == before => Err(match then {
                Then::GoesOn => refused(),
                Then::Lost => {
                    let device = self.inner.properties().name.clone();
                    let lost = Error::Lost { device, label: label.to_owned(), message: PLANTED.to_owned() };
                    state.lost = Some(lost.clone());
                    lost
                }
            }),
            _ => Ok(()),
        }
    }

    /// Counts a read that is done, and fails if it is the one that was planted.
    fn has_read(&self, data: &mut [u8]) -> Result<()> {
        let met = self.meets(Call::Readback, "read", || self.driver("reading"));
        if met.is_err() {
            data.fill(NOTHING_READ);
        }
        met
    }

    fn driver(&self, call: &'static str) -> Error {
        Error::Driver { device: self.inner.properties().name.clone(), call, message: PLANTED.to_owned() }
    }

    fn backend(&self) -> &dyn Backend {
        self.inner.backend()
    }
}

/// What planted faults say of themselves.
const PLANTED: &str = "a planted fault";
/// What stands where a readback failed: no number that anybody expects.
const NOTHING_READ: u8 = 0xA5;

#[derive(Debug)]
struct Faulty(Arc<Faults>);

impl Faulty {
    /// Counts an allocation, and fails if it is the one that was planted.
    fn allocates(&self, bytes: u64, label: &str) -> Result<()> {
        self.0.meets(Call::Allocation, label, || self.properties().out_of_memory(label, bytes))
    }

    /// Memory that was made, which is now counted as alive.
    fn counted(&self, memory: Arc<dyn Memory>) -> Arc<dyn Memory> {
        lock(&self.0.state).memory.push(Arc::downgrade(&memory));
        memory
    }
}

impl Backend for Faulty {
    fn properties(&self) -> &Properties {
        self.0.backend().properties()
    }

    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.allocates(bytes, label)?;
        Ok(self.counted(self.0.backend().allocate(bytes, label)?))
    }

    fn allocate_near_host(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.allocates(bytes, label)?;
        Ok(self.counted(self.0.backend().allocate_near_host(bytes, label)?))
    }

    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        self.allocates(bytes as u64, label)?;
        self.0.backend().pin(bytes, label)
    }

    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        if let Err(error) = self.0.meets(Call::Write, "write", || self.0.driver("writing")) {
            // A write that fails may have written a part.
            if let Some(half) = to.bytes.checked_div(2).filter(|half| *half > 0) {
                let part = MemoryRange { bytes: half, ..to.clone() };
                self.0.backend().write(&part, &vec![NOTHING_READ; half as usize])?;
            }
            return Err(error);
        }
        self.0.backend().write(to, data)
    }

    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        self.0.backend().read(from, data)?;
        self.0.has_read(data)
    }

    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>> {
        self.0.meets(Call::Submission, "read", || self.0.driver("submitting"))?;
        let inner = self.0.backend().read_later(from)?;
        Ok(Box::new(FaultyRead { faults: self.0.clone(), inner }))
    }

    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>> {
        let first = kernels.first().map_or_else(String::new, |kernel| kernel.name.to_string());
        self.0.meets(Call::Load, &first, || Error::Build {
            kernel: first.clone(),
            device: self.properties().name.clone(),
            message: PLANTED.to_owned(),
        })?;
        let pipelines = self.0.backend().load(kernels, transport)?;
        let known = &mut lock(&self.0.state).pipelines;
        for made in pipelines.iter().map(Arc::downgrade) {
            if !known.iter().any(|pipeline| pipeline.ptr_eq(&made)) {
                known.push(made);
            }
        }
        Ok(pipelines)
    }

    fn execute(&self, commands: &[Command]) -> Result<()> {
        self.0.meets(Call::Submission, &Command::first_label(commands), || self.0.driver("submitting"))?;
        self.0.backend().execute(commands)
    }

    fn wait(&self) -> Result<()> {
        self.0.meets(Call::Wait, "wait", || self.0.driver("waiting"))?;
        self.0.backend().wait()
    }

    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>> {
        self.0.meets(Call::Record, &Command::first_label(commands), || self.0.driver("recording"))?;
        let recording = self.0.backend().record(commands, run_words)?;
        lock(&self.0.state).recordings.push(Arc::downgrade(&recording));
        Ok(recording)
    }

    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        self.0.meets(Call::Submission, "run", || self.0.driver("submitting"))?;
        let RunIo { run_words, uploads, downloads } = io;
        self.0.backend().run(recording, RunIo { run_words, uploads, downloads: &mut *downloads })?;
        if downloads.is_empty() {
            return Ok(());
        }
        let met = self.0.meets(Call::Readback, "run", || self.0.driver("reading back"));
        if met.is_err() {
            downloads.iter_mut().for_each(|(_, bytes)| bytes.fill(NOTHING_READ));
        }
        met
    }

    fn submit(&self, recording: &dyn Recording) -> Result<()> {
        self.0.meets(Call::Submission, "submit", || self.0.driver("submitting"))?;
        self.0.backend().submit(recording)
    }

    fn time(&self, commands: &[Command]) -> Result<Vec<u64>> {
        self.0.meets(Call::Submission, &Command::first_label(commands), || self.0.driver("timing"))?;
        self.0.backend().time(commands)
    }

    fn kept(&self) -> Option<&DiskCache> {
        self.0.backend().kept()
    }

    fn counters(&self) -> Counters {
        self.0.backend().counters()
    }
}

/// A read under way on the wrapped device.
#[derive(Debug)]
struct FaultyRead {
    faults: Arc<Faults>,
    inner: Box<dyn PendingRead>,
}

impl PendingRead for FaultyRead {
    fn is_ready(&self) -> Result<bool> {
        let lost = lock(&self.faults.state).lost.clone();
        lost.map_or_else(|| self.inner.is_ready(), Err)
    }

    fn finish(self: Box<Self>, data: &mut [u8]) -> Result<()> {
        let Self { faults, inner } = *self;
        inner.finish(data)?;
        faults.has_read(data)
    }
}
