//! Many seeds: each drawn, run everywhere and compared, and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trefoil_dsl::device::{DeviceKind, DeviceOptions};

use trefoil_codegen::artefact::Kernel;
use trefoil_codegen::target::Target;

use crate::draw::draw;
use crate::fibers::{self, Fibers, Task};
use crate::held::Held;
use crate::interval::Reject;
use crate::run::{self, Failure};
use crate::spirv_val::{self, SpirvVal};
use crate::syntax::Program;
use crate::table::{Row, Table, add_counts, reached};
use crate::value::Value;
use crate::{meaning, nvrtc, print, reduce};

/// What runs a program without a device.
const OWN: [&str; 2] = ["checker", "evaluator"];

/// The sizes of a subgroup in the evaluator and the checker, where no device is asked.
const SUBGROUPS: [u32; 5] = [4, 8, 16, 32, 64];

/// That of a seed: drawn beside the program, so that a smaller one of the same seed has it too.
const fn subgroup_of(seed: u64) -> u32 {
    // What a kernel is about goes round with the seed.
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    SUBGROUPS[(mixed % SUBGROUPS.len() as u64) as usize]
}

/// What is no device and may be missing, by name: NVRTC, `spirv-val`, and what runs CUDA C on the CPU.
pub const TOOLS: [&str; 3] = [nvrtc::PLACE, spirv_val::PLACE, fibers::PLACE];

/// Whether a device or a tool, by name, must be there where these devices must, as the tests' `TREFOIL_REQUIRE_DEVICES` lists them.
pub fn is_required(name: &str, devices: &str) -> bool {
    if TOOLS.contains(&name) {
        return fibers::is_required(devices);
    }
    devices.split(',').any(|known| known.trim() == name)
}

/// A tool, if it opened; that it did not is added to what is refused.
fn opened<T>(name: &'static str, tool: Result<T, String>, refused: &mut Vec<(&'static str, String)>) -> Option<T> {
    tool.map_err(|words| refused.push((name, words))).ok()
}

/// How many kernels are compiled together for [`Fibers`]: with more, the time of the last ones is that of a single thread.
const BATCH: usize = 24;

/// Where programs run beside the evaluator and the checker.
#[derive(Debug, Default)]
pub struct Harness {
    /// Devices.
    pub devices: Vec<Held>,
    /// What compiles CUDA C without a device, and for every how many programs it is asked.
    pub nvrtc: Option<(nvrtc::Nvrtc, u64)>,
    /// What runs CUDA C on the CPU, and for every how many programs it is asked, whatever the devices get.
    pub fibers: Option<(Fibers, u64)>,
    /// What validates SPIR-V, and for every how many programs it is asked.
    pub spirv_val: Option<(SpirvVal, u64)>,
    /// Devices get one in so many programs; the evaluator and the checker get all.
    pub share: u64,
}

/// How long many seeds are run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many programs run at once.
    pub threads: usize,
    /// With so many failures it ends.
    pub failures: usize,
    /// After this time no further one begins.
    pub time: Option<Duration>,
}

/// What became of a program.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Everything agrees. What reached an output, and where it ran.
    Agrees(BTreeSet<Row>, Vec<String>),
    /// Nothing can be said of it.
    Rejected(Reject),
    /// Something disagrees.
    Fails(Failure),
}

/// The counts of a run, or of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    /// The first and the last seed of each run.
    pub seeds: Vec<[u64; 2]>,
    /// Programs that agree everywhere.
    pub accepted: u32,
    /// Programs of which nothing can be said, by reason.
    pub rejected: BTreeMap<String, u32>,
    /// Programs that agree, by where they ran: a device lacks what the others require, or was given a part of them.
    pub ran: BTreeMap<String, u32>,
    /// Seeds that fail, with why.
    pub failures: Vec<(u64, Failure)>,
    /// Programs whose CUDA C was compiled, and whose SPIR-V was validated.
    pub compiled: [u32; 2],
    /// What reached an output in the accepted ones.
    pub table: Table,
    /// How long it took.
    pub time: Duration,
}

/// A program whose CUDA C is yet to be run, since it is run together with that of others.
struct Waiting {
    program: Program,
    task: Task,
    wanted: Vec<Vec<Value>>,
}

/// What is known of a program before its CUDA C is run.
struct Judged {
    verdict: Verdict,
    waiting: Option<Waiting>,
}

/// Where a program ran, and what is left to be run.
#[derive(Default)]
struct Ran {
    reached: BTreeSet<Row>,
    places: Vec<String>,
    task: Option<Task>,
}

