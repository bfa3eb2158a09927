//! Norms of rows on the processor itself.

use trefoil_host::columns;
use trefoil_host::rows::{self, Norm as HostNorm};

use super::{Norm, NormKind, Softmax};
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::{columns, contiguous, one_function, rows_by_columns};
use crate::ops::support::{transfer_time, upper};

/// Softmax, of rows and of columns.
#[derive(Debug)]
pub(super) struct SoftmaxOnHost<'a>(pub(super) &'a Softmax);

/// Norms, row by row.
#[derive(Debug)]
pub(super) struct NormRows<'a>(pub(super) &'a Norm);

impl Candidate for SoftmaxOnHost<'_> {
    fn name(&self) -> &'static str {
        "softmax on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [along, beside] = rows_by_columns(&request.inputs[0].ty, &self.0.axes)?;
        contiguous(request.inputs)?;
        let count = request.outputs[0].elements();
        let cost = transfer_time(8.0 * upper(&count));
        let logarithm = self.0.logarithm;
        Ok(one_function("softmax", vec![Slot::Input(0)], vec![along, beside, count], cost, move |reads, out, sizes| {
            let (&[x], &[along, beside, count]) = (reads, sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            let out = out.get_mut(..count).ok_or("the result is too short")?;
            match beside {
                1 => rows::softmax(x, along, logarithm, out),
                _ => columns::softmax(x, along, beside, logarithm, out),
            }
        }))
    }
}

impl Candidate for NormRows<'_> {
    fn name(&self) -> &'static str {
        "norm on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let op = self.0;
        let x = &request.inputs[0].ty;
        let columns = columns(x, &op.axes)?;
        let shape = &x.shape[x.rank() - op.axes.len()..];
        let positions = op.positions();
        if positions[1..].iter().flatten().any(|at| request.inputs[*at].ty.shape != shape) {
            return Err(Ineligible::Other("a vector is not as long as a row".to_owned()));
        }
        if op.bias || op.wants_sum || op.wants_moments {
            return Err(Ineligible::Other("a bias, or several results".to_owned()));
        }
        contiguous(request.inputs)?;
        let cost = transfer_time(8.0 * upper(&request.outputs[0].elements()));
        let reads = (0..request.inputs.len()).map(Slot::Input).collect();
        let (divisor, [epsilon, most]) = op.constants(&columns);
        let centred = op.kind == NormKind::Layer;
        let sizes = vec![columns, request.outputs[0].elements(), divisor];
        Ok(one_function("norm", reads, sizes, cost, move |reads, out, sizes| {
            let (Some(x), &[columns, count, divisor]) = (reads.first(), sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            let [residual, _, gamma, beta] = positions.map(|at| at.and_then(|at| reads.get(at).copied()));
            let operands = HostNorm { x, residual, gamma, beta, columns, centred, divisor, epsilon, most };
            rows::norm(&operands, out.get_mut(..count).ok_or("the result is too short")?)
        }))
    }
}
