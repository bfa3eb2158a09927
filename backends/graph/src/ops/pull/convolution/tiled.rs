//! As a product of tiles: the weights are put in order first, then one launch reads x where it lies.

use trefoil_kernels::convolution::tiled::{COLUMNS, DEPTH, convolution_tiled};
use trefoil_kernels::convolution::weights::convolution_weights;

use super::Convolution;
use super::shape::Shape;
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, ParamValue, Request, Slot, Step};
use crate::ops::support::{LAUNCH, instance, kernel_time, number, upper};
use crate::types::ElementType;

/// Workgroups that a large GPU works on at once.
const BUSY: f64 = 132.0;

/// Tiles of so many outputs.
#[derive(Debug)]
pub(super) struct Tiled<'a> {
    pub(super) op: &'a Convolution,
    pub(super) rows: i64,
}

impl Tiled<'_> {
    /// Microseconds that a multiprocessor of a large GPU takes for a step of a tile.
    fn time(&self) -> f64 {
        if self.rows == 128 { 0.07 } else { 0.04 }
    }
}

impl Candidate for Tiled<'_> {
    fn name(&self) -> &'static str {
        if self.rows == 128 { "convolution in tiles of 128 by 128" } else { "convolution in tiles of 64 by 128" }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let element = request.inputs[0].ty.element;
        if !matches!(element, ElementType::F32 | ElementType::F16 | ElementType::BF16) {
            return Err(Ineligible::Other(format!("elements of {element}, of which it takes f32, f16 and bf16")));
        }
        let shape = Shape::new(self.op, request)?;
        let filled = shape.outputs.quotient_up(4) * 4i64;
        let packed = shape.groups.clone() * shape.elements() * shape.channels.clone() * filled.clone();
        let of_kernel = shape.elements();
        let (per_output, per_channel) = if self.op.transposed {
            (of_kernel.clone(), shape.outputs.clone() * of_kernel.clone())
        } else {
            (shape.channels.clone() * of_kernel.clone(), of_kernel.clone())
        };
        let per_group = shape.outputs.clone() * shape.channels.clone() * of_kernel.clone();
        let width = if element.bytes() == 2 { "u16" } else { "u32" };
        let order = KernelStep {
            kernel: instance(convolution_weights::KERNELS, &format!("convolution_weights_{width}"))?,
            bindings: vec![Slot::Input(1), Slot::Scratch(0)],
            params: vec![
                ParamValue::Dims(vec![shape.outputs.clone(), filled, shape.channels.clone(), of_kernel]),
                ParamValue::Dims(vec![per_group, per_output, per_channel]),
            ],
            grid: Grid::Invocations(packed.clone()),
        };
        let rows = shape.outputs.quotient_up(self.rows);
        let columns = (shape.images.clone() * shape.positions()).quotient_up(COLUMNS as i64);
        let tiles = rows * columns * shape.groups.clone();
        let steps = shape.elements() * shape.channels.quotient_up(DEPTH as i64);
        let counts = [&shape.outputs, &shape.images, &shape.channels, &shape.groups].map(Dim::clone);
        let mut x_strides = shape.x_strides.to_vec();
        x_strides.extend(shape.axes.iter().map(|axis| axis.x_stride.clone()));
        let multiply = KernelStep {
            kernel: instance(convolution_tiled::KERNELS, &format!("convolution_tiled_{element}_{}", self.rows))?,
            bindings: vec![
                Slot::Input(0),
                Slot::Scratch(0),
                if self.op.bias { Slot::Input(2) } else { Slot::Empty },
                Slot::Output(0),
            ],
            params: vec![
                ParamValue::Dims(counts.to_vec()),
                shape.each(|axis| &axis.positions),
                shape.each(|axis| &axis.extent),
                shape.each(|axis| &axis.size),
                shape.each(|axis| &axis.stride),
                shape.each(|axis| &axis.dilation),
                shape.each(|axis| &axis.front),
                ParamValue::Dims(x_strides),
                ParamValue::Bool(self.op.transposed),
            ],
            grid: Grid::Workgroups(tiles.clone()),
        };
        let rounds = (upper(&tiles) / BUSY).max(1.0);
        let cost = 2.0 * LAUNCH + rounds * upper(&steps) * self.time();
        // A binding that is written holds something.
        let bytes = packed.maximum(&number(1)) * number(element.bytes() as i64);
        Ok(Implementation {
            steps: vec![Step::Kernel(order), Step::Kernel(multiply)],
            scratch: vec![bytes],
            cost: kernel_time(request.device, cost),
        })
    }
}
