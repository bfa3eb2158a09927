//! The methods of [`Graph`] that add maps which are no functions of elements of one type.

use super::{Cast, Contiguous, Where};
use crate::graph::{Graph, GraphError, Tensor};
use crate::types::ElementType;

#[trefoil_graph_macros::eager]
impl Graph {
    /// `accept` where the condition holds, else `reject`.
    ///
    /// # Errors
    /// The condition is not bool, the others' types differ, or the shapes do not broadcast.
    pub fn where_(&mut self, condition: Tensor, accept: Tensor, reject: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(Where, &[condition, accept, reject])
    }

    /// Elements converted to another type, as [`Cast`] says.
    ///
    /// # Errors
    /// The tensor is of another graph.
    pub fn cast(&mut self, x: Tensor, to: ElementType) -> Result<Tensor, GraphError> {
        let from = self.operand("cast", x)?.element;
        self.add_one(Cast { from, to }, &[x])
    }

    /// The same elements, one after the other in memory.
    ///
    /// # Errors
    /// The tensor is of another graph.
    pub fn contiguous(&mut self, x: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(Contiguous, &[x])
    }
}

impl Graph {
    /// A tensor's elements as a type, without a cast if they are that.
    pub(crate) fn as_element(&mut self, x: Tensor, element: ElementType) -> Result<Tensor, GraphError> {
        if self.type_of(x)?.element == element { Ok(x) } else { self.cast(x, element) }
    }
}
