//! Products of few rows or few columns, which read the large operand once.

use trefoil_dsl::artefact::Feature;
use trefoil_dsl::device::{DeviceKind, Limits};
use trefoil_kernels::matmul::rows::{
    COLUMNS, COLUMNS_OF_ONE, LEAST_SUBGROUP, LINES, MOST, MOST_RESIDENT, PIECES, kernels,
};
use trefoil_kernels::team::SIZE;

use super::MatMul;
use super::candidates::{bias_of, contiguous_bias, multiples, types};
use super::product::Product;
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, ParamValue, Request, Slot};
use crate::ops::support::{
    LAUNCH, instance, is_worth_a_pipeline, kernel_time, not_on_processors, one_kernel, power_of_two, specialised, upper,
};

/// Bytes that a kernel reads at once.
const PIECE_BYTES: i64 = 16;
/// The fewest invocations that share a column along K: as many as a team has values.
const LEAST_TEAM: i64 = (MOST * COLUMNS) as i64;
/// As many share it usually, if K is so long, by the number of rows and the bytes of an element, as was measured to be fastest; where workgroups are too few, twice as many do of one row, until there are enough, and all of a workgroup of several.
fn usual_team(device: DeviceKind, rows: i64, bytes: u64) -> i64 {
    match (device, rows, bytes) {
        (DeviceKind::Cuda, 1, 4..) => 128,
        (DeviceKind::Cuda, 2.., 4..) | (DeviceKind::Vulkan | DeviceKind::Wgpu, 2.., 2) => 64,
        (DeviceKind::Cuda, 2.., _) | (_, 1, _) => 32,
        _ => 128,
    }
}
/// The fewest steps of a team that computes several rows, whose sums are put together once behind them.
const LEAST_STEPS: i64 = 4;
/// Workgroups that a multiprocessor holds of the kernel for one row and halves along K, with 40 registers an invocation.
const MOST_RESIDENT_ALONG: i64 = 6;
/// The fewest and most neighbours that read a line across K together.
const NEIGHBOURS: [i64; 2] = [2, 8];
/// Workgroups that keep a large GPU's memory busy.
const BUSY_WORKGROUPS: i64 = 264;
/// What a large GPU reads in a microsecond.
const BYTES: f64 = 3.8e6;
/// Microseconds from a read to what is computed of it.
const LATENCY: f64 = 0.8;
/// Sums of several rows that a large GPU's teams put together in a microsecond, each from the parts of all its invocations.
const SUMS: f64 = 6.0e4;

/// Few rows, or few columns, which are rows once the operands are exchanged.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) op: MatMul,
    pub(super) exchanged: bool,
}

/// How a product is launched.
struct Cut {
    /// The logarithm of how many neighbours belong together.
    bits: i64,
    workgroups: Dim,
    /// Steps along K.
    steps: f64,
}

/// With lines along K, of so many pieces, which so many invocations share usually.
fn along(columns: &Dim, batch: &Dim, rows: i64, pieces: i64, usual: i64) -> Cut {
    let own = if rows == 1 { COLUMNS_OF_ONE } else { COLUMNS } as i64;
    let reads = PIECES as i64;
    let workgroups = |team: i64| columns.quotient_up(SIZE as i64 / team * own) * batch.clone();
    let most = if rows == 1 { (pieces + reads - 1) / reads } else { pieces / (reads * LEAST_STEPS) };
    let mut team = power_of_two(most, usual).max(LEAST_TEAM);
    while team >= usual && team < SIZE as i64 && workgroups(team).bounds().1 < BUSY_WORKGROUPS {
        team = if rows == 1 { 2 * team } else { SIZE as i64 };
    }
    let steps = upper(&Dim::from(pieces).quotient_up(team * reads));
    Cut { bits: i64::from(team.ilog2()), workgroups: workgroups(team), steps }
}

