//! What kernels report while they run: assertions that do not hold, and lines that they print.
//!
//! A kernel with `assert!` or `println!` in it has a second form that writes them to a buffer, where its author's crate is built with debug assertions
//! ([`Kernel::reporting`]); launches and graphs take that form on every device that has a storage buffer left for it. A kernel does not wait for anybody to read: it goes on after an
//! assertion that does not hold, and what it reports comes with the next call that waits for the device.
//!
//! All launches and steps of one kernel write to one buffer, which is the device's, whatever else they are bound to. Every access of it is atomic, so that they need no barriers on its account; the host reads it
//! behind everything that was submitted.
//!
//! Who makes commands of its own, as graphs do, asks for the form to run ([`Device::reporting`]), binds the buffer behind all others ([`Device::report_buffer`]), and hears of reports where it waits
//! ([`Device::hear`]).

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use trefoil_codegen::artefact::{Kernel, Reported, Site};
use trefoil_codegen::check::Invocation;
use trefoil_codegen::site::{BEGIN, reports};

use crate::device::{Command, CopyCommand, Device, DeviceKind, Memory, MemoryRange};
use crate::error::{Error, Result};
use crate::launch::KernelHandle;
use crate::support::state::lock;

/// Words of a report buffer: some thousand reports, behind which they are counted alone.
const WORDS: usize = 1 << 16;

/// What an invocation reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kernel's instance.
    pub kernel: String,
    /// Where it was written: `file:line:column`.
    pub at: String,
    /// Who reports it.
    pub invocation: Invocation,
    /// Whether something that was asserted does not hold; otherwise it is a line to be printed.
    pub fails: bool,
    /// The message, values and all.
    pub message: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, at, invocation, fails, message } = self;
        if *fails {
            write!(f, "{at}: {message}, in {invocation} of kernel `{kernel}`")
        } else {
            write!(f, "{at}: {invocation} of kernel `{kernel}` prints: {message}")
        }
    }
}

/// What a device's kernels reported since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewReports {
    /// In the order in which each kernel wrote them.
    pub reports: Vec<Report>,
    /// So many more found no room.
    pub lost: u64,
}

/// The report buffers of a device, one for each kernel that reports.
#[derive(Debug)]
pub struct ReportBuffers {
    /// Whether kernels take the form that reports.
    wanted: bool,
    /// Launches look for theirs here, so that nobody waits for the device while this is locked. None of them goes.
    buffers: Mutex<Vec<Arc<ReportBuffer>>>,
}

#[derive(Debug)]
struct ReportBuffer {
    /// Of the kernel that writes there.
    hash: [u8; 16],
    kernel: String,
    workgroup_size: [u32; 3],
    sites: Vec<Site>,
    memory: Arc<dyn Memory>,
    /// The first word that was not read. Who reads holds it, so that every report is told once.
    next: Mutex<usize>,
}

impl ReportBuffers {
    /// Of a device whose kernels report, or do not.
    pub fn new(wanted: bool) -> Self {
        Self { wanted, buffers: Mutex::default() }
    }

    /// The words of the buffer of a kernel that has one.
    fn of(&self, kernel: &Kernel) -> Option<MemoryRange> {
        let buffers = lock(&self.buffers);
        buffers.iter().find(|buffer| buffer.hash == kernel.hash).map(|buffer| range(&buffer.memory, 0..WORDS))
    }
}

/// Words of a piece of memory.
fn range(memory: &Arc<dyn Memory>, words: Range<usize>) -> MemoryRange {
    let bytes = |words: usize| (words * size_of::<u32>()) as u64;
    MemoryRange { memory: memory.clone(), offset: bytes(words.start), bytes: bytes(words.len()) }
}

/// The words of a report buffer up to the last that was asked for, of which those between the first two and `from` are zeros; none if nothing was asked for from there on.
fn written(device: &Device, memory: &Arc<dyn Memory>, from: usize) -> Result<Option<Vec<u32>>> {
    let backend = device.backend();
    let mut head = [0u32; BEGIN];
    backend.read(&range(memory, 0..BEGIN), bytemuck::cast_slice_mut(&mut head))?;
    let end = (head[0] as usize).saturating_add(BEGIN).min(WORDS);
    if end <= from {
        return Ok(None);
    }
    let mut words = vec![0u32; end];
    words[..BEGIN].copy_from_slice(&head);
    backend.read(&range(memory, from..end), bytemuck::cast_slice_mut(&mut words[from..]))?;
    Ok(Some(words))
}

