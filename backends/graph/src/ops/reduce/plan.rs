//! How a reduction is cut into launches.
//!
//! Axes that follow on each other in memory, all reduced or all kept, become one; what is left of the reduced axes are *groups*. The largest group is reduced first, from
//! the elements where they lie: along rows if its elements follow on each other, else down columns. Its results are in the order of the axes that are left, so
//! that each further group is reduced as `[lines, n, inner]`. Where there are few results for a device, the first group is cut in pieces, which are joined like one more
//! group behind all others.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_dsl::device::Properties;
use trefoil_kernels::reduce::shapes::{LEVELS, SIZE, Walk};

use super::super::support::{kernel_time, transfer_time, upper};
use crate::dim::Dim;
use crate::op::{Grid, Implementation, Ineligible, KernelStep, Operand, ParamValue, Slot, Step};

/// Workgroups that a large GPU holds at once: eight for each of 128 multiprocessors.
const WANTED: i64 = 1024;
/// With fewer workgroups an axis is cut in pieces: two for each multiprocessor ask for 32 KiB at once.
const FEW: i64 = 264;
/// Reads that an invocation does along a row, where there are rows enough: what is once for each invocation is little beside them.
const ROUNDS: i64 = 16;
/// What a launch more costs, in microseconds.
const LAUNCH: f64 = 3.0;

/// The kernels of a reduction.
pub(super) struct Kernels {
    /// Reduces elements.
    pub(super) reduce: Arc<Kernel>,
    /// Joins what that leaves.
    pub(super) join: Arc<Kernel>,
}

/// An axis, or several that are one.
#[derive(Clone, Debug)]
struct Axis {
    extent: Dim,
    /// Of elements.
    stride: Dim,
    /// If it is reduced, by what a position along it is multiplied to be a place among all that are reduced.
    place: Option<Dim>,
}

impl Axis {
    /// An axis that is kept and has one element.
    fn one() -> Self {
        Self { extent: number(1), stride: number(0), place: None }
    }
}

/// Who goes over what.
struct Split {
    /// Invocations that share a result.
    along: i64,
    /// Pieces of the axis.
    pieces: i64,
}

fn number(value: i64) -> Dim {
    Dim::from(value)
}

/// The least power of two that is not below `value`, at most `SIZE`.
fn power(value: i64) -> i64 {
    let most = SIZE as i64;
    let wanted = u64::try_from(value.clamp(1, most)).unwrap_or(1);
    i64::try_from(wanted.next_power_of_two()).unwrap_or(most)
}

/// The axes that are more than one element long, merged where they follow on each other.
fn merged(axes: impl IntoIterator<Item = Axis>, mut alike: impl FnMut(&Axis, &Axis) -> bool) -> Vec<Axis> {
    let mut result: Vec<Axis> = Vec::new();
    for axis in axes {
        if axis.extent.is(1) {
            continue;
        }
        match result.last_mut() {
            Some(last) if alike(last, &axis) && last.stride == axis.stride.clone() * axis.extent.clone() => {
                *last = Axis { extent: last.extent.clone() * axis.extent, ..axis };
            }
            _ => result.push(axis),
        }
    }
    result
}

/// Of rows of `n` elements, so many.
fn split_rows(rows: i64, n: i64) -> Split {
    let quads = n / 4;
    let mut along = power(quads / ROUNDS);
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
        extent: extent.clone(),
        stride: stride.clone(),
        place: axes.contains(&axis).then(|| {
            let after = axes.iter().filter(|other| **other > axis);
            after.map(|other| x.ty.shape[*other].clone()).product()
        }),
    });
    let mut sequence = merged(all, |a, b| a.place.is_some() == b.place.is_some());
    if !sequence.iter().any(|axis| axis.place.is_some()) {
        // Each element is by itself.
        sequence.push(Axis { place: Some(number(1)), ..Axis::one() });
    }
    let largest = (0..sequence.len())
        .filter(|at| sequence[*at].place.is_some())
        .max_by_key(|at| sequence[*at].extent.bounds().1)
        .unwrap_or(0);
    let mut plan = Plan { kernels, divisor, steps: Vec::new(), scratch: Vec::new() };
    let group = sequence.remove(largest);
    plan.first(&group, &sequence)?;
    while let Some(at) = sequence.iter().rposition(|axis| axis.place.is_some()) {
        let group = sequence.remove(at);
        let inner: Dim = sequence[at..].iter().map(|axis| axis.extent.clone()).product();
        let lines: Dim = sequence[..at].iter().map(|axis| axis.extent.clone()).product();
        plan.join(&lines, &group, &inner, !sequence.iter().any(|axis| axis.place.is_some()));
    }
    let launches = plan.steps.len() as f64;
    let cost = transfer_time(upper(&x.ty.bytes())) + LAUNCH * (launches - 1.0);
    Ok(Implementation { steps: plan.steps, scratch: plan.scratch, cost: kernel_time(device, cost) })
}

