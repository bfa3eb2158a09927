//! Softmax on the processor itself.

use trefoil_host::rows::softmax;

use super::rows_and_columns;
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::one_function;
use crate::ops::support::{contiguous, transfer_time, upper};

/// Row by row.
#[derive(Debug)]
pub(super) struct Rows;

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "softmax on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request.inputs)?;
        let (_, columns) = rows_and_columns(&request.inputs[0].ty);
        let count = request.outputs[0].elements();
        let cost = transfer_time(8.0 * upper(&count));
        Ok(one_function("softmax", vec![Slot::Input(0)], vec![columns, count], cost, |reads, out, sizes| {
            let (&[x], &[columns, count]) = (reads, sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            softmax(x, columns, out.get_mut(..count).ok_or("the result is too short")?)
        }))
    }
}
