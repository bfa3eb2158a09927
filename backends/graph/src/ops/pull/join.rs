//! Tensors one after the other along an axis.

use super::{at, each, has_axis, pull_op};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_element, shape_error};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::TensorType;

/// Tensors of equal types but for the extents of an axis, along which they stand one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    /// The axis.
    pub axis: usize,
}

impl Op for Concat {
    pull_op!(moves, "concat", axis);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let [first, others @ ..] = inputs else { return Err(OpError::InputCount { given: 0, expected: 1 }) };
        has_axis(first, self.axis)?;
        let mut output = first.clone();
        for other in others {
            expect_element("tensors", other, first.element)?;
            let fits = other.rank() == first.rank()
                && (0..first.rank()).all(|axis| axis == self.axis || other.shape[axis] == first.shape[axis]);
            if !fits {
                return Err(shape_error(
                    "tensors",
                    other,
                    format!("the extents of {first} but along axis {}", self.axis),
                ));
            }
            output.shape[self.axis] = &output.shape[self.axis] + &other.shape[self.axis];
        }
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut position = position.to_vec();
            for input in inputs {
                let extent = input.shape[self.axis] as i64;
                if position[self.axis] < extent {
                    return at(input, &position).unwrap_or(f64::NAN);
                }
                position[self.axis] -= extent;
            }
            f64::NAN
        })
    }
}

impl Moves for Concat {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let distances: Vec<Dim> = inputs.iter().map(|input| input.shape[self.axis].clone()).collect();
        let tail = output.rank() - self.axis - 1;
        Frame { lead: self.axis, tail, distances, in_blocks: true, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        part(machine, 0, given.at[0], given.distances)
    }

    fn joins(&self) -> Option<usize> {
        Some(self.axis)
    }
}

/// The element of the input at `first` or one behind it.
fn part<M: Machine>(machine: M, first: usize, at: M::Index, extents: &[M::Index]) -> M::Value {
    if first + 1 >= extents.len() {
        return machine.read(first, &[at]);
    }
    let here = machine.less(at, extents[first]);
    machine.choose(here, || machine.read(first, &[at]), || part(machine, first + 1, at - extents[first], extents))
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Tensors one after the other along an axis; a negative axis counts from the last. All have one element type and, along the other axes, equal extents.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let a = g.input("a", ElementType::F32, [2, 3])?;
    /// let b = g.input("b", ElementType::F32, [2, 5])?;
    /// let y = g.concat(&[a, b], -1)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[2, 8]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// There are no tensors or no such axis, or the tensors differ in type, rank or another extent.
    pub fn concat(&mut self, tensors: &[Tensor], axis: isize) -> Result<Tensor, GraphError> {
        let axis = match tensors {
            [first, ..] => self.axis("concat", *first, axis, 0)?,
            [] => 0,
        };
        self.add_one(Concat { axis }, tensors)
    }

    /// Tensors of one type, one after the other along a new axis, which stands at `axis` in the result; a negative axis counts from the result's last.
    ///
    /// # Errors
    /// There are no tensors or no such place, or the tensors differ in type.
    pub fn stack(&mut self, tensors: &[Tensor], axis: isize) -> Result<Tensor, GraphError> {
        let parts = tensors.iter().map(|tensor| self.unsqueeze(*tensor, axis)).collect::<Result<Vec<_>, _>>()?;
        self.concat(&parts, axis)
    }
}
