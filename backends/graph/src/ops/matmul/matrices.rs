//! Products of halves on matrix units.

use trefoil_dsl::device::DeviceKind;
use trefoil_kernels::matmul::matrices::{DEPTH, LARGEST_SUBGROUP, MIDDLE_DEPTH, kernels};

use super::MatMul;
use super::candidates::{contiguous_bias, ends, multiples, parts_for, summed, types};
use super::product::Product;
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, ParamValue, Request, Slot};
use crate::ops::support::{LAUNCH, instance, specialised, upper};
use crate::types::ElementType;

/// Elements of a piece, which is read at once.
const PIECE: i64 = 8;
/// What it reads of B in a microsecond where rows are few, measured.
const READ_BYTES: f64 = 1.7e6;
/// How much slower than other kernels one for matrix units is on a processor, which has none.
const WITHOUT_MATRICES: f64 = 100.0;

/// What a workgroup computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tile {
    Large,
    Middle,
    Low,
}

impl Tile {
    pub(super) const ALL: [Self; 3] = [Self::Large, Self::Middle, Self::Low];

    /// Rows and columns.
    const fn extents(self) -> [i64; 2] {
        match self {
            Self::Large => [128, 256],
            Self::Middle => [64, 128],
            Self::Low => [16, 256],
        }
    }

    /// How far a workgroup goes along K at once, in pieces.
    const fn depth(self) -> i64 {
        match self {
            Self::Large | Self::Low => DEPTH as i64,
            Self::Middle => MIDDLE_DEPTH as i64,
        }
    }

    /// Workgroups that keep a large GPU busy, and the microseconds that one of so many takes for a step along K.
    const fn busy(self) -> (i64, f64) {
        match self {
            Self::Large => (132, 0.03),
            Self::Middle => (264, 0.016),
            Self::Low => (528, 0.02),
        }
    }

    const fn kernel(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Middle => "middle",
            Self::Low => "low",
        }
    }
}

/// The kernels for matrix units.
#[derive(Debug)]
pub(super) struct Matrices {
    pub(super) op: MatMul,
    pub(super) tile: Tile,
}

impl Candidate for Matrices {
    fn name(&self) -> &'static str {
        match self.tile {
            Tile::Large => "matmul on matrix units in tiles of 128 by 256",
            Tile::Middle => "matmul on matrix units in tiles of 64 by 128",
            Tile::Low => "matmul on matrix units in tiles of 16 by 256",
        }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        types(&self.op, request)?;
        let (a_element, b_element) = (request.inputs[0].ty.element, request.inputs[1].ty.element);
        if a_element != b_element || ![ElementType::F16, ElementType::BF16].contains(&a_element) {
            return Err(Ineligible::Other(format!("elements of {a_element} and {b_element}, not both f16 or bf16")));
        }
        let largest = request.device.limits.max_subgroup;
        if largest > LARGEST_SUBGROUP {
            return Err(Ineligible::Other(format!("subgroups of up to {largest}, more than {LARGEST_SUBGROUP}")));
        }
        let product = Product::new(request)?;
        contiguous_bias(request)?;
        let Product { batch, m, n, k, a, b, a_batch, b_batch } = &product;
        if !a[1].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![0]));
        }
        let along = b[0].is(1);
        if !along && !b[1].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![1]));
        }
        let b_line = if along { &b[1] } else { &b[0] };
        multiples(request, [n, k, a_batch, b_batch, &a[0], b_line], PIECE)?;
        let [rows, columns] = self.tile.extents();
        let (busy, time) = self.tile.busy();
        let tiles = m.quotient_up(rows) * n.quotient_up(columns) * batch.clone();
        let parts = parts_for(busy, &tiles, k);
        let ([bias, result], activation) = ends(&self.op, parts);
        let pieces = |dim: &Dim| dim.quotient(&Dim::from(PIECE));
        let depth = self.tile.depth();
        let length = k.quotient_up(PIECE * depth * parts) * depth;
        let name = format!("matmul_matrices_{}_{a_element}_{along}", self.tile.kernel());
        // Every part is whole if all of K is as many whole steps as parts.
        let has_no_edge =
            m.divides_evenly(rows) && n.divides_evenly(columns) && k.divides_evenly(PIECE * depth * parts);
        let kernel = instance(&kernels(), &name)?;
        let step = KernelStep {
            kernel: specialised(&kernel, &[("WHOLE", i64::from(has_no_edge))])?,
            bindings: vec![Slot::Input(0), Slot::Input(1), bias, result],
            params: vec![
                ParamValue::Dims(vec![m.clone(), pieces(n), pieces(k)]),
                ParamValue::Dims([a_batch, &a[0], b_batch, b_line].map(pieces).to_vec()),
                ParamValue::Dim(Dim::from(parts)),
                ParamValue::Dim(length),
                ParamValue::Bool(parts > 1 || self.op.out == ElementType::F32),
                activation,
            ],
            grid: Grid::Workgroups(tiles.clone() * parts),
        };
        let rounds = (upper(&tiles) * parts as f64 / busy as f64).max(1.0);
        // Each row of tiles reads B again, which large tiles hide behind what they compute.
        let readers = if self.tile == Tile::Low { upper(&m.quotient_up(rows)) } else { 1.0 };
        let reading = upper(batch) * readers * upper(k) * upper(n) * b_element.bytes() as f64 / READ_BYTES;
        let cost = LAUNCH + reading + rounds * upper(k) / parts as f64 * time;
        let mut implementation = summed(&self.op, request, &product, parts, step, cost)?;
        if request.device.kind == DeviceKind::Cpu {
            implementation.cost *= WITHOUT_MATRICES;
        }
        Ok(implementation)
    }
}
