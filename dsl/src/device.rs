//! The interface between programs and devices.
//!
//! A [`Device`] is a handle that programs hold; a [`Backend`] is what a device crate implements. The interface is small: memory,
//! pipelines, and lists of [`Command`]s that are run at once or recorded and run many times. What devices may do differently is
//! data ([`Properties`]), never a method to ask.
//!
//! # Rules for backends
//! * Nothing is compiled, allocated for a kernel, or looked up by name after [`Backend::load`]; [`Counters`] prove it.
//! * Commands of a list run as if one after the other. A backend may overlap two commands only if no [`Command::Barrier`] stands
//!   between them: whoever makes the list places barriers wherever the byte ranges need them.
//! * Lists and recordings submitted one after the other run in that order, and later ones see what earlier ones wrote.
//! * That order has one place for each call, whatever other threads submit: nothing of theirs comes between the commands of a list, between the uploads, the commands and the downloads of a run, or between the parts of
//!   a read or a write. A call that transfers more than its device moves at a time may keep others from submitting until the last part is under way, and so does wgpu's write of a part of a word; what is small keeps nobody waiting for the device.
//! * Freed memory stays alive until the device is done with it.
//! * After the device is lost, every call is the same `Err` that names the first failing command.
//! * No call panics, whatever its arguments.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use trefoil_codegen::artefact::{Features, Kernel, ParamTransport};

use crate::error::{Error, Result};
use crate::pinned::{Ordinary, Pinned};
use crate::product::LibraryProduct;
pub use crate::properties::{DeviceKind, Limits, Properties};
use crate::readback::PendingRead;
use crate::report::ReportBuffers;
use crate::support::cache::DiskCache;
use crate::support::check::{Checks, padded};

/// A piece of device memory. It is freed when the last handle goes and the device is done with it.
pub trait Memory: Any + Send + Sync + fmt::Debug {
    /// Its size in bytes, as asked for.
    fn bytes(&self) -> u64;
    /// So many of its bytes may be bound, with what was padded: a multiple of 16. Of memory that a device without pointers ([`DeviceKind::has_pointers`]) makes, it is [`room`](crate::support::check::room).
    fn room(&self) -> u64 {
        padded(self.bytes())
    }
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
    /// Identifies the device that made it ([`Device::id`]).
    fn device(&self) -> u64;
    /// Whether `other` is another handle on the same memory: a program may give a buffer of its own twice.
    fn shares(&self, _other: &dyn Memory) -> bool {
        false
    }
}

/// A kernel made ready on a device.
pub trait Pipeline: Any + Send + Sync + fmt::Debug {
    /// The kernel that it runs.
    fn kernel(&self) -> &Arc<Kernel>;
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
    /// Identifies the device that made it ([`Device::id`]).
    fn device(&self) -> u64;
}

/// A list of commands made ready to run many times.
pub trait Recording: Any + Send + Sync + fmt::Debug {
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// A range of a piece of memory.
#[derive(Clone, Debug)]
pub struct MemoryRange {
    /// The memory.
    pub memory: Arc<dyn Memory>,
    /// Its first byte.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// One thing for a device to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Runs a kernel.
    Dispatch(DispatchCommand),
    /// Everything before is finished, and its writes are visible to everything after.
    Barrier,
    /// Calls something that is no kernel. A device that cannot answers [`CallCommand::refused`].
    Call(CallCommand),
    /// Copies within the device. It stands in the list as a dispatch does: barriers order it.
    Copy(CopyCommand),
}

impl Command {
    /// What names it in errors, profiles and debuggers; barriers have no name.
    pub const fn label(&self) -> Option<&Arc<str>> {
        match self {
            Self::Dispatch(dispatch) => Some(&dispatch.label),
            Self::Call(call) => Some(&call.label),
            Self::Copy(copy) => Some(&copy.label),
            Self::Barrier => None,
        }
    }

