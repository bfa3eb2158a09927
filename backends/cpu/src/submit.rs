//! Running commands.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use trefoil_codegen::artefact::{CpuArguments, CpuBuffer, GridKind};
use trefoil_dsl::device::{
    Call, CallCommand, Command, CopyCommand, DispatchCommand, GroupSource, MemoryRange, ParamSource, Recording, RunIo,
};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::check::{GROUP_BYTES, group_counts};
use trefoil_dsl::support::state::{CounterCells, lock};

use crate::device::{CpuBackend, Shared};
use crate::memory::CpuMemory;
use crate::pipeline::CpuPipeline;
use crate::record::{Aligned, CpuRecording};

/// A dispatch of no more invocations than this runs on one thread: waking the others would take longer.
const ALONE: u64 = 4096;
/// Runs of workgroups for each thread, so that threads that are done early take more.
const RUNS_PER_THREAD: u64 = 8;

/// The least bytes of a copy that are worth a thread.
const COPY_PIECE: usize = 1 << 20;

/// A command whose arguments are wrong.
pub(crate) fn broken(label: &str, reason: String) -> Error {
    Error::Command { label: label.to_owned(), reason }
}

impl CpuBackend {
    /// Checks a list before any of it runs.
    pub(crate) fn check(&self, commands: &[Command]) -> Result<()> {
        self.shared.state.checks().commands(commands, None)?;
        self.transports(commands)
    }

    /// Checks that pipelines were loaded for how their parameters come.
    pub(crate) fn transports(&self, commands: &[Command]) -> Result<()> {
        let shared = &self.shared;
        for command in commands {
            if let Command::Dispatch(dispatch) = command {
                let pipeline = CpuPipeline::of(&dispatch.pipeline, shared)?;
                shared.state.checks().transport(dispatch, pipeline.transport)?;
            }
        }
        Ok(())
    }

    /// Runs a list; it is done when the call returns.
    pub(crate) fn submit_list(&self, commands: &[Command]) -> Result<()> {
        self.check(commands)?;
        let shared = &self.shared;
        let _turn = lock(&shared.turn);
        shared.on_pool(|| commands.iter().try_for_each(|command| shared.command(command, &[])))?;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }

    /// Runs a recording: uploads, commands, downloads.
    pub(crate) fn run_recording(&self, recording: &dyn Recording, io: RunIo<'_, '_>) -> Result<()> {
        self.run_own(CpuRecording::of(recording, &self.shared)?, io)
    }

    /// Runs a recording without run words; it is done when the call returns.
    pub(crate) fn submit_recording(&self, recording: &dyn Recording) -> Result<()> {
        let own = CpuRecording::of(recording, &self.shared)?;
        own.rules.expect_none(&Command::first_label(&own.commands))?;
        self.run_own(own, RunIo::default())
    }

    /// Runs a recording that this device made.
    fn run_own(&self, recording: &CpuRecording, io: RunIo<'_, '_>) -> Result<()> {
        let shared = &self.shared;
        let mut state = lock(&recording.state);
        shared.state.checks().io(&io, &recording.rules, state.ran)?;
        let RunIo { run_words, uploads, downloads } = io;
        if let Some(words) = run_words {
            state.words.set(words);
        }
        let _turn = lock(&shared.turn);
        for (range, data) in uploads {
            shared.upload(range, data)?;
        }
        let words = state.words.bytes();
        shared.on_pool(|| recording.commands.iter().try_for_each(|command| shared.command(command, words)))?;
        for (range, data) in downloads {
            shared.download(range, data)?;
        }
        state.ran = true;
        CounterCells::add(&shared.state.counters.submissions);
        Ok(())
    }
}

impl Shared {
    /// Copies to memory; the range was checked, and the caller holds the turn.
    pub(crate) fn upload(&self, to: &MemoryRange, data: &[u8]) -> Result<()> {
        let ends = Ends { from: data.as_ptr(), to: CpuMemory::at(to, self)? };
        if data.len() > COPY_PIECE {
            self.on_pool(|| self.copy_ends(&ends, data.len()));
            return Ok(());
        }
        // SAFETY: the range is within its memory and as long as the data; nobody else uses device memory during our turn.
        unsafe { std::ptr::copy_nonoverlapping(ends.from, ends.to, data.len()) };
        Ok(())
    }

