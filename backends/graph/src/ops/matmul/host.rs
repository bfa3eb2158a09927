//! The product on the processor itself.

use trefoil_host::product::{Matrices, Product as HostProduct, multiply};

use super::{MatMul, Product};
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::{FLOPS_PER_MICROSECOND, one_function};
use crate::ops::support::upper;

/// Panels in caches and tiles in registers; any strides.
#[derive(Debug)]
pub(super) struct Panels(pub(super) MatMul);

impl Candidate for Panels {
    fn name(&self) -> &'static str {
        "matmul on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let product = Product::new(request)?;
        if let Some(bias) = request.inputs.get(2).filter(|bias| !bias.layout.is_contiguous(&bias.ty.shape)) {
            return Err(Ineligible::Other(format!("a bias of strides {:?}", bias.layout.strides)));
        }
        let cost = 1.0 + 2.0 * upper(&request.outputs[0].elements()) * upper(&product.k) / FLOPS_PER_MICROSECOND;
        let mut reads = vec![Slot::Input(0), Slot::Input(1)];
        reads.extend(self.0.bias.then_some(Slot::Input(2)));
        let Product { batch, m, n, k, a, b, a_batch, b_batch } = product;
        let ([a_row, a_column], [b_row, b_column]) = (a, b);
        let sizes = vec![batch, m, n, k, a_batch, a_row, a_column, b_batch, b_row, b_column];
        let activation = self.0.activation;
        Ok(one_function("multiply", reads, sizes, cost, move |reads, out, sizes| {
            let (&[a, b, ref bias @ ..], &[batch, m, n, k, a0, a1, a2, b0, b1, b2]) = (reads, sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            let a = Matrices { values: a, strides: [a0, a1, a2] };
            let b = Matrices { values: b, strides: [b0, b1, b2] };
            let product = HostProduct { batch, m, n, k, a, b, bias: bias.first().copied(), activation };
            multiply(&product, out)
        }))
    }
}