    /// The label of the first command that has one, for errors of a whole list.
    pub fn first_label(commands: &[Self]) -> Arc<str> {
        commands.iter().find_map(Self::label).cloned().unwrap_or_else(|| Arc::from("an empty list"))
    }
}

/// A copy from one range to another of equal length. Offsets and lengths are multiples of 4 bytes, both ranges lie within their memory padded to 16
/// bytes, and they do not overlap; where [`Limits::shares_memory_within_dispatch`] is false, they are in different pieces of memory.
#[derive(Clone, Debug)]
pub struct CopyCommand {
    /// What it reads.
    pub from: MemoryRange,
    /// What it writes.
    pub to: MemoryRange,
    /// Names it in errors, profiles and debuggers.
    pub label: Arc<str>,
}

/// What is called that is no kernel.
#[derive(Clone)]
pub enum Call {
    /// A function of the host, on the CPU device.
    Host(Arc<HostFunction>),
    /// A product of matrices by the library that [`Properties::matrix_library`] names. It reads `a`, `b` and, if there is one, the bias, and writes `c`; each range begins where the matrix does, at a
    /// multiple of its elements' size, and is as long at least.
    Product(LibraryProduct),
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(_) => f.write_str("Host"),
            Self::Product(product) => product.fmt(f),
        }
    }
}

/// A call among the commands of a list. It stands in the list as a dispatch does: barriers order it.
#[derive(Clone, Debug)]
pub struct CallCommand {
    /// What is called.
    pub call: Call,
    /// What it reads.
    pub reads: Vec<MemoryRange>,
    /// What it writes: ranges that overlap neither each other nor what it reads.
    pub writes: Vec<MemoryRange>,
    /// The bytes of the run words that it gets; empty outside recordings.
    pub run_words: std::ops::Range<u32>,
    /// Names it in errors, profiles and debuggers.
    pub label: Arc<str>,
}

/// The code of [`Call::Host`]: the bytes of what it reads and of what it writes, in order, and its run words. An `Err` loses the device.
pub type HostFunction = dyn Fn(&[&[u8]], &mut [&mut [u8]], &[u8]) -> Result<(), String> + Send + Sync;

impl CallCommand {
    /// Checks that a device does such calls.
    ///
    /// # Errors
    /// It does not; the error says why.
    pub fn expect_able(&self, properties: &Properties) -> Result<()> {
        let able = match &self.call {
            Call::Host(_) if properties.kind == DeviceKind::Cpu => Ok(()),
            Call::Host(_) => {
                Err(format!("functions of the host run on the cpu device alone, not on {}", properties.name))
            }
            Call::Product(product) => properties.multiplies(product),
        };
        able.map_err(|reason| Error::Command { label: self.label.to_string(), reason })
    }

    /// What a device answers that has no way to do the call.
    pub fn refused(&self, properties: &Properties) -> Error {
        let unknown = || Error::Command {
            label: self.label.to_string(),
            reason: format!("{} has no way to do such a call", properties.name),
        };
        self.expect_able(properties).err().unwrap_or_else(unknown)
    }
}

/// A kernel with everything that it needs.
#[derive(Clone, Debug)]
pub struct DispatchCommand {
    /// The kernel, loaded for the transport that `params` uses.
    pub pipeline: Arc<dyn Pipeline>,
    /// The range of each binding, within the room of its memory ([`Memory::room`]): at a multiple of [`Limits::binding_alignment`] and a multiple of
    /// 16 bytes long, or on a device with pointers ([`DeviceKind::has_pointers`]) from any element to any other, at a multiple of what the kernel's widest access moves
    /// ([`trefoil_codegen::artefact::Binding::vector`]). Lengths among the parameters are within them. On the CPU what the kernel writes of them, by these lengths, is bound once: it overlaps nothing that another binding has.
    pub bindings: Vec<MemoryRange>,
    /// The parameter block.
    pub params: ParamSource,
    /// The workgroups to launch, already folded to the device's limits.
    pub groups: GroupSource,
    /// Names it in errors, profiles and debuggers.
    pub label: Arc<str>,
}

