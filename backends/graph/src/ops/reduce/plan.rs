//! How a reduction is cut into launches.
//!
//! Axes that follow on each other in memory, all reduced or all kept, become one; what is left of the reduced axes are *groups*. The largest group is reduced first, from
//! the elements where they lie: along rows if its elements follow on each other, else down columns. Its results are in the order of the axes that are left, so
//! that each further group is reduced as `[lines, n, inner]`. Where there are few results for a device, the first group is cut in pieces, which are joined like one more
//! group behind all others.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::{DeviceKind, Properties};
use trefoil_kernels::reduce::shapes::{LEVELS, SIZE, Walk};

use super::super::levels::{Level, innermost_first, merged};
use super::super::support::{LAUNCH, kernel_time, number, power_of_two, specialised, transfer_time, upper};
use crate::dim::Dim;
use crate::op::{Grid, Implementation, Ineligible, KernelStep, Operand, ParamValue, Slot, Step};

/// Workgroups that a large GPU holds at once: eight for each of 128 multiprocessors.
const WANTED: i64 = 1024;
/// With fewer workgroups an axis is cut in pieces: two for each multiprocessor ask for 32 KiB at once.
const FEW: i64 = 264;
/// The constant of a kernel that may push four elements at once.
const FOURS: &str = "FOURS";
/// Reads that an invocation does along a row, where there are rows enough: what is once for each invocation is little beside them, and Vulkan's compilers make the more of it.
fn rounds(device: DeviceKind) -> i64 {
    if device == DeviceKind::Vulkan { 32 } else { 16 }
}

/// The kernels of a reduction.
pub(super) struct Kernels {
    /// Reduces elements.
    pub(super) reduce: Arc<Kernel>,
    /// Joins what that leaves.
    pub(super) join: Arc<Kernel>,
}

/// A level of elements.
#[derive(Clone, Debug)]
struct Axis {
    level: Level<1>,
    /// If it is reduced, by what a position along it is multiplied to be a place among all that are reduced.
    place: Option<Dim>,
}

impl Axis {
    /// An axis that is kept and has one element.
    fn one() -> Self {
        Self { level: Level::one(), place: None }
    }
}

/// Who goes over what.
struct Split {
    /// Invocations that share a result.
    along: i64,
    /// Pieces of the axis.
    pieces: i64,
}

/// The least power of two that is not below `value`, at most `SIZE`.
fn power(value: i64) -> i64 {
    power_of_two(value, SIZE as i64)
}

/// The axes that are more than one element long, made one where they follow on each other and are `alike`.
fn joined(axes: impl IntoIterator<Item = Axis>, alike: impl Fn(&Axis, &Axis) -> bool) -> Vec<Axis> {
    merged(axes.into_iter().filter(|axis| !axis.level.extent.is(1)), |outer, inner| {
        let level = if alike(outer, inner) { outer.level.joined(&inner.level, [0]) } else { None };
        Some(Axis { level: level?, place: inner.place.clone() })
    })
}

/// Of rows of `n` elements, so many.
fn split_rows(rows: i64, n: i64, device: DeviceKind) -> Split {
    let quads = n / 4;
    let mut along = power(quads / rounds(device));
    let groups = |along: i64| (rows.saturating_mul(along) / SIZE as i64).max(1);
    while groups(along) < WANTED && along < SIZE as i64 && along * 4 < quads {
        along *= 2;
    }
    Split { along, pieces: pieces(groups(along), n / (along * 32)) }
}

/// Of columns of `n` elements, so many, or so many times four that lie side by side.
fn split_columns(columns: i64, n: i64) -> Split {
    let groups = |along: i64| (columns.saturating_mul(along) / SIZE as i64).max(1);
    let mut along = power(n / 4).min(8);
    // Narrower bundles of columns rather than pieces, down to a line of the cache; no invocation beside the last column.
    if groups(along) < WANTED / 2 && groups(32) >= FEW && n >= 256 {
        while groups(along) < WANTED / 2 && along < 32 {
            along *= 2;
        }
    }
    while SIZE as i64 / along > power(columns) && n >= along * 8 && along < SIZE as i64 {
        along *= 2;
    }
    Split { along, pieces: pieces(groups(along), n / (along * 16)) }
}

