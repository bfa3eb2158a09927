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

    /// Applies what works along the last axis along another.
    ///
    /// # Errors
    /// The tensor has no such axis, or `apply` fails.
    pub(crate) fn along_last_axis(
        &mut self,
        op: &str,
        tensor: Tensor,
        axis: isize,
        apply: impl FnOnce(&mut Self, Tensor) -> Result<Tensor, GraphError>,
    ) -> Result<Tensor, GraphError> {
        let axis = self.axes(op, tensor, &[axis])?[0];
        let rank = self.type_of(tensor)?.rank();
        if axis + 1 == rank {
            return apply(self, tensor);
        }
        let mut swap: Vec<usize> = (0..rank).collect();
        swap.swap(axis, rank - 1);
        let moved = self.transpose(tensor, &swap)?;
        let result = apply(self, moved)?;
        self.transpose(result, &swap)
    }
}