/// Where a parameter block comes from.
#[derive(Clone, Debug)]
pub enum ParamSource {
    /// These bytes, for [`ParamTransport::Value`].
    Value(Vec<u8>),
    /// The run words from this byte on (a multiple of 256), for [`ParamTransport::Buffer`].
    RunWords(u32),
}

/// Where the number of workgroups comes from.
#[derive(Clone, Debug)]
pub enum GroupSource {
    /// These.
    Value([u32; 3]),
    /// Three `u32` in the run words at this byte (a multiple of 4); a run that brings more than `bound` along any axis is an error. A device without
    /// indirect dispatch launches `bound`, since workgroups past the end return at once.
    RunWords {
        /// Where the numbers lie.
        offset: u32,
        /// The most there can be.
        bound: [u32; 3],
    },
    /// Three `u32` at the start of this range (12 bytes, at a multiple of 4), as they are when the dispatch begins; its own bindings must not write that
    /// memory. Recordings have none.
    ///
    /// Nothing runs if one of them is 0. The host cannot check them on a GPU: with numbers above [`Limits::max_groups`] wgpu runs nothing, CUDA and the
    /// CPU answer [`Error::Grid`], and Vulkan does not say what happens. CUDA, which has no such dispatch, waits for what was submitted before and
    /// reads them.
    Memory(MemoryRange),
}

/// What one run of a recording brings and takes.
///
/// The lists are the caller's, who may use their memory again for the next run.
#[derive(Debug, Default)]
pub struct RunIo<'a, 'd> {
    /// New contents of the recording's run words, if they changed since its last run.
    pub run_words: Option<&'a [u8]>,
    /// Bytes to write before the first command.
    pub uploads: &'a [(MemoryRange, &'a [u8])],
    /// Bytes to read after the last command.
    pub downloads: &'a mut [(MemoryRange, &'d mut [u8])],
}

/// What a device has done since it was opened; tests hold them against what should have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels compiled or fetched from a cache.
    pub pipelines: u64,
    /// Of those, how many a cache on disk served.
    pub pipelines_from_cache: u64,
    /// Lists of commands recorded.
    pub recordings: u64,
    /// Recordings and lists run.
    pub submissions: u64,
    /// Pieces of memory made for callers.
    pub allocations: u64,
    /// Bytes of them that are still alive.
    pub allocated_bytes: u64,
}

/// What a device crate implements.
pub trait Backend: Any + Send + Sync + fmt::Debug {
    /// What it is and allows.
    fn properties(&self) -> &Properties;

