//! Elements by indices, which are integers of any type; one out of range reads 0.

use super::{at, attribute_error, each, expect_integers, has_axis, pull_op};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_inputs, shape_error};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::TensorType;

/// Positions of an axis by index: the indices' axes stand in the place of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    /// The axis.
    pub axis: usize,
}

/// For each index, the element of `x` at the index's own coordinates, but for an axis, where the index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GatherElements {
    /// The axis.
    pub axis: usize,
}

/// Parts of `x` by indices of several axes at once: the last axis of the indices holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GatherNd {
    /// So many axes in front are the same axes of both.
    pub batch_axes: usize,
}

/// The index that a reference reads; -1 for one that is no place.
fn index(value: Option<f64>) -> i64 {
    value.filter(|value| value.abs() < 2f64.powi(53)).map_or(-1, |value| value as i64)
}

impl Op for Gather {
    pull_op!(moves, "gather", axis);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, indices) = (&inputs[0], &inputs[1]);
        has_axis(x, self.axis)?;
        expect_integers("indices", indices)?;
        let mut shape = x.shape.clone();
        shape.splice(self.axis..=self.axis, indices.shape.iter().cloned());
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, indices) = (&inputs[0], &inputs[1]);
        let behind = self.axis + indices.shape.len();
        each(&outputs[0], |position| {
            let mut source = position[..self.axis].to_vec();
            source.push(index(at(indices, &position[self.axis..behind])));
            source.extend(&position[behind..]);
            at(x, &source).unwrap_or(0.0)
        })
    }
}

impl Moves for Gather {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let numbers = vec![inputs[0].shape[self.axis].clone()];
        let tail = inputs[0].rank() - self.axis - 1;
        Frame { lead: self.axis, tail, indices: 1, numbers, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let from = machine.index(1, given.at);
        machine.read_if(machine.within(from, given.numbers[0]), 0, &[from])
    }
}

impl Op for GatherElements {
    pull_op!(moves, "gather_elements", axis);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, indices) = (&inputs[0], &inputs[1]);
        has_axis(x, self.axis)?;
        expect_integers("indices", indices)?;
        let fits = indices.rank() == x.rank()
            && (0..x.rank()).filter(|axis| *axis != self.axis).all(|axis| {
                let room = &x.shape[axis] - &indices.shape[axis];
                room.bounds().0 >= 0
            });
        if !fits {
            let expected = format!("no larger extents than {x} has, but along axis {}", self.axis);
            return Err(shape_error("indices", indices, expected));
        }
        Ok(vec![TensorType { element: x.element, shape: indices.shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            source[self.axis] = index(at(&inputs[1], position));
            at(&inputs[0], &source).unwrap_or(0.0)
        })
    }
}

impl Moves for GatherElements {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        Frame { indices: 1, numbers: vec![inputs[0].shape[self.axis].clone()], ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let mut source = given.at.to_vec();
        source[self.axis] = machine.index(1, given.at);
        machine.read_if(machine.within(source[self.axis], given.numbers[0]), 0, &source)
    }
}

impl GatherNd {
    /// How many axes an index names: the extent of the indices' last axis.
    fn named(indices: &TensorType) -> Option<usize> {
        indices.shape.last().and_then(|last| last.constant()).and_then(|count| usize::try_from(count).ok())
    }
}