    /// Copies from memory; the range was checked, and the caller holds the turn.
    pub(crate) fn download(&self, from: &MemoryRange, data: &mut [u8]) -> Result<()> {
        let at = CpuMemory::at(from, self)?;
        // SAFETY: as in `upload`.
        unsafe { std::ptr::copy_nonoverlapping(at.cast_const(), data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// Runs a command that was checked, on a thread of the pool; the caller holds the turn.
    pub(crate) fn command(&self, command: &Command, words: &[u8]) -> Result<()> {
        match command {
            Command::Barrier => Ok(()),
            Command::Call(call) => self.call(call, words),
            Command::Copy(copy) => self.copy(copy),
            Command::Dispatch(dispatch) => self.dispatch(dispatch, words),
        }
    }

    fn copy(&self, copy: &CopyCommand) -> Result<()> {
        let bytes = copy.from.bytes as usize;
        let ends = Ends { from: CpuMemory::at(&copy.from, self)?.cast_const(), to: CpuMemory::at(&copy.to, self)? };
        self.copy_ends(&ends, bytes);
        Ok(())
    }

    /// Copies so many bytes, on a thread of the pool and with the others.
    fn copy_ends(&self, ends: &Ends, bytes: usize) {
        let piece = bytes.div_ceil(self.pool.current_num_threads()).next_multiple_of(64).max(COPY_PIECE);
        rayon::scope(|scope| {
            for first in (0..bytes).step_by(piece) {
                scope.spawn(move |_| {
                    let count = piece.min(bytes - first);
                    // SAFETY: both ranges are within their memory and do not overlap, as callers ensure; the pieces are disjoint; nobody else uses
                    // device memory during our turn.
                    unsafe { std::ptr::copy_nonoverlapping(ends.from.add(first), ends.to.add(first), count) };
                });
            }
        });
    }

    fn call(&self, call: &CallCommand, words: &[u8]) -> Result<()> {
        let mut reads = Vec::with_capacity(call.reads.len());
        for range in &call.reads {
            let at = CpuMemory::at(range, self)?;
            // SAFETY: the range is within its memory, which is initialised; nothing writes it during the call, because writes
            // were checked not to overlap reads.
            reads.push(unsafe { std::slice::from_raw_parts(at.cast_const(), range.bytes as usize) });
        }
        let mut writes = Vec::with_capacity(call.writes.len());
        for range in &call.writes {
            let at = CpuMemory::at(range, self)?;
            // SAFETY: as above; the ranges written overlap no other.
            writes.push(unsafe { std::slice::from_raw_parts_mut(at, range.bytes as usize) });
        }
        match &call.call {
            Call::Host(function) => {
                let mine = words
                    .get(call.run_words.start as usize..call.run_words.end as usize)
                    .ok_or_else(|| broken(&call.label, "its run words are missing".to_owned()))?;
                function(&reads, &mut writes, mine).map_err(|message| self.state.lost(&call.label, message))
            }
            #[cfg(feature = "gemm")]
            Call::Product(product) => {
                // SAFETY: the list was checked, and the ranges are the call's.
                let done = unsafe { crate::library::multiply(product, &reads, &mut writes) };
                done.ok_or_else(|| call.refused(&self.state.properties))
            }
            #[cfg(not(feature = "gemm"))]
            Call::Product(_) => Err(call.refused(&self.state.properties)),
        }
    }

    fn dispatch(&self, dispatch: &DispatchCommand, words: &[u8]) -> Result<()> {
        let pipeline = CpuPipeline::of(&dispatch.pipeline, self)?;
        let kernel = dispatch.pipeline.kernel();
        let size = kernel.params.size as usize;
        let mut own = Aligned::default();
        let missing = || broken(&dispatch.label, "its run words are missing".to_owned());
        let params: &[u8] = match &dispatch.params {
            ParamSource::Value(bytes) => {
                own = Aligned::new(bytes.len());
                own.set(bytes);
                own.bytes().get(..size).ok_or_else(missing)?
            }
            ParamSource::RunWords(first) => words.get(*first as usize..*first as usize + size).ok_or_else(missing)?,
        };
        let groups = match &dispatch.groups {
            GroupSource::Value(groups) => *groups,
            GroupSource::Memory(range) => {
                let mut bytes = [0; GROUP_BYTES];
                self.download(range, &mut bytes)?;
                let groups = group_counts(bytes);
                self.state.checks().grid(kernel, groups)?;
                groups
            }
            GroupSource::RunWords { offset, .. } => {
                let given = words.get(*offset as usize..).and_then(<[u8]>::first_chunk::<GROUP_BYTES>);
                group_counts(*given.ok_or_else(missing)?)
            }
        };
        if groups.contains(&0) {
            return Ok(());
        }
        let buffers = dispatch
            .bindings
            .iter()
            .map(|range| Ok(CpuBuffer { pointer: CpuMemory::at(range, self)?, bytes: range.bytes as usize }))
            .collect::<Result<Vec<_>>>()?;
        let total: u64 = groups.iter().map(|count| u64::from(*count)).product();
        // A linear kernel's workgroups all lie along x, however the launch folded them.
        let groups = match (kernel.grid, u32::try_from(total)) {
            (GridKind::Linear, Ok(total)) => [total, 1, 1],
            _ => groups,
        };
        if let Some(program) = pipeline.checked() {
            return self.check_dispatch(program, dispatch, &buffers, params, groups);
        }
        let invocations: u64 = kernel.workgroup_size.iter().map(|size| u64::from(*size)).product();
        let threads = self.pool.current_num_threads() as u64;
        let subgroup_size = kernel.subgroup_size.unwrap_or(self.state.properties.limits.max_subgroup);
        let arguments = Arguments(CpuArguments { buffers: &buffers, params, groups, subgroup_size });
        let few = |groups: u64| groups.saturating_mul(invocations) <= ALONE;
        // In all but huge grids these are all of them.
        let at_once = if threads == 1 || few(total) { 1 } else { pipeline.at_once(params).min(total) };
        if at_once == 1 || few(at_once) {
            // SAFETY: see `Arguments`.
            unsafe { pipeline.run(&arguments.0, 0, total) };
            return Ok(());
        }
        let mut first = 0;
        while first < total {
            let end = total.min(first.saturating_add(at_once));
            self.run_at_once(pipeline, &arguments, invocations, first..end);
            first = end;
        }
        drop(own);
        Ok(())
    }

    /// Runs workgroups that may run at once on all threads; `invocations` is how many each has.
    fn run_at_once(&self, pipeline: &CpuPipeline, arguments: &Arguments<'_>, invocations: u64, groups: Range<u64>) {
        let (threads, count) = (self.pool.current_num_threads() as u64, groups.end - groups.start);
        let step = count.div_ceil(threads * RUNS_PER_THREAD).max(ALONE / 4 / invocations.max(1)).max(1);
        let next = AtomicU64::new(groups.start);
        let work = || {
            loop {
                let first = next.fetch_add(step, Ordering::Relaxed);
                if first >= groups.end {
                    break;
                }
                // SAFETY: see `Arguments`.
                unsafe { pipeline.run(&arguments.0, first, groups.end.min(first + step)) };
            }
        };
        rayon::scope(|scope| {
            for _ in 1..threads.min(count.div_ceil(step)) {
                scope.spawn(|_| work());
            }
            work();
        });
    }
}

/// The ends of a copy on all its threads, which take disjoint pieces.
struct Ends {
    from: *const u8,
    to: *mut u8,
}

// SAFETY: the pointers are to memory that the copy's command holds; threads use disjoint pieces of it.
unsafe impl Sync for Ends {}

/// Arguments of a dispatch on all its threads.
///
/// The safety of the calls: every binding is within memory that the command holds, aligned to its scalars, initialised, and long
/// enough for the lengths in the parameter block, and by these lengths what is written is bound once, all of which was checked; nobody outside the dispatch uses device memory during
/// our turn; workgroups follow the IR's rules among themselves, and on several threads run those alone that may run at once.
struct Arguments<'a>(CpuArguments<'a>);

// SAFETY: the pointers inside are to memory that kernels on several threads may use, as said above.
unsafe impl Sync for Arguments<'_> {}
