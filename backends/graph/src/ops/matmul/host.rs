//! The product on the processor itself.

use std::sync::Arc;

use half::{bf16, f16};
use trefoil_host::number::Number;
use trefoil_host::product::{Matrices, Product as HostProduct, multiply};
use trefoil_kernels::activation::Activation;

use super::MatMul;
use super::candidates::types;
use super::product::Product;
use crate::op::{CallStep, Callee, Candidate, Implementation, Ineligible, Request, Slot, Step};
use crate::ops::host::lengths;
use crate::ops::support::{FLOPS_PER_MICROSECOND, upper};
use crate::types::ElementType;

use ElementType::{BF16, F16, F32};

/// A product from the bytes of operands to those of the result, by sizes and an activation.
type Function = fn(&[&[u8]], &mut [u8], &[usize], Activation) -> Result<(), String>;

/// Panels in caches and tiles in registers; any strides.
#[derive(Debug)]
pub(super) struct Panels(pub(super) MatMul);

impl Candidate for Panels {
    fn name(&self) -> &'static str {
        "matmul on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        types(&self.0, request)?;
        let activation = self.0.activation;
        let elements = (request.inputs[0].ty.element, request.inputs[1].ty.element, self.0.out);
        let function: Function = match elements {
            (F32, F32, F32) => run::<f32, f32, f32>,
            (F16, F16, F16) => run::<f16, f16, f16>,
            (F16, F16, F32) => run::<f16, f16, f32>,
            (BF16, BF16, BF16) => run::<bf16, bf16, bf16>,
            (BF16, BF16, F32) => run::<bf16, bf16, f32>,
            (F32, F16, F32) => run::<f32, f16, f32>,
            (F32, BF16, F32) => run::<f32, bf16, f32>,
            (a, b, _) => return Err(Ineligible::Other(format!("elements of {a} and {b}, not of up to 32 bits"))),
        };
        let product = Product::new(request)?;
        if let Some(bias) = request.inputs.get(2).filter(|bias| !bias.layout.has_contiguous_strides(&bias.ty.shape)) {
            return Err(Ineligible::Other(format!("a bias of strides {:?}", bias.layout.strides)));
        }
        let cost = 1.0 + 2.0 * upper(&request.outputs[0].elements()) * upper(&product.k) / FLOPS_PER_MICROSECOND;
        let mut reads = vec![Slot::Input(0), Slot::Input(1)];
        reads.extend(self.0.bias.then_some(Slot::Input(2)));
        let Product { batch, m, n, k, a, b, a_batch, b_batch } = product;
        let ([a_row, a_column], [b_row, b_column]) = (a, b);
        let sizes = vec![batch, m, n, k, a_batch, a_row, a_column, b_batch, b_row, b_column];
        let of_bytes = move |reads: &[&[u8]], writes: &mut [&mut [u8]], sizes: &[i64]| {
            let [out] = writes else { return Err(format!("`multiply` writes one result, {} given", writes.len())) };
            function(reads, out, &lengths("multiply", sizes)?, activation)
        };
        let step = CallStep {
            name: "multiply",
            callee: Callee::Host(Arc::new(of_bytes)),
            reads,
            writes: vec![Slot::Output(0)],
            params: sizes,
        };
        Ok(Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost })
    }
}

/// Whole elements of bytes.
pub(super) fn elements<T: bytemuck::Pod>(bytes: &[u8]) -> Result<&[T], String> {
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    bytemuck::try_cast_slice(&bytes[..whole]).map_err(|error| format!("an operand of `multiply`: {error}"))
}

/// A product of elements of these types, from bytes to bytes.
fn run<A, B, C>(reads: &[&[u8]], out: &mut [u8], sizes: &[usize], activation: Activation) -> Result<(), String>
where
    A: Number + bytemuck::Pod,
    B: Number + bytemuck::Pod,
    C: Number + bytemuck::Pod,
{
    let (&[a, b, ref bias @ ..], &[batch, m, n, k, a0, a1, a2, b0, b1, b2]) = (reads, sizes) else {
        return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
    };
    let a = Matrices { values: elements::<A>(a)?, strides: [a0, a1, a2] };
    let b = Matrices { values: elements::<B>(b)?, strides: [b0, b1, b2] };
    let bias = bias.first().map(|bias| elements::<C>(bias)).transpose()?;
    let whole = out.len() / size_of::<C>() * size_of::<C>();
    let out = bytemuck::try_cast_slice_mut(&mut out[..whole]).map_err(|error| format!("`multiply`: {error}"))?;
    multiply(&HostProduct { batch, m, n, k, a, b, bias, activation }, out)
}
