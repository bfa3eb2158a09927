//! Axes named by users.

use crate::graph::{Graph, GraphError, Tensor};
use crate::op::OpError;

impl Graph {
    /// Axes of a tensor, negative ones counted from the last, in ascending order.
    ///
    /// # Errors
    /// The tensor has no such axis, or one is named twice.
    pub(crate) fn axes(&self, op: &str, tensor: Tensor, axes: &[isize]) -> Result<Vec<usize>, GraphError> {
        let ty = self.type_of(tensor)?;
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
