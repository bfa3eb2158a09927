//! Axes named by users.

use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;

impl Graph {
    /// The number of an axis that may be counted from the last of `x`, to which `op` adds `added` axes.
    ///
    /// # Errors
    /// There is no such axis.
    pub(crate) fn axis(&self, op: &str, x: Tensor, axis: isize, added: usize) -> Result<usize, GraphError> {
        let ty = self.operand(op, x)?;
        let rank = ty.rank() + added;
        let from_first = if axis < 0 { axis.checked_add_unsigned(rank) } else { Some(axis) };
        let known = from_first.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
        known.ok_or_else(|| {
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
        let mut known = Vec::with_capacity(axes.len());
        for axis in axes {
            let from_first = if *axis < 0 { axis.checked_add_unsigned(ty.rank()) } else { Some(*axis) };
            match from_first.and_then(|axis| usize::try_from(axis).ok()) {
                Some(axis) if axis < ty.rank() && !known.contains(&axis) => known.push(axis),
                _ => {
                    let error = OpError::Attribute {
                        attribute: "axis",
                        given: format!("{axes:?}"),
                        expected: format!("axes of {ty}, each once"),
                    };
                    return Err(GraphError::Op { op: op.to_owned(), error });
                }
            }
        }
        known.sort_unstable();
        Ok(known)
    }
}
