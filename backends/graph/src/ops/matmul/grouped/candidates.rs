//! The kernels of products of rows in groups.

use std::sync::Arc;

use trefoil_dsl::artefact::Kernel;
use trefoil_kernels::matmul::grouped::EDGE;
use trefoil_kernels::matmul::kernels;

use super::super::candidates::multiples;
use super::super::types::{Types, usual};
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, ParamValue, Request, Slot, Step};
use crate::ops::sort::places_in_order;
use crate::ops::support::{
    LAUNCH, instance, kernel_time, not_on_processors, number, one_kernel, steps_within, transfer_time, upper,
};
use crate::types::ElementType;

/// Columns of a workgroup that goes row by row: few where neighbours share a column, which then read what lies together.
const COLUMNS: [i64; 2] = [32, 8];
/// Microseconds that a busy GPU takes for one tile and one step along K, as for other tiles of that edge.
const TILE_TIME: f64 = 0.025;
/// Workgroups that keep a large GPU busy.
const BUSY_WORKGROUPS: f64 = 128.0;

/// Every kernel's candidate.
pub(super) fn all() -> Vec<Box<dyn Candidate>> {
    vec![Box::new(Tiles), Box::new(Rows)]
}

/// The kernel of a family for the types of operands.
fn kernel_of(request: &Request<'_>, family: &str) -> Result<Arc<Kernel>, Ineligible> {
    let [x, weights, _] = request.inputs else { return Err(Ineligible::Other("three inputs".to_owned())) };
    let out = usual(x.ty.element, weights.ty.element);
    let types = Types::new(&x.ty, &weights.ty, out).map_err(|error| Ineligible::Other(error.to_string()))?;
    instance(&kernels(), &types.kernel(family))
}

/// Demands that the ids are contiguous.
pub(super) fn contiguous_ids(request: &Request<'_>) -> Result<(), Ineligible> {
    let ids = &request.inputs[2];
    if ids.layout.has_contiguous_strides(&ids.ty.shape) { Ok(()) } else { Err(Ineligible::NeedsContiguous(vec![2])) }
}

/// Each row by itself.
#[derive(Debug)]
struct Rows;

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "grouped matmul row by row"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let kernel = kernel_of(request, "matmul_grouped_rows")?;
        contiguous_ids(request)?;
        let (x, weights) = (&request.inputs[0], &request.inputs[1]);
        let [count, k, n] = [0, 1, 2].map(|axis| weights.ty.shape[axis].clone());
        let rows = x.ty.shape[0].clone();
        let along = weights.layout.strides[1].is(1) && !weights.layout.strides[2].is(1);
        let columns = COLUMNS[usize::from(along)];
        let bytes = upper(&rows) * upper(&k) * upper(&n) * f64::from(weights.ty.element.bytes() as u32);
        Ok(one_kernel(
            kernel,
            vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), Slot::Output(0)],
            vec![
                ParamValue::Dims(vec![n.clone(), k, count]),
                ParamValue::Dims(x.layout.strides.clone()),
                ParamValue::Dims(weights.layout.strides.clone()),
                ParamValue::Dim(number(columns)),
                ParamValue::Bool(along),
            ],
            Grid::Workgroups(rows * n.quotient_up(columns)),
            kernel_time(request.device, transfer_time(bytes)),
        ))
    }
}

/// Rows sorted by their ids, in tiles.
#[derive(Debug)]
struct Tiles;

impl Candidate for Tiles {
    fn name(&self) -> &'static str {
        "grouped matmul in tiles of 64, rows sorted by id"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        not_on_processors(request)?;
        let kernel = kernel_of(request, "matmul_grouped_tiles")?;
        contiguous_ids(request)?;
        let (x, weights) = (&request.inputs[0], &request.inputs[1]);
        let [count, k, n] = [0, 1, 2].map(|axis| weights.ty.shape[axis].clone());
        let rows = x.ty.shape[0].clone();
        if !x.layout.strides[1].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let [matrix, row, column] = [0, 1, 2].map(|axis| weights.layout.strides[axis].clone());
        let along = row.is(1);
        if !along && !column.is(1) {
            return Err(Ineligible::NeedsContiguous(vec![1]));
        }
        let line = if along { column } else { row };
        multiples(request, [&n, &k, &x.layout.strides[0], &matrix, &line], 4)?;
        let kernel = kernel.specialise(&[("ALONG", i64::from(along))]);
        let kernel = kernel.map_err(|error| Ineligible::Other(error.to_string()))?;

        let sort = places_in_order(ElementType::U32, rows.clone(), request.device)?;
        let sorting = sort.cost;
        // A binding that is written holds something.
        let mut scratch = vec![rows.clone() * 4i64 + 16i64];
        let order = Slot::Scratch(0);
        let mut steps = steps_within(sort, &Slot::Input(2), &order, &mut scratch);
        let edge = EDGE as i64;
        let tiles = rows.quotient_up(edge) * n.quotient_up(edge);
        steps.push(Step::Kernel(KernelStep {
            kernel: Arc::new(kernel),
            bindings: vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), order, Slot::Output(0)],
            params: vec![
                ParamValue::Dims(vec![rows, n.clone(), k.clone(), count.clone()]),
                ParamValue::Dims(vec![x.layout.strides[0].clone(), matrix, line]),
            ],
            grid: Grid::Workgroups(tiles.clone()),
        }));
        // A tile goes along K once for each group that it meets; groups beyond the first of all tiles are passes more.
        let passes =
            upper(&tiles) + upper(&count.minimum(&request.inputs[0].ty.shape[0])) * upper(&n.quotient_up(edge));
        let time = (passes / BUSY_WORKGROUPS).max(1.0) * upper(&k) * TILE_TIME;
        let cost = kernel_time(request.device, LAUNCH + time) + sorting;
        Ok(Implementation { steps, scratch, cost })
    }
}
