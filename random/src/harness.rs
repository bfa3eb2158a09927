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
use trefoil_dsl::error::Error;

use trefoil_codegen::target::Target;

use crate::draw::draw;
use crate::held::Held;
use crate::interval::Reject;
use crate::run::{self, Failure};
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

/// Where programs run beside the evaluator and the checker.
#[derive(Debug, Default)]
pub struct Harness {
    /// Devices.
    pub devices: Vec<Held>,
    /// What compiles CUDA C without a device, and for every how many programs it is asked.
    pub nvrtc: Option<(nvrtc::Nvrtc, u64)>,
    /// Whether SPIR-V is handed to `spirv-val`, for every so many programs; 0 for none.
    pub spirv_val: u64,
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

impl Harness {
    /// With every device of these kinds that opens, and NVRTC and `spirv-val` for one in so many programs; beside it why other devices do not open.
    pub fn open(kinds: &[DeviceKind], every: u64) -> (Self, Vec<(DeviceKind, Error)>) {
        let (mut opened, mut refused) = (Vec::new(), Vec::new());
        for kind in kinds {
            let options = DeviceOptions::default();
            let device = match kind {
                DeviceKind::Cpu => trefoil_cpu::open(&options),
                DeviceKind::Wgpu => trefoil_wgpu::open(&options),
                DeviceKind::Vulkan => trefoil_vulkan::open(&options),
                DeviceKind::Cuda => trefoil_cuda::open(&options),
            };
            match device {
                Ok(device) => opened.push(Held::new(device)),
                Err(error) => refused.push((*kind, error)),
            }
        }
        let nvrtc = nvrtc::load().filter(|_| every > 0).map(|nvrtc| (nvrtc, every));
        (Self { devices: opened, nvrtc, spirv_val: every, share: 1 }, refused)
    }

    /// Runs a program everywhere, in the evaluator and the checker with subgroups of a size.
    pub fn judge(&self, program: &Program, number: u64, subgroup: u32) -> Verdict {
        let mut meanings: BTreeMap<u32, Vec<Vec<Value>>> = BTreeMap::new();
        let mut sizes = BTreeSet::from([subgroup]);
        sizes.extend(self.devices.iter().filter_map(|held| run::subgroup_size(&held.device)));
        if !program.needs.subgroups {
            sizes = BTreeSet::from([subgroup]);
        }
        for size in sizes {
            match meaning::outcome(program, size) {
                Ok(wanted) => {
                    meanings.insert(size, wanted);
                }
                Err(reject) => return Verdict::Rejected(reject),
            }
        }
        match run::guarded(|| self.everywhere(program, number, subgroup, &meanings)) {
            Some(Ok((reached, ran))) => Verdict::Agrees(reached, ran),
            Some(Err(failure)) => Verdict::Fails(failure),
            None => Verdict::Fails(Failure { place: "panic".to_owned(), words: "something panics".to_owned() }),
        }
    }

    #[allow(clippy::type_complexity, reason = "the two lists of a verdict")]
    fn everywhere(
        &self,
        program: &Program,
        number: u64,
        subgroup: u32,
        meanings: &BTreeMap<u32, Vec<Vec<Value>>>,
    ) -> Result<(BTreeSet<Row>, Vec<String>), Failure> {
        let understood = run::understand(program)?;
        let Some(wanted) = meanings.get(&subgroup) else { return Ok((BTreeSet::new(), Vec::new())) };
        let found = run::checked(&understood.module, program, subgroup)?;
        run::agree("checker", program, wanted, &found)?;
        let found = run::evaluate(&understood.verified, program, subgroup)?;
        run::agree("evaluator", program, wanted, &found)?;
        let mut ran = OWN.map(str::to_owned).to_vec();
        let has_share = number.is_multiple_of(self.share.max(1));
        if has_share && (!self.devices.is_empty() || self.nvrtc.is_some() || self.spirv_val > 0) {
            let kernel = Arc::new(run::compile(&understood.module, &Target::ALL)?);
            if let Some((nvrtc, every)) = &self.nvrtc
                && number.is_multiple_of(*every)
            {
                nvrtc::accepts(nvrtc, &kernel)?;
            }
            run::writable(&kernel)?;
            if self.spirv_val > 0 && number.is_multiple_of(self.spirv_val) {
                run::validated(&kernel, number)?;
            }
            for held in &self.devices {
                let size = if program.needs.subgroups { run::subgroup_size(&held.device) } else { Some(subgroup) };
                let Some(wanted) = size.and_then(|size| meanings.get(&size)) else { continue };
                if let Some(found) = held.launched(&kernel, program)? {
                    run::agree(held.name(), program, wanted, &found)?;
                    ran.push(held.name().to_owned());
                }
            }
        }
        Ok((reached(&understood.module), ran))
    }

    /// Runs seeds, on several threads and for no longer than a limit; tells of each failure, made smaller, as it is found.
    pub fn run(&self, seeds: Range<u64>, limits: Limits, tell: &(dyn Fn(String) + Sync)) -> Log {
        let start = Instant::now();
        let (next, log) = (AtomicU64::new(seeds.start), Mutex::new(Log::default()));
        let lock = || log.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on =
            || limits.time.is_none_or(|time| start.elapsed() < time) && lock().failures.len() < limits.failures;
        std::thread::scope(|scope| {
            for _ in 0..limits.threads.max(1) {
                scope.spawn(|| {
                    while goes_on() {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        let program = draw(seed);
                        let verdict = self.judge(&program, seed, subgroup_of(seed));
                        if let Verdict::Fails(failure) = &verdict {
                            let in_time = || limits.time.is_none_or(|time| start.elapsed() < time);
                            tell(self.smallest(seed, &program, failure, &in_time));
                        }
                        self.count(&mut lock(), seed, verdict);
                    }
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
                let counts = [
                    self.nvrtc.as_ref().is_some_and(|(_, every)| seed.is_multiple_of(*every)),
                    self.spirv_val > 0 && seed.is_multiple_of(self.spirv_val),
                ];
                for (total, counted) in log.compiled.iter_mut().zip(counts) {
                    *total += u32::from(counted);
                }
            }
            Verdict::Rejected(reject) => *log.rejected.entry(reject.to_owned()).or_default() += 1,
            Verdict::Fails(failure) => log.failures.push((seed, failure)),
        }
    }

    /// A failure in words, with the smallest kernel found in time that fails in the same place.
    fn smallest(&self, seed: u64, program: &Program, failure: &Failure, in_time: &dyn Fn() -> bool) -> String {
        let subgroup = subgroup_of(seed);
        let fails = |smaller: &Program| {
            in_time()
                && match self.judge(smaller, 0, subgroup) {
                    Verdict::Fails(found) => found.place == failure.place,
                    _ => false,
                }
        };
        let smallest = reduce::reduced(program, &fails);
        let words = match self.judge(&smallest, 0, subgroup) {
            Verdict::Fails(found) => found.to_string(),
            _ => failure.to_string(),
        };
        let source = print::source(&smallest);
        format!("seed {seed}: {failure}\nThe smallest kernel that fails there ({words}):\n{source}")
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