    /// Makes `bytes` bytes of memory (0 is allowed), aligned for any binding, with some more behind the scenes ([`Memory::room`]); the
    /// contents are unspecified.
    ///
    /// # Errors
    /// The size is over the device's limit, or memory ran out.
    fn allocate(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>>;

    /// As [`allocate`](Backend::allocate), of memory that the host has cached, if the device has any: for a few bytes ([`Limits::near_host_bytes`]) that kernels write once and the host then reads. Kernels that read it, or much of it, are slow.
    ///
    /// # Errors
    /// As [`allocate`](Backend::allocate).
    fn allocate_near_host(&self, bytes: u64, label: &str) -> Result<Arc<dyn Memory>> {
        self.allocate(bytes, label)
    }

    /// Makes `bytes` bytes of zeros on the host (0 is allowed) that the device reaches by itself: transfers whose bytes lie there need no copy on the way. Where a device has none, it is memory like any other.
    ///
    /// # Errors
    /// There is no room for it, or the driver does not make it.
    fn pin(&self, bytes: usize, label: &str) -> Result<Box<dyn Pinned>> {
        match Ordinary::new(bytes) {
            Some(memory) => Ok(Box::new(memory)),
            None => Err(self.properties().out_of_memory(label, bytes as u64)),
        }
    }

    /// Copies `data` to memory, after everything submitted before; nobody sees a part of it alone. `data` is the caller's again when the call returns.
    ///
    /// # Errors
    /// The range leaves the memory, the memory is another device's, or the device failed.
    fn write(&self, to: &MemoryRange, data: &[u8]) -> Result<()>;

    /// Copies memory to `data`, after everything submitted before, and waits for it. All of it is as it was at one point of the order of submissions: of each list that another thread submits meanwhile, `data` has all or nothing.
    ///
    /// # Errors
    /// As [`Backend::write`].
    fn read(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()>;

    /// Copies memory aside, after everything submitted before and before everything submitted after, and does not wait for it. The memory may go meanwhile, and any number of such reads may be under way.
    ///
    /// # Errors
    /// As [`Backend::write`], or there is no room for the copy.
    fn read_later(&self, from: &MemoryRange) -> Result<Box<dyn PendingRead>>;

    /// Makes kernels ready, in parallel, with caches on disk and in memory; the results are in the order of `kernels`.
    ///
    /// # Errors
    /// Names the first kernel that has no variant for the device or that the driver refuses.
    fn load(&self, kernels: &[Arc<Kernel>], transport: ParamTransport) -> Result<Vec<Arc<dyn Pipeline>>>;

    /// Runs commands, without waiting for them. None of them may use run words.
    ///
    /// # Errors
    /// Names the command that cannot run.
    fn execute(&self, commands: &[Command]) -> Result<()>;

    /// Waits until everything submitted is done.
    ///
    /// # Errors
    /// The device failed.
    fn wait(&self) -> Result<()>;

    /// Prepares commands for many runs. `run_words` is the size of the recording's own buffer of run words, from which
    /// [`ParamSource::RunWords`] and [`GroupSource::RunWords`] read.
    ///
    /// # Errors
    /// Names the command that cannot be recorded.
    fn record(&self, commands: &[Command], run_words: usize) -> Result<Arc<dyn Recording>>;

    /// Runs a recording: uploads, commands, downloads; and waits for it. These follow each other as one: the commands find what was uploaded, and the downloads have what the commands left, whatever other threads submit meanwhile.
    ///
    /// # Errors
    /// A range or length is wrong, the first run brings no run words though the recording has some, run words say more elements than are bound or more workgroups than were recorded
    /// (then nothing has run), or the device failed.
    fn run(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()>;

    /// Runs a recording without run words, without waiting for it. Any number of its runs may be on their way, one after the other; the recording may go meanwhile.
    ///
    /// # Errors
    /// It has run words, which are those of one run at a time (then nothing has run), it is another device's, or the device failed.
    fn submit(&self, recording: &dyn Recording) -> Result<()>;

    /// Runs commands one at a time and gives the device time of each in nanoseconds (0 for barriers), by the device's own clock.
    ///
    /// # Errors
    /// As [`Backend::execute`]; and the device may have no clock.
    fn time(&self, commands: &[Command]) -> Result<Vec<u64>>;

    /// What it has done so far.
    fn counters(&self) -> Counters;

    /// Where what is compiled is kept between processes, if the device was opened with such a folder ([`DeviceOptions::cache`]).
    fn kept(&self) -> Option<&DiskCache>;
}

/// A device that programs hold; clones are the same device.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    id: u64,
    pipelines: Arc<crate::launch::Pipelines>,
    reports: Arc<ReportBuffers>,
    opener: Option<Opener>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Properties { kind, name, driver, .. } = self.properties();
        f.debug_struct("Device").field("kind", kind).field("name", name).field("driver", driver).finish_non_exhaustive()
    }
}

/// Opens a device once more.
#[derive(Clone)]
struct Opener(Arc<dyn Fn() -> Result<Device> + Send + Sync>);

impl Device {
    /// Wraps what a device crate opened. `id` is from [`next_device_id`], and is what the backend's memory and pipelines answer.
    pub fn new(backend: Arc<dyn Backend>, id: u64) -> Self {
        Self { backend, id, pipelines: Arc::default(), reports: Arc::new(ReportBuffers::new(true)), opener: None }
    }

