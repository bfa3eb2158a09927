//! What the steps of a run took, against what the device can do: as a table, and as a trace for Perfetto or Chrome.
//!
//! Times of steps are the device's own, one step at a time, each waiting for the one before: they tell where time goes, and their sum is what a run takes on the device where no two steps overlap. Bytes are those of the values that a step reads and
//! writes, at the run's extents; what a cache serves counts as if it came from memory, so that a share may pass the whole.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde_json::{Value, json};
use trefoil_dsl::device::{Command, CopyCommand, Device, MemoryRange};

use crate::error::{Result, at};

/// What a device can do at most, which steps are held against.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Bytes that it reads and writes in a second.
    pub bytes_per_second: f64,
    /// Floating-point operations that it does in a second, where somebody knows.
    pub flops_per_second: Option<f64>,
}

/// What a step took, and what it did in that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTime {
    /// Its label, as in [`crate::Executable::explain`].
    pub label: Arc<str>,
    /// The kernel, or the function of the host.
    pub kernel: String,
    /// Nanoseconds by the device's own clock.
    pub nanoseconds: u64,
    /// Bytes of the values that it reads and writes.
    pub bytes: u64,
    /// Floating-point operations of the nodes that it computes. Where a node has several steps, they share its operations in the proportion of their times.
    pub flops: u64,
}

/// Something that the host did meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTime {
    /// What.
    pub name: &'static str,
    /// Nanoseconds from the start of the profile.
    pub start: u64,
    /// How long it took.
    pub nanoseconds: u64,
}

/// What the steps of a run took ([`crate::Executable::profile`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The device's name.
    pub device: String,
    /// What the steps are held against, once it was said.
    pub ceiling: Option<Ceiling>,
    /// The steps, in order.
    pub steps: Vec<StepTime>,
    /// What the host did; the last of it is the steps' time as the host sees it.
    pub host: Vec<HostTime>,
}

/// Bytes that [`Ceiling::measure`] copies, where so many can be allocated: more than any cache holds.
const COPIED: u64 = 256 << 20;
/// Those of a device that is a processor in disguise, of which nothing is waited for long.
const COPIED_BY_SOFTWARE: u64 = 32 << 20;
/// How often it copies.
const COPIES: usize = 5;

impl Ceiling {
    /// Measures how fast the device copies its own memory: the best of a few copies of much memory. Operations are left unknown.
    ///
    /// # Errors
    /// The device has no clock, too little memory, or failed.
    pub fn measure(device: &Device) -> Result<Self> {
        let most = if device.properties().software { COPIED_BY_SOFTWARE } else { COPIED };
        let bytes = most.min(device.limits().max_allocation_bytes / 4 * 4);
        let failed = || at("a copy of", "the ceiling's memory");
        let memory = || device.backend().allocate(bytes, "the ceiling's memory").map_err(failed());
        let (from, to) = (memory()?, memory()?);
        let whole = |memory| MemoryRange { memory, offset: 0, bytes };
        let copy = CopyCommand { from: whole(from), to: whole(to), label: Arc::from("copy for the ceiling") };
        let times = device.backend().time(&vec![Command::Copy(copy); COPIES]).map_err(failed())?;
        // A clock may be too coarse for a copy of little.
        let best = times.into_iter().min().unwrap_or(0).max(1);
        // Each byte is read and written.
        Ok(Self { bytes_per_second: 2.0 * bytes as f64 / (best as f64 * 1e-9), flops_per_second: None })
    }
}

impl StepTime {
    /// How much of the ceiling the step reaches: of that of memory or of operations, whichever it is nearer to. None where no time was measured.
    pub fn share(&self, ceiling: Ceiling) -> Option<f64> {
        let seconds = self.nanoseconds as f64 * 1e-9;
        let of_memory = self.bytes as f64 / ceiling.bytes_per_second;
        let of_operations = ceiling.flops_per_second.map_or(0.0, |most| self.flops as f64 / most);
        (self.nanoseconds > 0).then(|| of_memory.max(of_operations) / seconds)
    }

    /// A rate in billions a second; 0 where no time was measured.
    fn rate(&self, count: u64) -> f64 {
        if self.nanoseconds == 0 { 0.0 } else { count as f64 / self.nanoseconds as f64 }
    }
}

impl Profile {
    /// The same, held against a ceiling.
    #[must_use]
    pub fn against(self, ceiling: Ceiling) -> Self {
        Self { ceiling: Some(ceiling), ..self }
    }

    /// The time of all steps.
    pub fn nanoseconds(&self) -> u64 {
        self.steps.iter().map(|step| step.nanoseconds).sum()
    }

    /// The profile as a trace in the format that <https://ui.perfetto.dev> and `chrome://tracing` open: a row of the host and one of the device, on which each step has its bytes, operations and share in `args`. A device's
    /// clock tells how long steps take and not when, so they lie one after the other from where the host started them.
    pub fn trace(&self) -> Value {
        const HOST: u32 = 1;
        const DEVICE: u32 = 2;
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let row = |thread: u32, name: &str| json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": { "name": name } });
        let mut events = vec![
            json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": "trefoil" } }),
            row(HOST, "host"),
            row(DEVICE, &self.device),
        ];
        let event = |thread: u32, name: &str, start: u64, nanoseconds: u64, args: Value| json!({ "name": name, "ph": "X", "pid": 1, "tid": thread, "ts": microseconds(start), "dur": microseconds(nanoseconds), "args": args });
        for span in &self.host {
            events.push(event(HOST, span.name, span.start, span.nanoseconds, json!({})));
        }
        let mut now = self.host.last().map_or(0, |span| span.start);
        for step in &self.steps {
            let mut args = json!({ "kernel": step.kernel, "bytes": step.bytes, "flops": step.flops, "GB/s": step.rate(step.bytes), "GFLOP/s": step.rate(step.flops) });
            if let Some(share) = self.ceiling.and_then(|ceiling| step.share(ceiling)) {
                args["share of the ceiling"] = json!(share);
            }
            events.push(event(DEVICE, &step.label, now, step.nanoseconds, args));
            now += step.nanoseconds;
        }
        json!({ "displayTimeUnit": "ns", "traceEvents": events })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.nanoseconds();
        write!(f, "{}: {} steps in {:.1} us", self.device, self.steps.len(), all as f64 / 1e3)?;
        match self.ceiling {
            Some(ceiling) => writeln!(f, ", of a device that moves {:.1} GB/s", ceiling.bytes_per_second / 1e9)?,
            None => writeln!(f)?,
        }
        writeln!(f, "{:>10} {:>6} {:>10} {:>9} {:>10} {:>8}  step", "us", "time", "KiB", "GB/s", "GFLOP/s", "ceiling")?;
        for step in &self.steps {
            let mut share = String::new();
            if let Some(reached) = self.ceiling.and_then(|ceiling| step.share(ceiling)) {
                write!(share, "{:.1} %", 100.0 * reached)?;
            }
            writeln!(
                f,
                "{:>10.2} {:>4.1} % {:>10.1} {:>9.2} {:>10.2} {share:>8}  {}: {}",
                step.nanoseconds as f64 / 1e3,
                100.0 * step.nanoseconds as f64 / all.max(1) as f64,
                step.bytes as f64 / 1024.0,
                step.rate(step.bytes),
                step.rate(step.flops),
                step.label,
                step.kernel,
            )?;
        }
        Ok(())
    }
}
