//! How a scan is cut into launches.
//!
//! Axes that follow on each other in memory, before the scanned one or behind it, become one. Where the results of a sequence follow on each other it is gone over along a row, else down a
//! column, its elements lying where they do. Where there are few sequences for a device, they are cut in pieces, whose totals are scanned in between.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::{DeviceKind, Properties};
use trefoil_kernels::scan::shapes::{DOWN, EACH, LEVELS, Part, SIZE, Walk};

use super::super::levels::{Level, count, innermost_first, merged_in_all};
use super::super::support::{
    LAUNCH, is_worth_a_pipeline, kernel_time, number, power_of_two, specialised, transfer_time, upper,
};
use super::{Scan, Sweep};
use crate::dim::Dim;
use crate::op::{Grid, Implementation, Ineligible, KernelStep, Operand, ParamValue, Slot, Step};

/// Workgroups that a large GPU holds at once: eight for each of 128 multiprocessors.
const WANTED: i64 = 1024;
/// With fewer workgroups sequences are cut in pieces: one for each of 132 multiprocessors asks for 16 KiB at once, which is a third of what keeps its memory busy, as much as reading twice costs.
const FEW: i64 = 132;
/// The same where a round is read while the one before is put together: half of what keeps memory busy is asked for all the time.
const FEW_EARLY: i64 = 128;
/// The most invocations that share a column: those side by side read half a line of the cache at least, and on CUDA where a round is read early, for which fewer workgroups will do, a line.
fn most_along(device: DeviceKind, early: bool) -> i64 {
    if early && device == DeviceKind::Cuda { 32 } else { 64 }
}

/// The kernels of a scan.
pub(super) struct Kernels {
    /// Scans elements.
    pub(super) scan: Arc<Kernel>,
    /// Scans what pieces come to.
    pub(super) parts: Arc<Kernel>,
}

/// Everything about a launch but which part of the work it is.
struct Launch {
    walk: Walk,
    n: Dim,
    lines: Dim,
    inner: Dim,
    /// Along `inner` and `n`, of elements and of results.
    strides: [Dim; 4],
    levels: Vec<Level<2>>,
    /// Whether quads of columns are read a round early.
    early: bool,
    along: i64,
    chunk: Dim,
    pieces: i64,
}

impl Launch {
    /// Whether its pipeline knows how many invocations share a sequence.
    fn is_large(&self) -> bool {
        is_worth_a_pipeline([&self.lines, &self.inner, &self.n])
    }

    /// Sequences, or bundles of four.
    fn units(&self) -> Dim {
        let columns = if self.walk == Walk::Quads { self.inner.quotient(&number(4)) } else { self.inner.clone() };
        self.lines.clone() * columns
    }

    fn step(&self, kernel: &Kernel, bindings: [Slot; 4], part: Part, sweep: Sweep) -> Result<Step, Ineligible> {
        // Rows of words are done in 48 registers; columns hold more.
        let of_words = kernel.bindings.iter().all(|binding| binding.element.size <= 4);
        let resident = if self.walk == Walk::Rows && of_words { 5 } else { 1 };
        let early = i64::from(self.early);
        let along = if self.is_large() { self.along } else { 0 };
        let constants = [
            ("WALK", self.walk as i64),
            ("PART", part as i64),
            ("EARLY", early),
            ("ALONG", along),
            ("RESIDENT", resident),
        ];
        let kernel = specialised(kernel, &constants)?;
        let params = vec![
            ParamValue::Bool(sweep.exclusive),
            ParamValue::Bool(sweep.reverse),
            ParamValue::Dims(vec![self.lines.clone(), self.inner.clone(), self.n.clone()]),
            ParamValue::Dims(self.strides.to_vec()),
            ParamValue::Dim(number(i64::try_from(self.levels.len()).unwrap_or(0))),
            innermost_first(&self.levels, LEVELS, |level| level.extent.clone()),
            innermost_first(&self.levels, LEVELS, |level| level.strides[0].clone()),
            innermost_first(&self.levels, LEVELS, |level| level.strides[1].clone()),
            ParamValue::Dims(vec![number(self.along), self.chunk.clone(), number(self.pieces)]),
        ];
        let across = SIZE as i64 / self.along;
        let grid = Grid::Workgroups(self.units().quotient_up(across) * self.pieces);
        Ok(Step::Kernel(KernelStep { kernel, bindings: bindings.to_vec(), params, grid }))
    }
}

/// Invocations that share a row of so many elements: one quad for each in short rows, four in long ones.
fn along_row(n: i64) -> i64 {
    let quads = n.saturating_add(3) / 4;
    power_of_two((quads + 3) / 4, SIZE as i64).max(power_of_two(quads, 32))
}

/// Invocations that share a column of `n` elements, or four columns, of which there are so many: as few as fill a device.
fn along_columns(units: i64, n: i64, most: i64) -> i64 {
    let each = power_of_two(n.saturating_add(DOWN as i64 - 1) / DOWN as i64, SIZE as i64);
    let most = each.min(most);
    let mut along = 1;
    while along < most && units.saturating_mul(along) / (SIZE as i64) < WANTED {
        along *= 2;
    }
    // No invocation beside the last column.
    while SIZE as i64 / along > power_of_two(units, SIZE as i64) && along < each {
        along *= 2;
    }
    along
}