impl Harness {
    /// With every device of these kinds that opens, and NVRTC, `spirv-val` and a compiler of C++ for one in so many programs; beside it, by name, why devices and [`TOOLS`] are left out. With 0 no tool is asked for.
    pub fn open(kinds: &[DeviceKind], every: u64) -> (Self, Vec<(&'static str, String)>) {
        let (mut devices, mut refused) = (Vec::new(), Vec::new());
        for kind in kinds {
            let options = DeviceOptions::default();
            let device = match kind {
                DeviceKind::Cpu => trefoil_cpu::open(&options),
                DeviceKind::Wgpu => trefoil_wgpu::open(&options),
                DeviceKind::Vulkan => trefoil_vulkan::open(&options),
                DeviceKind::Cuda => trefoil_cuda::open(&options),
            };
            match device {
                Ok(device) => devices.push(Held::new(device)),
                Err(error) => refused.push((kind.name(), error.to_string())),
            }
        }
        let mut harness = Self { devices, share: 1, ..Self::default() };
        if every > 0 {
            harness.nvrtc = opened(nvrtc::PLACE, nvrtc::load(), &mut refused).map(|nvrtc| (nvrtc, every));
            harness.spirv_val = opened(spirv_val::PLACE, SpirvVal::open(), &mut refused).map(|tool| (tool, every));
            harness.fibers = opened(fibers::PLACE, Fibers::open(), &mut refused).map(|fibers| (fibers, every));
        }
        (harness, refused)
    }

    /// Runs a program everywhere, in the evaluator and the checker with subgroups of a size.
    pub fn judge(&self, program: &Program, number: u64, subgroup: u32) -> Verdict {
        let Judged { mut verdict, waiting } = self.begin(program, number, subgroup, true);
        if let Some(waiting) = waiting {
            for found in self.run_texts(&[&waiting]) {
                complete(&mut verdict, found);
            }
        }
        verdict
    }

    /// Runs a program everywhere but on fibers, and makes it ready for them if they are asked for it.
    fn begin(&self, program: &Program, number: u64, subgroup: u32, with_fibers: bool) -> Judged {
        let on_fibers = with_fibers && self.fibers.as_ref().is_some_and(|(_, every)| number.is_multiple_of(*every));
        let mut meanings: BTreeMap<u32, Vec<Vec<Value>>> = BTreeMap::new();
        let mut sizes = BTreeSet::from([subgroup]);
        if program.needs.subgroups {
            sizes.extend(self.devices.iter().filter_map(|held| run::subgroup_size(&held.device)));
            sizes.extend(on_fibers.then_some(fibers::SUBGROUP));
        }
        for size in sizes {
            match meaning::outcome(program, size) {
                Ok(wanted) => {
                    meanings.insert(size, wanted);
                }
                Err(reject) => return Judged { verdict: Verdict::Rejected(reject), waiting: None },
            }
        }
        let ran = match run::guarded(|| self.everywhere(program, number, subgroup, &meanings, on_fibers)) {
            Some(Ok(ran)) => ran,
            Some(Err(failure)) => return Judged { verdict: Verdict::Fails(failure), waiting: None },
            None => {
                let failure = Failure { place: "panic".to_owned(), words: "something panics".to_owned() };
                return Judged { verdict: Verdict::Fails(failure), waiting: None };
            }
        };
        let size = if program.needs.subgroups { fibers::SUBGROUP } else { subgroup };
        let wanted = meanings.remove(&size);
        let waiting = ran.task.zip(wanted).map(|(task, wanted)| Waiting { program: program.clone(), task, wanted });
        Judged { verdict: Verdict::Agrees(ran.reached, ran.places), waiting }
    }

    fn everywhere(
        &self,
        program: &Program,
        number: u64,
        subgroup: u32,
        meanings: &BTreeMap<u32, Vec<Vec<Value>>>,
        on_fibers: bool,
    ) -> Result<Ran, Failure> {
        let understood = run::understand(program)?;
        let Some(wanted) = meanings.get(&subgroup) else { return Ok(Ran::default()) };
        let found = run::checked(&understood.module, program, subgroup)?;
        run::agree("checker", program, wanted, &found)?;
        let found = run::evaluate(&understood.verified, program, subgroup)?;
        run::agree("evaluator", program, wanted, &found)?;
        let mut ran = Ran { places: OWN.map(str::to_owned).to_vec(), ..Ran::default() };
        let on_devices = number.is_multiple_of(self.share.max(1))
            && (!self.devices.is_empty() || self.nvrtc.is_some() || self.spirv_val.is_some());
        let targets: &[Target] = match (on_devices, on_fibers) {
            (true, _) => &Target::ALL,
            (false, true) => &[Target::Cuda],
            (false, false) => &[],
        };
        ran.reached = reached(&understood.module);
        if targets.is_empty() {
            return Ok(ran);
        }
        let kernel = Arc::new(run::compile(&understood.module, targets)?);
        if on_devices {
            self.on_devices(program, number, subgroup, meanings, &kernel, &mut ran.places)?;
        }
        ran.task = on_fibers.then(|| Task::new(&kernel, program)).transpose()?;
        Ok(ran)
    }

    fn on_devices(
        &self,
        program: &Program,
        number: u64,
        subgroup: u32,
        meanings: &BTreeMap<u32, Vec<Vec<Value>>>,
        kernel: &Arc<Kernel>,
        places: &mut Vec<String>,
    ) -> Result<(), Failure> {
        if let Some((nvrtc, every)) = &self.nvrtc
            && number.is_multiple_of(*every)
        {
            nvrtc::accepts(nvrtc, kernel)?;
        }
        run::writable(kernel)?;
        if let Some((tool, every)) = &self.spirv_val
            && number.is_multiple_of(*every)
        {
            tool.accepts(kernel)?;
        }
        for held in &self.devices {
            let size = if program.needs.subgroups { run::subgroup_size(&held.device) } else { Some(subgroup) };
            let Some(wanted) = size.and_then(|size| meanings.get(&size)) else { continue };
            if let Some(found) = held.launched(kernel, program)? {
                run::agree(held.name(), program, wanted, &found)?;
                places.push(held.name().to_owned());
            }
        }
        Ok(())
    }

    /// Whether what fibers make of programs is what these mean.
    fn run_texts(&self, all: &[&Waiting]) -> Vec<Result<(), Failure>> {
        let Some((fibers, _)) = &self.fibers else { return Vec::new() };
        let tasks: Vec<&Task> = all.iter().map(|waiting| &waiting.task).collect();
        let agrees = |(waiting, outcome): (&&Waiting, fibers::Outcome)| {
            run::agree(fibers::PLACE, &waiting.program, &waiting.wanted, &outcome?)
        };
        all.iter().zip(fibers.run(&tasks)).map(agrees).collect()
    }

    /// Runs seeds, on several threads and for no longer than a limit; tells of each failure, made smaller, as it is found.
    pub fn run(&self, seeds: Range<u64>, limits: Limits, tell: &(dyn Fn(String) + Sync)) -> Log {
        let start = Instant::now();
        let (next, log) = (AtomicU64::new(seeds.start), Mutex::new(Log::default()));
        let lock = || log.lock().unwrap_or_else(PoisonError::into_inner);
        let in_time = || limits.time.is_none_or(|time| start.elapsed() < time);
        let goes_on = || in_time() && lock().failures.len() < limits.failures;
        let settle = |seed: u64, program: &Program, verdict: Verdict| {
            if let Verdict::Fails(failure) = &verdict {
                // A batch may bring more failures than are asked for, and each takes many runs to be made smaller.
                let words = if goes_on() {
                    self.smallest(seed, program, failure, &in_time)
                } else {
                    format!("seed {seed}: {failure}")
                };
                tell(words);
            }
            self.count(&mut lock(), seed, verdict);
        };
        let held = Mutex::new(Vec::new());
        let taken = |least: usize| {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.len() < least { Vec::new() } else { std::mem::take(&mut *held) }
        };
        let run_together = |batch: Vec<(u64, Verdict, Waiting)>| {
            let all: Vec<&Waiting> = batch.iter().map(|(.., waiting)| waiting).collect();
            let found = self.run_texts(&all);
            for ((seed, mut verdict, waiting), found) in batch.into_iter().zip(found) {
                complete(&mut verdict, found);
                settle(seed, &waiting.program, verdict);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..limits.threads.max(1) {
                scope.spawn(|| {
                    while goes_on() {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        let program = draw(seed);
                        let Judged { verdict, waiting } = self.begin(&program, seed, subgroup_of(seed), true);
                        match waiting {
                            Some(waiting) => {
                                held.lock().unwrap_or_else(PoisonError::into_inner).push((seed, verdict, waiting));
                                run_together(taken(BATCH));
                            }
                            None => settle(seed, &program, verdict),
                        }
                    }
                    run_together(taken(1));
                });
            }
        });
        let mut log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
        log.time = start.elapsed();
        log
    }

    fn count(&self, log: &mut Log, seed: u64, verdict: Verdict) {
        match verdict {
            Verdict::Agrees(reached, ran) => {
                log.accepted += 1;
                log.table.add(&reached, &ran);
                for name in ran {
                    *log.ran.entry(name).or_default() += 1;
                }
                // Tools get of what devices get.
                let given = |every: Option<u64>| {
                    every.is_some_and(|every| seed.is_multiple_of(every) && seed.is_multiple_of(self.share.max(1)))
                };
                let nvrtc = self.nvrtc.as_ref().map(|(_, every)| *every);
                let spirv_val = self.spirv_val.as_ref().map(|(_, every)| *every);
                for (total, every) in log.compiled.iter_mut().zip([nvrtc, spirv_val]) {
                    *total += u32::from(given(every));
                }
            }
            Verdict::Rejected(reject) => *log.rejected.entry(reject.to_owned()).or_default() += 1,
            Verdict::Fails(failure) => log.failures.push((seed, failure)),
        }
    }

    /// A failure in words, with the smallest kernel found in time that fails in the same place.
    fn smallest(&self, seed: u64, program: &Program, failure: &Failure, in_time: &dyn Fn() -> bool) -> String {
        let subgroup = subgroup_of(seed);
        // What passes everywhere else is compiled once more for fibers, which takes longer than all else.
        let judge = |smaller: &Program| {
            if failure.place == fibers::PLACE {
                self.judge(smaller, 0, subgroup)
            } else {
                self.begin(smaller, 0, subgroup, false).verdict
            }
        };
        let fails = |smaller: &Program| {
            in_time()
                && match judge(smaller) {
                    Verdict::Fails(found) => found.place == failure.place,
                    _ => false,
                }
        };
        let smallest = reduce::reduced(program, &fails);
        let words = match judge(&smallest) {
            Verdict::Fails(found) => found.to_string(),
            _ => failure.to_string(),
        };
        let source = print::source(&smallest);
        format!("seed {seed}: {failure}\nThe smallest kernel that fails there ({words}):\n{source}")
    }
}

/// Adds to what is known of a program what fibers made of it.
fn complete(verdict: &mut Verdict, found: Result<(), Failure>) {
    match (verdict, found) {
        (Verdict::Agrees(_, places), Ok(())) => places.push(fibers::PLACE.to_owned()),
        (verdict, Err(failure)) => *verdict = Verdict::Fails(failure),
        _ => {}
    }
}

/// What is wrong with a file of counts.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// It cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something else stands there.
    #[error("{0} holds no counts of an earlier run")]
    Unknown(PathBuf),
}

