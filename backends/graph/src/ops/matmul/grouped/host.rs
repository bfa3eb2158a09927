//! Products of rows in groups on the processor itself.

use std::sync::Arc;

use half::{bf16, f16};
use trefoil_host::grouped::{Grouped, multiply_grouped};
use trefoil_host::number::Number;
use trefoil_host::product::Matrices;

use super::super::host::elements;
use super::candidates::contiguous_ids;
use crate::op::{CallStep, Callee, Candidate, Implementation, Ineligible, Request, Slot, Step};
use crate::ops::host::lengths;
use crate::ops::support::{FLOPS_PER_MICROSECOND, upper};
use crate::types::ElementType;

use ElementType::{BF16, F16, F32};

/// From the bytes of operands to those of the result, by sizes.
type Function = fn(&[&[u8]], &mut [u8], &[usize]) -> Result<(), String>;

/// A product for each group.
#[derive(Debug)]
pub(super) struct ByGroup;

impl Candidate for ByGroup {
    fn name(&self) -> &'static str {
        "grouped matmul on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (x, weights) = (&request.inputs[0], &request.inputs[1]);
        let function: Function = match (x.ty.element, weights.ty.element) {
            (F32, F32) => run::<f32, f32, f32>,
            (F16, F16) => run::<f16, f16, f16>,
            (BF16, BF16) => run::<bf16, bf16, bf16>,
            (F32, F16) => run::<f32, f16, f32>,
            (F32, BF16) => run::<f32, bf16, f32>,
            (a, b) => return Err(Ineligible::Other(format!("elements of {a} and {b}, not of up to 32 bits"))),
        };
        contiguous_ids(request)?;
        let [count, k, n] = [0, 1, 2].map(|axis| weights.ty.shape[axis].clone());
        let cost = 2.0 + 2.0 * upper(&request.outputs[0].elements()) * upper(&k) / FLOPS_PER_MICROSECOND;
        let mut sizes = vec![x.ty.shape[0].clone(), n, k, count];
        sizes.extend(x.layout.strides.iter().chain(&weights.layout.strides).cloned());
        let of_bytes = move |reads: &[&[u8]], writes: &mut [&mut [u8]], sizes: &[i64]| {
            let [out] = writes else { return Err(format!("one result is written, {} given", writes.len())) };
            function(reads, out, &lengths("multiply_grouped", sizes)?)
        };
        let step = CallStep {
            name: "multiply_grouped",
            callee: Callee::Host(Arc::new(of_bytes)),
            reads: vec![Slot::Input(0), Slot::Input(1), Slot::Input(2)],
            writes: vec![Slot::Output(0)],
            params: sizes,
        };
        Ok(Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost })
    }
}

/// For elements of these types, from bytes to bytes.
fn run<A, B, C>(reads: &[&[u8]], out: &mut [u8], sizes: &[usize]) -> Result<(), String>
where
    A: Number + bytemuck::Pod,
    B: Number + bytemuck::Pod,
    C: Number + bytemuck::Pod,
{
    let (&[x, weights, ids], &[rows, n, k, count, x_row, x_column, matrix, row, column]) = (reads, sizes) else {
        return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
    };
    let whole = out.len() / size_of::<C>() * size_of::<C>();
    let out: &mut [C] =
        bytemuck::try_cast_slice_mut(&mut out[..whole]).map_err(|error| format!("`multiply_grouped`: {error}"))?;
    let grouped = Grouped {
        rows,
        n,
        k,
        count,
        a: (elements::<A>(x)?, [x_row, x_column]),
        b: Matrices { values: elements::<B>(weights)?, strides: [matrix, row, column] },
        groups: elements::<u32>(ids)?,
    };
    multiply_grouped(&grouped, out)
}