/// The scan of `x`.
pub(super) fn implement(
    x: &Operand,
    scan: &Scan,
    kernels: &Kernels,
    device: &Properties,
) -> Result<Implementation, Ineligible> {
    let (rank, at) = (x.ty.rank(), scan.axis);
    let results = crate::types::Layout::contiguous(&x.ty.shape).strides;
    let level = |axis: usize| Level {
        extent: x.ty.shape[axis].clone(),
        strides: [x.layout.strides[axis].clone(), results[axis].clone()],
    };
    let scanned = level(at);
    let n = scanned.extent.clone();
    let outer = merged_in_all((0..at).map(level));
    let mut behind = merged_in_all((at + 1..rank).map(level));
    let four = |dim: &Dim| dim.divides_evenly(4);
    let row = behind.is_empty();
    let inner = behind.pop().unwrap_or_else(Level::one);
    let levels: Vec<Level<2>> = outer.into_iter().chain(behind).collect();
    if levels.len() > LEVELS {
        return Err(Ineligible::NeedsContiguous(vec![0]));
    }
    let aligned = levels.iter().all(|level| level.strides.iter().all(four));
    let walk = if row {
        if scanned.strides[0].is(1) && four(&n) && aligned { Walk::Rows } else { Walk::Elements }
    } else if inner.strides[0].is(1) && four(&inner.extent) && aligned && scanned.strides.iter().all(four) {
        Walk::Quads
    } else {
        Walk::Columns
    };
    // Kernels take a few elements for short sequences.
    let is_broadcast = x.layout.strides.iter().zip(&x.ty.shape).any(|(stride, extent)| stride.is(0) && !extent.is(1));
    if matches!(walk, Walk::Elements | Walk::Columns) && is_broadcast {
        return Err(Ineligible::NeedsContiguous(vec![0]));
    }
    let [x_inner, y_inner] = inner.strides;
    let [x_n, y_n] = scanned.strides;
    let mut launch = Launch {
        walk,
        lines: count(&levels),
        inner: inner.extent,
        strides: [x_inner, x_n, y_inner, y_n],
        levels,
        early: false,
        along: 1,
        chunk: n.clone(),
        pieces: 1,
        n,
    };
    // Vulkan's compilers wait for what is read early before the round is over, unless they know how many invocations share a column.
    launch.early = walk == Walk::Quads
        && match device.kind {
            DeviceKind::Wgpu => false,
            DeviceKind::Vulkan => launch.is_large(),
            _ => true,
        };
    let (units, most) = (launch.units().bounds().1, launch.n.bounds().1);
    launch.along =
        if row { along_row(most) } else { along_columns(units, most, most_along(device.kind, launch.early)) };
    let groups = (units.saturating_mul(launch.along) / SIZE as i64).max(1);
    // What a team takes at once.
    let span = launch.along * EACH[usize::from(!row)] as i64;
    let few = if launch.early { FEW_EARLY } else { FEW };
    let pieces = if groups >= few { 1 } else { (WANTED / groups).min(most / (2 * span)) };
    let bytes = upper(&x.ty.bytes());
    let slots = |before, totals| [Slot::Input(0), Slot::Output(0), before, totals];
    // A binding that is written holds something.
    let value = kernels.scan.bindings.get(3).map_or(4, |binding| i64::from(binding.element.size));
    if pieces < 2 {
        let step = launch.step(&kernels.scan, slots(Slot::Empty, Slot::Scratch(0)), Part::Whole, scan.sweep)?;
        let cost = kernel_time(device, transfer_time(2.0 * bytes));
        return Ok(Implementation { steps: vec![step], scratch: vec![number(value)], cost });
    }
    // Whole rounds, which keep quads whole too.
    launch.chunk = launch.n.quotient_up(pieces * span) * span;
    launch.pieces = pieces;
    let sequences = launch.lines.clone() * launch.inner.clone();
    let totals = Launch {
        walk: if pieces % 4 == 0 { Walk::Rows } else { Walk::Elements },
        n: number(pieces),
        lines: sequences.clone(),
        inner: number(1),
        strides: [number(0), number(1), number(0), number(1)],
        levels: vec![Level { extent: sequences.clone(), strides: [number(pieces), number(pieces)] }],
        early: false,
        along: along_row(pieces),
        chunk: number(pieces),
        pieces: 1,
    };
    let (found, before, nothing) = (Slot::Scratch(0), Slot::Scratch(1), Slot::Scratch(2));
    let between = [found.clone(), before.clone(), Slot::Empty, nothing.clone()];
    let steps = vec![
        // It writes no result.
        launch.step(&kernels.scan, slots(Slot::Empty, found), Part::Totals, scan.sweep)?,
        totals.step(&kernels.parts, between, Part::Whole, Sweep { exclusive: true, reverse: false })?,
        launch.step(&kernels.scan, slots(before, nothing), Part::Rest, scan.sweep)?,
    ];
    let part = sequences * pieces * value;
    let cost = kernel_time(device, transfer_time(3.0 * bytes) + 2.0 * LAUNCH);
    Ok(Implementation { steps, scratch: vec![part.clone(), part, number(value)], cost })
}
