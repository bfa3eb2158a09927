//! Dispatches that are checked: the checker has memory of its own, and what a kernel changed is copied back.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use trefoil_codegen::artefact::{CpuBuffer, ParamRole};
use trefoil_codegen::check::{Launch, Options, Program, Report};
use trefoil_codegen::target::MOST_SUBGROUP;
use trefoil_dsl::device::{DeviceKind, DispatchCommand, Properties};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::support::state::lock;

use crate::device::Shared;
use crate::submit::broken;

type Watcher = dyn Fn(&Launch) + Send + Sync;

/// What the runs of a device that checks have found so far.
#[derive(Clone)]
pub struct Reports {
    options: Options,
    made: Arc<Mutex<Vec<Report>>>,
    watcher: Arc<OnceLock<Box<Watcher>>>,
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").field("options", &self.options).field("made", &self.made).finish_non_exhaustive()
    }
}

impl Reports {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, made: Arc::default(), watcher: Arc::default() }
    }

    /// Calls `watcher` with each dispatch before it runs, so that it can be checked once more, elsewhere or changed. The first watcher stays.
    pub fn watch(&self, watcher: impl Fn(&Launch) + Send + Sync + 'static) {
        self.watcher.get_or_init(|| Box::new(watcher));
    }

    /// A report for each dispatch since the last call, in the order in which they ran.
    pub fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *lock(&self.made))
    }

    /// Makes a processor's properties those of a device that checks.
    pub(crate) fn describe(&self, properties: &mut Properties) -> Result<()> {
        let size = self.options.subgroup_size;
        if !size.is_power_of_two() || size > MOST_SUBGROUP {
            return Err(Error::Unavailable {
                kind: DeviceKind::Cpu.name(),
                reason: format!("subgroups of {size} to check with; a power of two up to {MOST_SUBGROUP} is expected"),
            });
        }
        properties.name = format!("checker on {}", properties.name);
        // It runs what is made for GPUs, too.
        properties.software = true;
        properties.limits.min_subgroup = size;
        properties.limits.max_subgroup = size;
        Ok(())
    }
}

impl Shared {
    /// Runs a dispatch in the checker; the caller holds the turn, and has checked the ranges and the block.
    pub(crate) fn check_dispatch(
        &self,
        program: &Program,
        dispatch: &DispatchCommand,
        buffers: &[CpuBuffer],
        params: &[u8],
        groups: [u32; 3],
    ) -> Result<()> {
        let Some(reports) = &self.reports else { return Ok(()) };
        // The workgroups of a linear kernel lie along x, and those beyond the count of its block do nothing.
        let fields = dispatch.pipeline.kernel().params.fields.iter();
        let asked = fields.filter(|field| field.role == ParamRole::GroupCount).find_map(|field| {
            let word = params.get(field.offset as usize..field.offset as usize + 4)?;
            Some(u32::from_le_bytes(word.try_into().ok()?))
        });
        let groups = asked.map_or(groups, |count| [groups[0].min(count), 1, 1]);
        // SAFETY: the ranges are within memory that the command holds, which is initialised; nobody else uses device memory during our turn.
        let copy = |buffer: &CpuBuffer| unsafe { std::slice::from_raw_parts(buffer.pointer, buffer.bytes) }.to_vec();
        let before: Vec<Vec<u8>> = buffers.iter().map(copy).collect();
        if let Some(watcher) = reports.watcher.get() {
            watcher(&Launch::new(dispatch.pipeline.kernel(), &before, params, groups));
        }
        let mut after = before.clone();
        let report = program
            .run(&reports.options, &mut after, params, groups)
            .map_err(|error| broken(&dispatch.label, error.reason))?;
        lock(&reports.made).push(report);
        for ((buffer, before), after) in buffers.iter().zip(&before).zip(&after) {
            // Bindings may share memory, so that nothing but what was changed goes back.
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                if before != after {
                    // SAFETY: as above; the index is within the range.
                    unsafe { buffer.pointer.add(index).write(*after) };
                }
            }
        }
        Ok(())
    }
}