    /// The same device, whose kernels write no reports, since its backend reads what they assert and print itself.
    #[must_use]
    pub fn without_reports(self) -> Self {
        Self { reports: Arc::new(ReportBuffers::new(false)), ..self }
    }

    /// The same device, with the function by which [`Device::reopen`] opens it once more.
    #[must_use]
    pub fn opened_by(self, open: impl Fn() -> Result<Self> + Send + Sync + 'static) -> Self {
        Self { opener: Some(Opener(Arc::new(open))), ..self }
    }

    /// Opens the device once more, with the options that it was opened with: for when it was lost, after which it answers every call with that error.
    ///
    /// What comes is another device, with another id. Memory, kernels made ready and recordings stay those of the lost one, whose contents nobody can know: programs make them anew.
    ///
    /// # Errors
    /// The driver does not open it again. CUDA's does so only in a new process after a kernel that failed, since a process has one context of a GPU. Or whoever made the device gave no way
    /// to open it.
    pub fn reopen(&self) -> Result<Self> {
        match &self.opener {
            Some(opener) => (opener.0)(),
            None => Err(Error::Unavailable {
                kind: self.kind().name(),
                reason: format!("nothing says how {} was opened", self.properties().name),
            }),
        }
    }

    /// The kernels made ready for launches by hand.
    pub(crate) fn pipelines(&self) -> &crate::launch::Pipelines {
        &self.pipelines
    }

    /// Where its kernels report what they assert and print.
    pub(crate) fn report_buffers(&self) -> &ReportBuffers {
        &self.reports
    }

    /// What runs it.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Differs from every other device of the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it is and allows.
    pub fn properties(&self) -> &Properties {
        self.backend.properties()
    }

    /// Its kind.
    pub fn kind(&self) -> DeviceKind {
        self.properties().kind
    }

    /// Numbers that launches and plans must respect.
    pub fn limits(&self) -> &Limits {
        &self.properties().limits
    }

    /// Checks that something was made by this device.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], which names `what`.
    pub fn check_owner(&self, owner: u64, what: &str) -> Result<()> {
        Checks { id: self.id, properties: self.properties() }.owner(owner, || what.to_owned())
    }

    /// The backend behind it, of the kind that has that type.
    ///
    /// # Errors
    /// [`Error::OtherDevice`], which names `what`, if it is of another kind.
    pub fn backend_of<B: Backend>(&self, what: &str) -> Result<&B> {
        let backend: &dyn Any = self.backend();
        backend.downcast_ref().ok_or_else(|| self.properties().other_device(what))
    }
}

/// A new device id.
pub fn next_device_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// How to open a device.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Which of the adapters of that kind, by position or by a part of its name; the best one otherwise.
    pub adapter: Option<String>,
    /// Where compiled kernels are kept between processes; `None` keeps them in memory alone.
    pub cache: Option<std::path::PathBuf>,
    /// Turns on the driver's validation, where there is one; its messages become errors. Vulkan's layer, at least that of 1.3.239, may crash when a device is opened while another
    /// thread uses one that it validates.
    pub validate: bool,
    /// Gives profilers and graphics debuggers the name of every command: debug-utils labels on Vulkan, debug groups on wgpu, NVTX ranges on CUDA. The CPU's functions have names in
    /// any profiler. A driver or a machine without such things names nothing.
    pub labels: bool,
    /// Pretends to have no more than this, for tests of what poorer devices do.
    pub at_most: Option<Limits>,
    /// Features not to use, for tests of what poorer devices do.
    pub without: Features,
    /// Invocations of a subgroup, a power of two among those that the device offers: the CPU offers all up to 128, Vulkan those of its driver; the device's own
    /// choice otherwise. A device that does not offer it does not open.
    pub subgroup_size: Option<u32>,
}