/// In how many pieces an axis is cut that has at most `most`.
fn pieces(groups: i64, most: i64) -> i64 {
    if groups >= FEW { 1 } else { (WANTED / groups).min(most).max(1) }
}

/// The reduction of `axes` of `x`.
pub(super) fn implement(
    x: &Operand,
    axes: &[usize],
    kernels: &Kernels,
    divisor: &Dim,
    device: &Properties,
) -> Result<Implementation, Ineligible> {
    let all = x.ty.shape.iter().zip(&x.layout.strides).enumerate().map(|(axis, (extent, stride))| Axis {
        level: Level { extent: extent.clone(), strides: [stride.clone()] },
        place: axes.contains(&axis).then(|| {
            let after = axes.iter().filter(|other| **other > axis);
            after.map(|other| x.ty.shape[*other].clone()).product()
        }),
    });
    let mut sequence = joined(all, |outer, inner| outer.place.is_some() == inner.place.is_some());
    if !sequence.iter().any(|axis| axis.place.is_some()) {
        // Each element is by itself.
        sequence.push(Axis { place: Some(number(1)), ..Axis::one() });
    }
    let largest = (0..sequence.len())
        .filter(|at| sequence[*at].place.is_some())
        .max_by_key(|at| sequence[*at].level.extent.bounds().1)
        .unwrap_or(0);
    let mut plan = Plan { kernels, divisor, device: device.kind, steps: Vec::new(), scratch: Vec::new() };
    let group = sequence.remove(largest);
    plan.first(&group, &sequence)?;
    while let Some(at) = sequence.iter().rposition(|axis| axis.place.is_some()) {
        let group = sequence.remove(at);
        let inner: Dim = sequence[at..].iter().map(|axis| axis.level.extent.clone()).product();
        let lines: Dim = sequence[..at].iter().map(|axis| axis.level.extent.clone()).product();
        plan.join(&lines, &group, &inner, !sequence.iter().any(|axis| axis.place.is_some()));
    }
    let launches = plan.steps.len() as f64;
    let cost = transfer_time(upper(&x.ty.bytes())) + LAUNCH * (launches - 1.0);
    let cost = kernel_time(device, cost);
    Ok(Implementation { steps: plan.steps, scratch: plan.scratch, cost })
}

/// By what positions along a reduced axis are multiplied.
fn factor(group: &Axis) -> Dim {
    group.place.clone().unwrap_or_else(|| number(0))
}

/// Steps, and what they leave for each other.
struct Plan<'a> {
    kernels: &'a Kernels,
    divisor: &'a Dim,
    device: DeviceKind,
    steps: Vec<Step>,
    scratch: Vec<Dim>,
}

