//! Layer normalisation on the processor itself.

use trefoil_host::rows::{LayerNorm as HostLayerNorm, layer_norm};

use super::LayerNorm;
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::one_function;
use crate::ops::softmax::rows_and_columns;
use crate::ops::support::{contiguous, transfer_time, upper};

/// Row by row.
#[derive(Debug)]
pub(super) struct Rows(pub(super) LayerNorm);

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "layer_norm on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request.inputs)?;
        let (_, columns) = rows_and_columns(&request.inputs[0].ty);
        let cost = transfer_time(8.0 * upper(&request.outputs[0].elements()));
        let reads = (0..request.inputs.len()).map(Slot::Input).collect();
        let op = self.0;
        let count = request.outputs[0].elements();
        Ok(one_function("layer_norm", reads, vec![columns, count], cost, move |reads, out, sizes| {
            let (Some(x), &[columns, count]) = (reads.first(), sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            let [residual, gamma, beta] =
                op.slots().map(|slot| LayerNorm::position(&slot).and_then(|position| reads.get(position).copied()));
            let norm = HostLayerNorm { x, residual, gamma, beta, columns, epsilon: op.epsilon };
            layer_norm(&norm, out.get_mut(..count).ok_or("the result is too short")?)
        }))
    }
}
