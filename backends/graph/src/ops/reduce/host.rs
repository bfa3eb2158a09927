//! Reductions of rows on the processor itself.

use trefoil_host::reductions::{Reduction as HostReduction, places, rows};

use super::{Reduce, Reduction};
use crate::op::{Candidate, Implementation, Ineligible, Request, Slot};
use crate::ops::host::{columns, one_function};
use crate::ops::support::{transfer_time, upper};

/// Sums and extremes of the last axes and the extremes' places, row by row.
#[derive(Debug)]
pub(super) struct Rows<'a>(pub(super) &'a Reduce);

impl Candidate for Rows<'_> {
    fn name(&self) -> &'static str {
        "reduction of rows on the host"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (op, x) = (self.0, &request.inputs[0]);
        let columns = columns(&x.ty, &op.axes)?;
        // Kernels reduce what lies otherwise where it lies, which is faster than a copy.
        if !x.layout.is_contiguous(&x.ty.shape) {
            return Err(Ineligible::Other("elements that do not follow on each other".to_owned()));
        }
        let (reads, count) = (vec![Slot::Input(0)], request.outputs[0].elements());
        let cost = transfer_time(upper(&x.ty.bytes()));
        let divisor = (op.reduction.definition().divisor)(&columns, op.correction);
        let given =
            |reads: &[&[f32]], sizes: &[usize]| format!("{} operands and {} sizes given", reads.len(), sizes.len());
        let short = "the result is too short";
        Ok(match of(op.reduction)? {
            Rowwise::Value(reduction) => {
                let sizes = vec![columns, count, divisor];
                one_function("reduction of rows", reads, sizes, cost, move |reads, out, sizes| {
                    let (&[x], &[columns, count, divisor]) = (reads, sizes) else { return Err(given(reads, sizes)) };
                    rows(x, columns, reduction, divisor, out.get_mut(..count).ok_or(short)?)
                })
            }
            Rowwise::Place(reduction, last) => {
                let sizes = vec![columns, count];
                one_function("places in rows", reads, sizes, cost, move |reads, out, sizes| {
                    let (&[x], &[columns, count]) = (reads, sizes) else { return Err(given(reads, sizes)) };
                    places(x, columns, reduction, last, out.get_mut(..count).ok_or(short)?)
                })
            }
        })
    }
}

/// What the host makes of a row.
enum Rowwise {
    Value(HostReduction),
    /// The first place of an extreme, or the last.
    Place(HostReduction, bool),
}

fn of(reduction: Reduction) -> Result<Rowwise, Ineligible> {
    Ok(match reduction {
        Reduction::Sum | Reduction::Mean => Rowwise::Value(HostReduction::Sum),
        Reduction::Max => Rowwise::Value(HostReduction::Max),
        Reduction::Min => Rowwise::Value(HostReduction::Min),
        Reduction::ArgMax => Rowwise::Place(HostReduction::Max, false),
        Reduction::ArgMin => Rowwise::Place(HostReduction::Min, false),
        Reduction::LastArgMax => Rowwise::Place(HostReduction::Max, true),
        Reduction::LastArgMin => Rowwise::Place(HostReduction::Min, true),
        other => return Err(Ineligible::Other(format!("{other:?} is computed by kernels"))),
    })
}