impl ReportBuffer {
    /// Adds what was written since it was last read, and empties the buffer where more than half of it is full.
    fn read(&self, device: &Device, new: &mut NewReports) -> Result<()> {
        let mut next = lock(&self.next);
        let Some(words) = written(device, &self.memory, *next)? else { return Ok(()) };
        if words.len() <= WORDS / 2 {
            *next = self.add(&words, *next, new);
            return Ok(());
        }
        let taken = self.take(device)?;
        let from = std::mem::replace(&mut *next, BEGIN);
        if let Some(words) = written(device, &taken, from)? {
            self.add(&words, from, new);
            new.lost += u64::from(words[1]);
        }
        Ok(())
    }

    /// What is in the buffer, which is empty from then on. Both are one list, so that reports of what others submit meanwhile are either taken or stay there.
    fn take(&self, device: &Device) -> Result<Arc<dyn Memory>> {
        let backend = device.backend();
        let label: Arc<str> = Arc::from(format!("taking the reports of {}", self.kernel));
        let aside = backend.allocate((2 * WORDS * size_of::<u32>()) as u64, &label)?;
        let (all, taken, zeros) =
            (range(&self.memory, 0..WORDS), range(&aside, 0..WORDS), range(&aside, WORDS..2 * WORDS));
        backend.write(&zeros, &vec![0; WORDS * size_of::<u32>()])?;
        let copy = |from: &MemoryRange, to: &MemoryRange| {
            Command::Copy(CopyCommand { from: from.clone(), to: to.clone(), label: label.clone() })
        };
        backend.execute(&[copy(&all, &taken), Command::Barrier, copy(&zeros, &all)])?;
        Ok(aside)
    }

    /// Adds the reports that begin at a word, and gives the word behind the last.
    fn add(&self, words: &[u32], from: usize, new: &mut NewReports) -> usize {
        let (found, next) = reports(&self.sites, words, from);
        new.reports.extend(found.iter().filter_map(|reported| self.report(reported)));
        next
    }

    fn report(&self, reported: &Reported<'_>) -> Option<Report> {
        let site = self.sites.get(reported.site)?;
        let [x, y, _] = self.workgroup_size.map(|size| size.max(1));
        let local = [reported.local % x, reported.local / x % y, reported.local / x / y];
        let Site { file, line, column, .. } = site;
        Some(Report {
            kernel: self.kernel.clone(),
            at: if *line == 0 { file.to_string() } else { format!("{file}:{line}:{column}") },
            invocation: Invocation { workgroup: reported.workgroup, local },
            fails: site.fails,
            message: site.message(reported.values),
        })
    }
}

impl Device {
    /// Waits for the device, and takes what its kernels have reported since it was last asked: assertions that do not hold and lines that they print, in builds with debug assertions.
    ///
    /// Who does not ask hears of it anyway: every call that waits for the device ([`Buffer::read`](crate::Buffer::read), [`Readback::wait`](crate::Readback::wait), [`Device::wait`], [`Recorded::run`](crate::Recorded::run)) prints the lines to the
    /// standard output, and answers [`Error::Assertion`] if there is an assertion that does not hold.
    ///
    /// ```
    /// # use trefoil_dsl as trefoil;
    /// use trefoil::prelude::*;
    ///
    /// #[kernel(workgroup(64))]
    /// fn halve(x: &mut [u32]) {
    ///     let i = global_index();
    ///     if i < x.len() {
    ///         assert!(x[i] % 2 == 0, "{} is odd", x[i]);
    ///         x[i] = x[i] / 2;
    ///     }
    /// }
    ///
    /// # fn run(device: &trefoil::Device) -> trefoil::error::Result<()> {
    /// let mut x = device.buffer(&[2, 4, 7, 8])?;
    /// device.run(halve(&mut x)?.over(4))?;
    /// for report in device.reports()?.reports {
    ///     // src/main.rs:7:9: assertion failed: 7 is odd, in invocation 2 of workgroup 0 of kernel `halve`
    ///     println!("{report}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The device failed.
    pub fn reports(&self) -> Result<NewReports> {
        self.backend().wait()?;
        self.new_reports()
    }