impl Plan<'_> {
    /// Memory for so many values; of one where results are complete, since a binding holds something.
    fn leave(&mut self, values: &Dim, finish: bool) -> Slot {
        let size = self.kernels.reduce.bindings.get(2).map_or(4, |binding| i64::from(binding.element.size));
        self.scratch.push(if finish { number(size) } else { values.clone() * size });
        Slot::Scratch(self.scratch.len() - 1)
    }

    fn first(&mut self, group: &Axis, rest: &[Axis]) -> Result<(), Ineligible> {
        let results: Dim = rest.iter().map(|axis| axis.level.extent.clone()).product();
        let n = &group.level.extent;
        // Results lie one after the other, so that axes are one as soon as their elements are.
        let mut lines = joined(rest.iter().cloned(), |_, _| true);
        let mut inner = Axis::one();
        let mut inner_result = number(0);
        let mut walk = Walk::Rows;
        let mut result_strides = Vec::with_capacity(lines.len());
        let mut stride = number(1);
        for axis in lines.iter().rev() {
            result_strides.insert(0, stride.clone());
            stride = stride * axis.level.extent.clone();
        }
        if !group.level.strides[0].is(1) && !n.is(1) || n.is(1) && !lines.is_empty() {
            walk = Walk::Columns;
            let beside = lines.iter().position(|axis| axis.level.strides[0].is(1)).or(lines.len().checked_sub(1));
            if let Some(at) = beside {
                inner = lines.remove(at);
                inner_result = result_strides.remove(at);
            }
            let strides = lines.iter().map(|axis| &axis.level.strides[0]).chain([&group.level.strides[0]]);
            if inner.level.strides[0].is(1)
                && inner.level.extent.divides_evenly(4)
                && strides.into_iter().all(|s| s.divides_evenly(4))
                && specialised(&self.kernels.reduce, &[("WALK", Walk::Quads as i64)]).is_ok()
            {
                walk = Walk::Quads;
            }
        }
        if lines.len() > LEVELS {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let count: Dim = lines.iter().map(|axis| axis.level.extent.clone()).product();
        let units = if walk == Walk::Quads { results.quotient(&number(4)) } else { results.clone() };
        let split = match walk {
            Walk::Rows => split_rows(units.bounds().1, n.bounds().1, self.device),
            Walk::Quads | Walk::Columns => split_columns(units.bounds().1, n.bounds().1),
        };
        let chunk = if split.pieces == 1 { n.clone() } else { n.quotient_up(4 * split.pieces) * 4i64 };
        let last = !rest.iter().any(|axis| axis.place.is_some());
        let finish = split.pieces == 1 && last;
        let parts = self.leave(&(results.clone() * split.pieces), finish);
        let params = vec![
            ParamValue::Dims(vec![count, inner.level.extent.clone(), n.clone(), self.divisor.clone()]),
            ParamValue::Dims(vec![inner.level.strides[0].clone(), group.level.strides[0].clone(), inner_result]),
            ParamValue::Dim(number(i64::try_from(lines.len().max(1)).unwrap_or(1))),
            innermost_first(&lines, LEVELS, |line| line.level.extent.clone()),
            innermost_first(&lines, LEVELS, |line| line.level.strides[0].clone()),
            innermost_first(&result_strides, LEVELS, Dim::clone),
            ParamValue::Dims(vec![number(split.along), chunk, number(split.pieces)]),
            ParamValue::Dim(factor(group)),
            ParamValue::Bool(finish),
        ];
        let across = SIZE as i64 / split.along;
        let mut constants = vec![("WALK", walk as i64)];
        // Four floats at once are held against each other as floats, for which other devices may take the smallest for 0.
        if self.device == DeviceKind::Cuda
            && self.kernels.reduce.constants.iter().any(|constant| constant.name == FOURS)
        {
            constants.push((FOURS, 1));
        }
        self.steps.push(Step::Kernel(KernelStep {
            kernel: specialised(&self.kernels.reduce, &constants)?,
            bindings: vec![Slot::Input(0), Slot::Output(0), parts],
            params,
            grid: Grid::Workgroups(units.quotient_up(across) * split.pieces),
        }));
        if split.pieces > 1 {
            // Their elements know their places already.
            let cut = Axis { level: Level { extent: number(split.pieces), ..Level::one() }, place: Some(number(0)) };
            self.join(&results, &cut, &number(1), last);
        }
        Ok(())
    }

    /// Joins the values that the step before has left, `[lines, n, inner]`.
    fn join(&mut self, lines: &Dim, group: &Axis, inner: &Dim, finish: bool) {
        let n = &group.level.extent;
        let left = Slot::Scratch(self.scratch.len() - 1);
        let results = lines.clone() * inner.clone();
        let next = self.leave(&results, finish);
        let along = power(n.bounds().1 / 4).min(if inner.is(1) { SIZE as i64 } else { 8 });
        self.steps.push(Step::Kernel(KernelStep {
            kernel: self.kernels.join.clone(),
            bindings: vec![left, Slot::Output(0), next],
            params: vec![
                ParamValue::Dims(vec![lines.clone(), inner.clone(), n.clone(), self.divisor.clone()]),
                ParamValue::Dim(number(along)),
                ParamValue::Dim(factor(group)),
                ParamValue::Bool(finish),
            ],
            grid: Grid::Workgroups(results.quotient_up(SIZE as i64 / along)),
        }));
    }
}
