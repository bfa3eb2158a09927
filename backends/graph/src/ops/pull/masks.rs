//! Elements kept, or set, by where they stand.

use super::{at, attribute_error, each, expect_integers, pull_op};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::fill::Number;
use crate::ops::support::{expect_inputs, shape_error, symbols_of};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::{ElementType, TensorType};

/// Along a new axis, one value at the place that an index names and another everywhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct OneHot {
    /// Where the new axis stands in the result.
    pub axis: usize,
    /// Its extent.
    pub depth: Dim,
    /// The value at the place.
    pub on: Number,
    /// The value elsewhere.
    pub off: Number,
    /// What the values are.
    pub element: ElementType,
}

/// Which side of a diagonal of the last two axes is kept; the other becomes 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// Whether the upper side is kept.
    pub upper: bool,
    /// Which diagonal, which is kept too: so many columns to the right of the main one.
    pub diagonal: Dim,
}

/// The diagonal that a matrix has, or just does not have, which is nearest to a given one: a row is added to it, and the sum must be a coordinate.
pub(super) fn nearest_diagonal(diagonal: &Dim, rows: &Dim, columns: &Dim) -> Dim {
    diagonal.minimum(columns).maximum(&-rows)
}

impl Op for OneHot {
    pull_op!(moves, "one_hot", axis, depth, on, off, element);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_integers("indices", &inputs[0])?;
        if self.axis > inputs[0].rank() {
            return Err(attribute_error("axis", self.axis, format!("an axis below {}", inputs[0].rank() + 1)));
        }
        if self.depth.bounds().0 < 0 {
            return Err(attribute_error("depth", &self.depth, "an extent that is not negative"));
        }
        for (name, value) in [("on", self.on), ("off", self.off)] {
            if value.bits(self.element).is_none() {
                return Err(attribute_error(name, value, format!("a number that {} has", self.element)));
            }
        }
        let mut shape = inputs[0].shape.clone();
        shape.insert(self.axis, self.depth.clone());
        Ok(vec![TensorType { element: self.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let value = |number: Number| match number {
            Number::Float(value) => self.element.rounded(value),
            Number::Integer(value) => value as f64,
        };
        each(&outputs[0], |position| {
            let mut place = position.to_vec();
            let here = place.remove(self.axis);
            value(if at(&inputs[0], &place) == Some(here as f64) { self.on } else { self.off })
        })
    }
}

impl Moves for OneHot {
    fn frame(&self, _: &[TensorType], _: &TensorType) -> Frame {
        Frame { indices: 1, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let mut place = given.at.to_vec();
        let here = place.remove(self.axis);
        let bits = |value: Number| move || machine.bits(value.bits(self.element).unwrap_or(0));
        machine.choose(machine.equal(machine.index(0, &place), here), bits(self.on), bits(self.off))
    }
}

impl Op for Triangle {
    pull_op!(moves, "triangle", upper, diagonal);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of([&self.diagonal])
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        if inputs[0].rank() < 2 {
            return Err(shape_error("x", &inputs[0], "at least two axes".to_owned()));
        }
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        // References know numbers alone.
        let Some(diagonal) = self.diagonal.constant() else { return Vec::new() };
        each(&outputs[0], |position| {
            let [.., row, column] = position else { return f64::NAN };
            let right = column - row - diagonal;
            let kept = if self.upper { right >= 0 } else { right <= 0 };
            at(&inputs[0], position).filter(|_| kept).unwrap_or(0.0)
        })
    }
}

impl Moves for Triangle {
    fn frame(&self, _: &[TensorType], output: &TensorType) -> Frame {
        let lead = output.rank() - 2;
        let diagonal = nearest_diagonal(&self.diagonal, &output.shape[lead], &output.shape[lead + 1]);
        Frame { lead, numbers: vec![diagonal], ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let (on, column) = (given.at[0] + given.numbers[0], given.at[1]);
        let lost = if self.upper { machine.less(column, on) } else { machine.less(on, column) };
        machine.read_if(!lost, 0, given.at)
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Along a new axis of extent `depth`, which stands at `axis` in the result, `on` at the place that an index names and `off` elsewhere; an index out of range names
    /// no place.
    ///
    /// # Errors
    /// The indices are not integers, there is no such place for the axis, or the element type does not have the values.
    pub fn one_hot(
        &mut self,
        indices: Tensor,
        depth: impl Into<Dim>,
        [off, on]: [Number; 2],
        element: ElementType,
        axis: isize,
    ) -> Result<Tensor, GraphError> {
        let axis = self.axis("one_hot", indices, axis, 1)?;
        self.add_one(OneHot { axis, depth: depth.into(), on, off, element }, &[indices])
    }

    /// What stands on or below a diagonal of the last two axes, `diagonal` columns to the right of the main one; 0 elsewhere.
    ///
    /// # Errors
    /// `x` has fewer than two axes.
    pub fn tril(&mut self, x: Tensor, diagonal: impl Into<Dim>) -> Result<Tensor, GraphError> {
        self.add_one(Triangle { upper: false, diagonal: diagonal.into() }, &[x])
    }

    /// What stands on or above a diagonal of the last two axes, `diagonal` columns to the right of the main one; 0 elsewhere.
    ///
    /// # Errors
    /// `x` has fewer than two axes.
    pub fn triu(&mut self, x: Tensor, diagonal: impl Into<Dim>) -> Result<Tensor, GraphError> {
        self.add_one(Triangle { upper: true, diagonal: diagonal.into() }, &[x])
    }
}