    /// What was reported by what is submitted: reading waits for that.
    fn new_reports(&self) -> Result<NewReports> {
        let mut new = NewReports::default();
        let known = |at: usize| lock(&self.report_buffers().buffers).get(at).cloned();
        let mut at = 0;
        while let Some(buffer) = known(at) {
            buffer.read(self, &mut new)?;
            at += 1;
        }
        Ok(new)
    }

    /// Prints the lines that kernels reported, after a call that waited for the device. It costs nothing where no kernel reports.
    ///
    /// # Errors
    /// [`Error::Assertion`] if there is an assertion that does not hold, or the device failed.
    pub fn hear(&self) -> Result<()> {
        let NewReports { reports, lost } = self.new_reports()?;
        let (failed, printed): (Vec<_>, Vec<_>) = reports.into_iter().partition(|report| report.fails);
        printed.iter().for_each(|line| println!("{line}"));
        let others = failed.len().saturating_sub(1) as u64;
        match failed.into_iter().next() {
            Some(Report { kernel, at, invocation, message, .. }) => {
                Err(Error::Assertion { kernel, at, invocation, message, more: others + lost })
            }
            None if lost > 0 => {
                println!("{lost} more reports of kernels found no room");
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether kernels write what they report to buffers; a device that reads their assertions itself has none.
    pub fn has_report_buffers(&self) -> bool {
        self.report_buffers().wanted
    }

    /// The form of a kernel that reports, if it has one that this device can run. It has one binding more, the last: the [`Device::report_buffer`].
    ///
    /// # Errors
    /// None in practice: the form has the constants of the kernel.
    pub fn reporting(&self, kernel: &Kernel) -> Result<Option<KernelHandle>> {
        let Some(reporting) = kernel.reporting.filter(|_| self.has_report_buffers()) else { return Ok(None) };
        let target = self.kind().target();
        let is_there = match self.kind() {
            DeviceKind::Cpu => reporting.cpu.is_some(),
            // What is shown may want features that the kernel itself does not.
            _ => reporting
                .variants
                .iter()
                .any(|variant| variant.target == target && self.properties().features.contains(variant.features)),
        };
        if !is_there || reporting.bindings.len() > self.limits().max_storage_buffers as usize {
            return Ok(None);
        }
        if kernel.constants == reporting.constants {
            return Ok(Some(KernelHandle::Static(reporting)));
        }
        let values: Vec<_> = kernel.constants.iter().map(|constant| (&*constant.name, constant.value)).collect();
        let specialised = reporting.specialise(&values).map_err(|error| Error::Argument {
            kernel: error.kernel,
            argument: error.constant,
            reason: error.reason,
        })?;
        Ok(Some(KernelHandle::Shared(Arc::new(specialised))))
    }

    /// The report buffer of a kernel that reports, of which [`Kernel::sites`] tell: all that run it write there.
    ///
    /// # Errors
    /// The device has no memory for it, or failed.
    pub fn report_buffer(&self, kernel: &Kernel) -> Result<MemoryRange> {
        if let Some(known) = self.report_buffers().of(kernel) {
            return Ok(known);
        }
        let label = format!("reports of {}", kernel.name);
        let memory = self.backend().allocate((WORDS * size_of::<u32>()) as u64, &label)?;
        let all = range(&memory, 0..WORDS);
        self.backend().write(&all, &vec![0; WORDS * size_of::<u32>()])?;
        let made = Arc::new(ReportBuffer {
            hash: kernel.hash,
            kernel: kernel.name.to_string(),
            workgroup_size: kernel.workgroup_size,
            sites: kernel.sites.to_vec(),
            memory,
            next: Mutex::new(BEGIN),
        });
        let mut buffers = lock(&self.report_buffers().buffers);
        // Another thread may have been faster.
        if let Some(known) = buffers.iter().find(|buffer| buffer.hash == kernel.hash) {
            return Ok(range(&known.memory, 0..WORDS));
        }
        buffers.push(made);
        Ok(all)
    }
}

/// The words for what is not told of by itself.
pub(crate) fn and_more(more: u64) -> String {
    if more == 0 { String::new() } else { format!(", and {more} more") }
}
