//! Sorts of rows on the processor itself.

use std::sync::Arc;

use trefoil_host::sort::{Rows as HostRows, sort};

use super::order::order;
use super::{Gives, Sort};
use crate::dim::Dim;
use crate::op::{CallStep, Callee, Candidate, Implementation, Ineligible, Request, Slot, Step};
use crate::ops::host::{contiguous, lengths};
use crate::ops::support::{transfer_time, upper};

/// Sorts of the last axis, row by row.
#[derive(Debug)]
pub(super) struct Rows<'a>(pub(super) &'a Sort);

impl Candidate for Rows<'_> {
    fn name(&self) -> &'static str {
        "sort of rows on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (x, gives) = (&request.inputs[0].ty, self.0.gives);
        if self.0.axis + 1 != x.rank() {
            return Err(Ineligible::Other(format!("axis {} of {x} is not the last", self.0.axis)));
        }
        contiguous(request.inputs)?;
        let (columns, wanted) = (&x.shape[self.0.axis], &request.outputs[0].shape[self.0.axis]);
        let count: Dim = x.shape[..self.0.axis].iter().cloned().product();
        let order = order(x.element, self.0.order, gives != Gives::Values);
        let width = x.element.bytes() as usize;
        let function = move |reads: &[&[u8]], writes: &mut [&mut [u8]], sizes: &[i64]| {
            let sizes = lengths("sort of rows", sizes)?;
            let (&[x], &[columns, wanted, count]) = (reads, sizes.as_slice()) else {
                return Err(format!("a sort of {} operands with sizes {sizes:?}", reads.len()));
            };
            let words = |bytes| bytemuck::try_cast_slice_mut(bytes).map_err(|error| format!("the places: {error}"));
            let (values, places) = match (gives, writes) {
                (Gives::Values, [values]) => (Some(&mut **values), None),
                (Gives::Places, [places]) => (None, Some(words(places)?)),
                (Gives::Top(_), [values, places]) => (Some(&mut **values), Some(words(places)?)),
                (_, writes) => return Err(format!("a sort of {} results", writes.len())),
            };
            sort(&HostRows { x, width, columns, wanted, order }, count, values, places)
        };
        let step = CallStep {
            name: "sort of rows",
            callee: Callee::Host(Arc::new(function)),
            reads: vec![Slot::Input(0)],
            writes: (0..request.outputs.len()).map(Slot::Output).collect(),
            params: vec![columns.clone(), wanted.clone(), count],
        };
        let cost = transfer_time(3.0 * upper(&x.bytes()));
        Ok(Implementation { steps: vec![Step::Call(step)], scratch: Vec::new(), cost })
    }
}
