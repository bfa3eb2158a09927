//! Reductions of rows on the processor itself.

use trefoil_host::reductions::{Reduction as HostReduction, rows};

use super::{Reduce, Reduction};
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::one_function;
use crate::ops::support::{transfer_time, upper};
use crate::types::ElementType;

/// Sums and extremes of the last axes, row by row.
#[derive(Debug)]
pub(super) struct Rows<'a>(pub(super) &'a Reduce);

impl Candidate for Rows<'_> {
    fn name(&self) -> &'static str {
        "reduction of rows on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.0, &request.inputs[0]);
        let reduction = match op.reduction {
            Reduction::Sum | Reduction::Mean => HostReduction::Sum,
            Reduction::Max => HostReduction::Max,
            Reduction::Min => HostReduction::Min,
            other => return Err(Ineligible::Other(format!("{other:?} is computed by kernels"))),
        };
        let are_last = op.axes.iter().rev().zip((0..x.ty.rank()).rev()).all(|(axis, last)| *axis == last);
        if !are_last || x.ty.element != ElementType::F32 {
            return Err(Ineligible::Other(format!("axes {:?} of {} are not the last ones of f32", op.axes, x.ty)));
        }
        // Kernels reduce what lies otherwise where it lies, which is faster than a copy.
        if !x.layout.is_contiguous(&x.ty.shape) {
            return Err(Ineligible::Other("elements that do not follow on each other".to_owned()));
        }
        let columns = op.elements(&x.ty);
        let divisor = (op.reduction.definition().divisor)(&columns, op.correction);
        let cost = transfer_time(upper(&x.ty.bytes()));
        let sizes = vec![columns, request.outputs[0].elements(), divisor];
        Ok(one_function("reduction of rows", vec![Slot::Input(0)], sizes, cost, move |reads, out, sizes| {
            let (&[x], &[columns, count, divisor]) = (reads, sizes) else {
                return Err(format!("{} operands and {} sizes given", reads.len(), sizes.len()));
            };
            rows(x, columns, reduction, divisor, out.get_mut(..count).ok_or("the result is too short")?)
        }))
    }
}
