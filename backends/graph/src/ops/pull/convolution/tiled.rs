//! As a product of tiles: the weights are put in order first, then one launch reads x where it lies.

use trefoil_kernels::activation::Activation;
use trefoil_kernels::convolution::tiled::{COLUMNS, DEPTH, convolution_sum_parts, convolution_tiled};
use trefoil_kernels::convolution::weights::convolution_weights;

use super::Convolution;
use super::shape::Shape;
use crate::dim::Dim;
use crate::op::{Candidate, Grid, Implementation, Ineligible, KernelStep, ParamValue, Request, Slot, Step};
use crate::ops::support::{LAUNCH, instance, kernel_time, not_on_processors, number, specialised, upper};
use crate::types::ElementType;

/// The steps are divided into so many parts at most.
const MOST_PARTS: i64 = 8;
/// A part has so many steps at least, lest adding up take longer than what it saves.
const LEAST_STEPS: i64 = 16;

/// Tiles of so many outputs.
#[derive(Debug)]
pub(super) struct Tiled<'a> {
    pub(super) op: &'a Convolution,
    pub(super) rows: i64,
}

impl Tiled<'_> {
    /// How many workgroups a large GPU works on at once, two on each multiprocessor or three, and microseconds that one of them takes for a step of a tile.
    const fn busy(&self) -> (f64, f64) {
        if self.rows == 128 { (264.0, 2.0) } else { (396.0, 1.65) }
    }

    /// The time of so many parts, in microseconds: of the rounds that workgroups take, and of writing and reading `bytes` of sums for each part.
    fn cost(&self, tiles: &Dim, steps: &Dim, bytes: f64, parts: i64) -> f64 {
        let (workgroups, step) = self.busy();
        let rounds = (upper(tiles) * parts as f64 / workgroups).ceil().max(1.0);
        let adding = if parts == 1 { 0.0 } else { LAUNCH + 2.0 * bytes * parts as f64 / BYTES_PER_MICROSECOND };
        rounds * (upper(steps) / parts as f64).ceil() * step + adding
    }
}

/// Bytes that a large GPU moves in a microsecond.
const BYTES_PER_MICROSECOND: f64 = 3e6;

impl Candidate for Tiled<'_> {
    fn name(&self) -> &'static str {
        if self.rows == 128 { "convolution in tiles of 128 by 128" } else { "convolution in tiles of 64 by 128" }
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        not_on_processors(request)?;
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
        let y = &request.outputs[0];
        let sum_bytes = upper(&y.elements()) * 4.0;
        let most = (steps.bounds().1 / LEAST_STEPS).clamp(1, MOST_PARTS);
        let cost_of = |parts: &i64| self.cost(&tiles, &steps, sum_bytes, *parts);
        let parts = (1..=most).min_by(|a, b| cost_of(a).total_cmp(&cost_of(b))).unwrap_or(1);
        let length = steps.quotient_up(parts);
        let plain = self.op.activation == Activation::Identity;
        let kernel = instance(convolution_tiled::KERNELS, &format!("convolution_tiled_{element}_{}", self.rows))?;
        let kernel = specialised(&kernel, &[("PLAIN", i64::from(plain))])?;
        let bias = if self.op.bias { Slot::Input(2) } else { Slot::Empty };
        let counts = [&shape.outputs, &shape.images, &shape.channels, &shape.groups].map(Dim::clone);
        let mut x_strides = shape.x_strides.to_vec();
        x_strides.extend(shape.axes.iter().map(|axis| axis.x_stride.clone()));
        let multiply = KernelStep {
            kernel,
            bindings: vec![Slot::Input(0), Slot::Scratch(0), bias.clone(), Slot::Output(0), Slot::Scratch(1)],
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
                ParamValue::Dim(number(parts)),
                ParamValue::Dim(length),
                ParamValue::Enum(self.op.activation as u32),
            ],
            grid: Grid::Workgroups(tiles.clone() * parts),
        };
        // A binding that is written holds something.
        let mut scratch = vec![packed.maximum(&number(1)) * number(element.bytes() as i64)];
        let mut launches = vec![Step::Kernel(order), Step::Kernel(multiply)];
        if parts > 1 {
            launches.push(Step::Kernel(KernelStep {
                kernel: instance(convolution_sum_parts::KERNELS, &format!("convolution_sum_parts_{element}"))?,
                bindings: vec![Slot::Scratch(1), bias, Slot::Output(0)],
                params: vec![
                    ParamValue::Dim(number(parts)),
                    ParamValue::Dim(shape.groups.clone() * shape.outputs.clone()),
                    ParamValue::Dim(shape.positions()),
                    ParamValue::Enum(self.op.activation as u32),
                ],
                grid: Grid::Invocations(y.elements()),
            }));
            scratch.push(y.elements() * (parts * 4));
        } else {
            scratch.push(number(4));
        }
        let cost = 2.0 * LAUNCH + cost_of(&parts);
        Ok(Implementation { steps: launches, scratch, cost: kernel_time(request.device, cost) })
    }
}