impl Op for GatherNd {
    pull_op!(moves, "gather_nd", batch_axes);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, indices, batch) = (&inputs[0], &inputs[1], self.batch_axes);
        expect_integers("indices", indices)?;
        let Some(named) = Self::named(indices) else {
            return Err(shape_error(
                "indices",
                indices,
                "a last axis of fixed extent, as many as axes are named".to_owned(),
            ));
        };
        if batch >= indices.rank() || batch.saturating_add(named) > x.rank() {
            let expected = format!("{named} axes to name, of {x} with indices {indices}");
            return Err(attribute_error("batch_axes", batch, expected));
        }
        if x.shape[..batch] != indices.shape[..batch] {
            return Err(shape_error("indices", indices, format!("the first {batch} extents of {x}")));
        }
        let own = &indices.shape[..indices.rank() - 1];
        let shape = own.iter().chain(&x.shape[batch + named..]).cloned().collect();
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, indices) = (&inputs[0], &inputs[1]);
        let own = indices.shape.len() - 1;
        each(&outputs[0], |position| {
            let mut source = position[..self.batch_axes].to_vec();
            for number in 0..indices.shape[own] {
                let place: Vec<i64> = position[..own].iter().copied().chain([number as i64]).collect();
                source.push(index(at(indices, &place)));
            }
            source.extend(&position[own..]);
            at(x, &source).unwrap_or(0.0)
        })
    }
}

impl Moves for GatherNd {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let named = Self::named(&inputs[1]).unwrap_or(0);
        let numbers = inputs[0].shape[self.batch_axes..self.batch_axes + named].to_vec();
        let tail = inputs[0].rank() - self.batch_axes - named;
        Frame { tail, indices: 1, numbers, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let mut source = given.at[..self.batch_axes].to_vec();
        let mut inside = machine.equal(machine.constant(0), machine.constant(0));
        for (number, extent) in given.numbers.iter().enumerate() {
            let place: Vec<_> = given.at.iter().copied().chain([machine.constant(number as i32)]).collect();
            let from = machine.index(1, &place);
            inside = inside & machine.within(from, *extent);
            source.push(from);
        }
        machine.read_if(inside, 0, &source)
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Positions of an axis of `x` by index (`index_select`, NumPy's `take`): the result has the indices' axes in the place of the axis. An index out of range, a negative
    /// one too, reads 0.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::BF16, [4, 100, 64])?;
    /// let i = g.input("i", ElementType::I64, [7, 2])?;
    /// let y = g.gather(x, i, 1)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "bf16[4, 7, 2, 64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// There is no such axis, or the indices are not integers.
    pub fn gather(&mut self, x: Tensor, indices: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axis = self.axis("gather", x, axis, 0)?;
        self.add_one(Gather { axis }, &[x, indices])
    }

    /// Rows of `table`, a matrix of any element type, by indices of any shape; the result has the indices' shape and then the table's columns. An index out of range
    /// reads zeros.
    ///
    /// # Errors
    /// The table is no matrix, or the indices are not integers.
    pub fn embedding(&mut self, table: Tensor, indices: Tensor) -> Result<Tensor, GraphError> {
        const OP: &str = "embedding";
        let wrong = |error| GraphError::Op { op: OP.to_owned(), error };
        let ty = self.operand(OP, table)?;
        if ty.rank() != 2 {
            return Err(wrong(shape_error("table", ty, "a matrix of rows".to_owned())));
        }
        expect_integers("indices", self.operand(OP, indices)?).map_err(wrong)?;
        self.gather(table, indices, 0)
    }

    /// For each index, the element of `x` at the index's own coordinates, but along `axis`, where the index says (NumPy's `take_along_axis`). One out of range reads 0.
    ///
    /// # Errors
    /// There is no such axis, the indices are not integers, or have another rank or, along another axis, a larger extent than `x`.
    pub fn gather_elements(&mut self, x: Tensor, indices: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        let axis = self.axis("gather_elements", x, axis, 0)?;
        self.add_one(GatherElements { axis }, &[x, indices])
    }

    /// Parts of `x` by indices of several axes at once: along the last axis of `indices` stand the coordinates in the axes of `x` behind the first `batch_axes`, which both
    /// have alike. An index out of range reads 0.
    ///
    /// # Errors
    /// The indices are not integers, the extent of their last axis is not a number, `x` has fewer axes than that, or the first extents differ.
    pub fn gather_nd(&mut self, x: Tensor, indices: Tensor, batch_axes: usize) -> Result<Tensor, GraphError> {
        self.add_one(GatherNd { batch_axes }, &[x, indices])
    }
}
