//! On the processor itself.

use std::sync::Arc;

use half::{bf16, f16};
use trefoil_host::number::Number;
use trefoil_host::resize::{Axis as HostAxis, BLENDED, POSITIONS, linear};

use super::Resize;
use crate::dim::Dim;
use crate::op::{CallStep, Callee, Candidate, Implementation, Ineligible, Request, Slot, Step};
use crate::ops::host::{contiguous, whole};
use crate::ops::support::{FLOPS_PER_MICROSECOND, transfer_time, upper};
use crate::types::{ElementType, TensorType};

/// Whole rows of the result, linearly between neighbours.
#[derive(Debug)]
pub(super) struct Rows<'a>(pub(super) &'a Resize);

/// A resize from the bytes of x to those of the result, by numbers.
type Function = fn(&[&[u8]], &mut [u8], &[i64]) -> Result<(), String>;

/// Numbers of an axis, as they are handed over.
const NUMBERS: usize = 5;

impl Rows<'_> {
    /// In microseconds: x and the result are moved, rows of x are blended, and elements made of what they give.
    fn cost(&self, x: &TensorType, y: &TensorType) -> f64 {
        let elements = upper(&y.elements());
        let moving = transfer_time(upper(&x.bytes()) + upper(&y.bytes()));
        let Some(others) = self.0.axes.len().checked_sub(1) else { return moving };
        let [from, to] = [x, y].map(|ty| ty.shape.last().map_or(1.0_f64, upper).max(1.0));
        // A row for each neighbour, of which there are two along each axis before the last.
        let rows = self.0.axes[..others].iter().fold(elements / to, |rows, _| 2.0 * rows);
        let blended = rows * from.min(BLENDED as f64 * to);
        moving + (2.0 * blended + 3.0 * elements) / FLOPS_PER_MICROSECOND
    }
}

impl Candidate for Rows<'_> {
    fn name(&self) -> &'static str {
        "linear resize on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (axes, x, y) = (&self.0.axes, &request.inputs[0].ty, &request.outputs[0]);
        let function: Function = match x.element {
            ElementType::F32 => run::<f32>,
            ElementType::F16 => run::<f16>,
            ElementType::BF16 => run::<bf16>,
            element => return Err(Ineligible::Other(format!("elements of {element}, not of f32, f16 or bf16"))),
        };
        let lead = x.rank() - axes.len();
        if let Some(extent) = y.shape[lead..].iter().find(|extent| extent.bounds().1 > POSITIONS as i64) {
            let reason = format!("an axis of {extent} positions, of which it has tables for up to {POSITIONS}");
            return Err(Ineligible::Other(reason));
        }
        contiguous(request.inputs)?;
        let images: Dim = x.shape[..lead].iter().cloned().product();
        let mut numbers = vec![images];
        for (axis, (from, to)) in axes.iter().zip(x.shape[lead..].iter().zip(&y.shape[lead..])) {
            let [step, start, over] = axis.fraction(from);
            numbers.extend([to.clone(), from.clone(), step, start, over]);
        }
        let of_bytes = move |reads: &[&[u8]], writes: &mut [&mut [u8]], numbers: &[i64]| {
            let [out] = writes else { return Err(format!("`resize` writes one result, {} given", writes.len())) };
            function(reads, out, numbers)
        };
        let step = CallStep {
            name: "resize",
            callee: Callee::Host(Arc::new(of_bytes)),
            reads: vec![Slot::Input(0)],
            writes: vec![Slot::Output(0)],
            params: numbers,
        };
        Ok(Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost: self.cost(x, y) })
    }
}

/// A resize of elements of a type, from bytes to bytes.
fn run<T: Number + bytemuck::Pod>(reads: &[&[u8]], out: &mut [u8], numbers: &[i64]) -> Result<(), String> {
    let given = || format!("`resize`: {} operands and {} numbers given", reads.len(), numbers.len());
    let (&[x], Some((images, axes))) = (reads, numbers.split_first()) else { return Err(given()) };
    let (axes, []) = axes.as_chunks::<NUMBERS>() else { return Err(given()) };
    let axes: Vec<HostAxis> = axes.iter().map(axis).collect::<Result<_, _>>()?;
    let misaligned = |error| format!("an operand of `resize`: {error}");
    let x: &[T] = bytemuck::try_cast_slice(&x[..whole::<T>(x.len())]).map_err(misaligned)?;
    let bytes = whole::<T>(out.len());
    let out: &mut [T] = bytemuck::try_cast_slice_mut(&mut out[..bytes]).map_err(misaligned)?;
    linear(x, length(*images)?, &axes, out)
}

fn axis(numbers: &[i64; NUMBERS]) -> Result<HostAxis, String> {
    let [positions, extent, step, start, over] = *numbers;
    Ok(HostAxis { positions: length(positions)?, extent: length(extent)?, step, start, over })
}

fn length(size: i64) -> Result<usize, String> {
    usize::try_from(size).map_err(|_| format!("`resize`: {size} given, no size"))
}