/// With lines across K, of so many pieces.
fn across(pieces: &Dim, batch: &Dim, k: &Dim) -> Cut {
    let workgroups = |neighbours: i64| pieces.quotient_up(neighbours) * batch.clone();
    let [least, mut neighbours] = NEIGHBOURS;
    while neighbours > least && workgroups(neighbours).bounds().1 < BUSY_WORKGROUPS {
        neighbours /= 2;
    }
    let steps = upper(&k.quotient_up(SIZE as i64 / neighbours * LINES as i64));
    Cut { bits: i64::from(neighbours.ilog2()), workgroups: workgroups(neighbours), steps }
}

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        if self.exchanged { "matmul of few columns" } else { "matmul of few rows" }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        not_on_processors(request)?;
        let Limits { min_subgroup, .. } = request.device.limits;
        if request.device.features.has(Feature::Subgroups) && (min_subgroup as usize) < LEAST_SUBGROUP {
            return Err(Ineligible::Other(format!("subgroups of {min_subgroup}, fewer than {LEAST_SUBGROUP}")));
        }
        let types = types(&self.op, request)?;
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        // From here on the operand of few rows is the first; strides are those across K and along it.
        let [first, second] = if self.exchanged { [1, 0] } else { [0, 1] };
        let Product { batch, m, n, k, a, b, a_batch, b_batch } = product;
        let [b_along, b_across] = b;
        let mut sides = [(m, a, a_batch), (n, [b_across, b_along], b_batch)];
        if self.exchanged {
            sides.swap(0, 1);
        }
        let [(rows, [left_line, left_along], left_batch), (columns, [across_line, along_line], right_batch)] = sides;
        let [left, right] = [first, second].map(|input: usize| request.inputs[input].ty.element);
        if self.exchanged && left != right {
            return Err(Ineligible::Other(format!("elements of {right} and {left}, not alike")));
        }
        let most = rows.bounds().1;
        if most > MOST as i64 {
            return Err(Ineligible::Other(format!("{rows} of them, more than {MOST}")));
        }
        if !left_along.is(1) {
            // The small operand; its lines go along the last axis of A, and the last but one of B.
            let axis = request.inputs[first].ty.rank() - if self.exchanged { 2 } else { 1 };
            return Err(Ineligible::NeedsAlong { input: first, axis });
        }
        let is_along = along_line.is(1);
        if !is_along && !across_line.is(1) {
            return Err(Ineligible::NeedsContiguous(vec![second]));
        }
        let only = |extent: &Dim, stride: Dim| if extent.is(1) { Dim::from(0i64) } else { stride };
        let left_line = only(&rows, left_line);
        let right_line = if is_along { only(&columns, across_line) } else { along_line };
        let [left_piece, piece] = [left, right].map(|element| PIECE_BYTES / element.bytes() as i64);
        let line = if is_along { &k } else { &columns };
        multiples(request, [&k, line, &left_line, &left_batch, &right_line, &right_batch], piece)?;

        let constant = power_of_two(most, MOST as i64);
        let family = if is_along { "matmul_rows_along" } else { "matmul_rows_across" };
        // One row takes 32 registers, and all the invocations that a multiprocessor has room for, but for halves along K a few more; so many rows along K as are named here take 80 and 128. Lines across K of more rows, or of singles,
        // would have to do with too few.
        let resident = match (constant, is_along, right.bytes()) {
            (1, true, 2) => MOST_RESIDENT_ALONG,
            (1, true, _) | (1, _, 2) => MOST_RESIDENT as i64,
            (2 | 4, true, _) => 3,
            (_, true, _) => 2,
            _ => 1,
        };
        let kernel = instance(&kernels(), &types.kernel(family))?;
        let cut = if is_along {
            let usual = usual_team(request.device.kind, constant, right.bytes());
            along(&columns, &batch, constant, k.bounds().1 / piece, usual)
        } else {
            across(&columns.quotient(&Dim::from(piece)), &batch, &k)
        };
        let mut constants = vec![("ROWS", constant), ("RESIDENT", resident)];
        // One row gains nothing by it, and on CUDA several lose a tenth.
        let gains = constant > 1 && request.device.kind != DeviceKind::Cuda;
        if gains && is_worth_a_pipeline([&batch, &k, &columns]) {
            constants.push(("BITS", cut.bits));
        }
        let kernel = specialised(&kernel, &constants)?;
        let pieces = |dim: &Dim, of: i64| dim.quotient(&Dim::from(of));
        // Reading, and what computing takes where there are more rows than one.
        let computed = if is_along { 20.0e6 } else { 6.0e6 };
        let elements = upper(&batch) * upper(&k) * upper(&columns);
        let reading = elements * right.bytes() as f64 / BYTES;
        let computing = elements * (constant - 1) as f64 / computed;
        let ends = upper(&batch) * upper(&columns) * (constant - 1) as f64 / SUMS;
        let cost = kernel_time(request.device, LAUNCH + (reading + computing).max(cut.steps * LATENCY) + ends);
        let strides = vec![
            pieces(&left_batch, left_piece),
            pieces(&left_line, left_piece),
            pieces(&right_batch, piece),
            pieces(&right_line, piece),
        ];
        let params = vec![
            ParamValue::Dims(vec![rows, columns, k]),
            ParamValue::Dims(strides),
            ParamValue::Dim(Dim::from(cut.bits)),
            ParamValue::Bool(self.exchanged),
            ParamValue::Enum(self.op.activation as u32),
        ];
        let bindings = vec![Slot::Input(first), Slot::Input(second), bias_of(&self.op), Slot::Output(0)];
        Ok(one_kernel(kernel, bindings, params, Grid::Workgroups(cut.workgroups), cost))
    }
}