/// By what positions along a reduced axis are multiplied.
fn factor(group: &Axis) -> Dim {
    group.place.clone().unwrap_or_else(|| number(0))
}

/// Steps, and what they leave for each other.
struct Plan<'a> {
    kernels: &'a Kernels,
    divisor: &'a Dim,
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
        let results: Dim = rest.iter().map(|axis| axis.extent.clone()).product();
        let n = &group.extent;
        // Results lie one after the other, so that axes are one as soon as their elements are.
        let mut lines = merged(rest.iter().cloned(), |_, _| true);
        let mut inner = Axis::one();
        let mut inner_result = number(0);
        let mut walk = Walk::Rows;
        let mut result_strides = Vec::with_capacity(lines.len());
        let mut stride = number(1);
        for axis in lines.iter().rev() {
            result_strides.insert(0, stride.clone());
            stride = stride * axis.extent.clone();
        }
        if !group.stride.is(1) && !n.is(1) || n.is(1) && !lines.is_empty() {
            walk = Walk::Columns;
            let beside = lines.iter().position(|axis| axis.stride.is(1)).or(lines.len().checked_sub(1));
            if let Some(at) = beside {
                inner = lines.remove(at);
                inner_result = result_strides.remove(at);
            }
            let strides = lines.iter().map(|axis| &axis.stride).chain([&group.stride]);
            if inner.stride.is(1) && inner.extent.divides_evenly(4) && strides.into_iter().all(|s| s.divides_evenly(4))
            {
                walk = Walk::Quads;
            }
        }
        if lines.len() > LEVELS {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let count: Dim = lines.iter().map(|axis| axis.extent.clone()).product();
        let units = if walk == Walk::Quads { results.quotient(&number(4)) } else { results.clone() };
        let split = match walk {
            Walk::Rows => split_rows(units.bounds().1, n.bounds().1),
            Walk::Quads | Walk::Columns => split_columns(units.bounds().1, n.bounds().1),
        };
        let chunk = if split.pieces == 1 { n.clone() } else { n.quotient_up(4 * split.pieces) * 4i64 };
        let last = !rest.iter().any(|axis| axis.place.is_some());
        let finish = split.pieces == 1 && last;
        let parts = self.leave(&(results.clone() * split.pieces), finish);
        let level = |of: &dyn Fn(usize) -> Dim| {
            let mut values: Vec<_> = (0..lines.len()).rev().map(of).collect();
            values.resize(LEVELS, number(1));
            ParamValue::Dims(values)
        };
        let params = vec![
            ParamValue::Enum(walk as u32),
            ParamValue::Dims(vec![count, inner.extent.clone(), n.clone(), self.divisor.clone()]),
            ParamValue::Dims(vec![inner.stride.clone(), group.stride.clone(), inner_result]),
            ParamValue::Dim(number(i64::try_from(lines.len().max(1)).unwrap_or(1))),
            level(&|at| lines[at].extent.clone()),
            level(&|at| lines[at].stride.clone()),
            level(&|at| result_strides[at].clone()),
            ParamValue::Dims(vec![number(split.along), chunk, number(split.pieces)]),
            ParamValue::Dim(factor(group)),
            ParamValue::Bool(finish),
        ];
        let across = SIZE as i64 / split.along;
        self.steps.push(Step::Kernel(KernelStep {
            kernel: self.kernels.reduce.clone(),
            bindings: vec![Slot::Input(0), Slot::Output(0), parts],
            params,
            grid: Grid::Workgroups(units.quotient_up(across) * split.pieces),
        }));
        if split.pieces > 1 {
            // Their elements know their places already.
            let cut = Axis { extent: number(split.pieces), place: Some(number(0)), ..Axis::one() };
            self.join(&results, &cut, &number(1), last);
        }
        Ok(())
    }

    /// Joins the values that the step before has left, `[lines, n, inner]`.
    fn join(&mut self, lines: &Dim, group: &Axis, inner: &Dim, finish: bool) {
        let n = &group.extent;
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
