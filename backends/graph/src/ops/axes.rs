//! Axes named by users.

use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;

/// The number of an axis of so many, a negative one counted from the last, if there is such an axis.
fn resolved(axis: isize, rank: usize) -> Option<usize> {
    let from_first = if axis < 0 { axis.checked_add_unsigned(rank)? } else { axis };
    usize::try_from(from_first).ok().filter(|axis| *axis < rank)
}

/// The numbers of axes of so many, in the order given.
///
/// # Errors
/// The first axis that there is not, or that was named before.
pub(super) fn each_once(axes: impl IntoIterator<Item = isize>, rank: usize) -> Result<Vec<usize>, isize> {
    let mut known = Vec::new();
    for axis in axes {
        match resolved(axis, rank) {
            Some(number) if !known.contains(&number) => known.push(number),
            _ => return Err(axis),
        }
    }
    Ok(known)
}

impl Graph {
    /// The number of an axis that may be counted from the last of `x`, to which `op` adds `added` axes.
    ///
    /// # Errors
    /// There is no such axis.
    pub(crate) fn axis(&self, op: &str, x: Tensor, axis: isize, added: usize) -> Result<usize, GraphError> {
        let ty = self.operand(op, x)?;
        let rank = ty.rank() + added;
        resolved(axis, rank).ok_or_else(|| {
            let expected = format!("an axis below {rank}, of {ty}");
            GraphError::Op {
                op: format!("{op}({ty})"),
                error: OpError::Attribute { attribute: "axis", given: axis.to_string(), expected },
            }
        })
    }

    /// Axes of a tensor, negative ones counted from the last, in ascending order.
    ///
    /// # Errors
    /// The tensor has no such axis, or one is named twice.
    pub(crate) fn axes(&self, op: &str, tensor: Tensor, axes: &[isize]) -> Result<Vec<usize>, GraphError> {
        let ty = self.operand(op, tensor)?;
        let mut known = each_once(axes.iter().copied(), ty.rank()).map_err(|_| {
            let (given, expected) = (format!("{axes:?}"), format!("axes of {ty}, each once"));
            GraphError::Op { op: op.to_owned(), error: OpError::Attribute { attribute: "axis", given, expected } }
        })?;
        known.sort_unstable();
        Ok(known)
    }
}