impl Log {
    /// The counts of earlier runs; none if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, or something else stands there.
    pub fn read(path: &Path) -> Result<Option<Self>, CountsError> {
        match fs::read(path) {
            Ok(bytes) => postcard::from_bytes(&bytes).map(Some).map_err(|_| CountsError::Unknown(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CountsError::File { path: path.to_owned(), error }),
        }
    }

    /// Keeps the counts for a further run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CountsError> {
        let failed = |error| CountsError::File { path: path.to_owned(), error };
        let bytes = postcard::to_stdvec(self).map_err(|error| failed(io::Error::other(error)))?;
        fs::write(path, bytes).map_err(failed)
    }

    /// Adds what was counted of other seeds.
    pub fn add(&mut self, other: Self) {
        self.seeds.extend(other.seeds);
        self.accepted += other.accepted;
        add_counts(&mut self.rejected, other.rejected);
        add_counts(&mut self.ran, other.ran);
        self.failures.extend(other.failures);
        self.compiled = [0, 1].map(|index| self.compiled[index] + other.compiled[index]);
        self.table.join(other.table);
        self.time += other.time;
    }

    /// What was counted, in lines.
    pub fn lines(&self) -> Vec<String> {
        let rejected: u32 = self.rejected.values().sum();
        let ended = u64::from(self.accepted + rejected) + self.failures.len() as u64;
        let mut lines: Vec<String> =
            self.seeds.iter().map(|[first, last]| format!("seeds {first} to {last}")).collect();
        lines.extend([
            format!("{ended} kernels in {:.0} s", self.time.as_secs_f64()),
            format!(
                "{} agree, {} fail, of {rejected} nothing can be said; CUDA C of {} compiled by NVRTC, SPIR-V of {} validated",
                self.accepted,
                self.failures.len(),
                self.compiled[0],
                self.compiled[1]
            ),
        ]);
        lines.extend(self.rejected.iter().map(|(reason, count)| format!("nothing can be said: {reason}: {count}")));
        lines.extend(self.ran.iter().map(|(target, count)| format!("run on {target}: {count}")));
        lines
    }
}
