//! Sequences of different lengths in one tensor.

use super::{at, each, expect_integers, has_axis, pull_op};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_inputs, shape_error};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::TensorType;

/// The first elements of each sequence, as many as its length says, in the opposite order; those behind stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReverseSequence {
    /// The axis along which sequences stand.
    pub batch: usize,
    /// The axis along which each goes.
    pub time: usize,
}

impl ReverseSequence {
    fn first(self) -> usize {
        self.batch.min(self.time)
    }
}

impl Op for ReverseSequence {
    pull_op!(moves, "reverse_sequence", batch, time);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, lengths) = (&inputs[0], &inputs[1]);
        has_axis(x, self.batch)?;
        has_axis(x, self.time)?;
        expect_integers("lengths", lengths)?;
        if self.batch == self.time {
            return Err(super::attribute_error("time", self.time, "another axis than `batch`"));
        }
        if lengths.shape != x.shape[self.batch..=self.batch] {
            return Err(shape_error(
                "lengths",
                lengths,
                format!("one for each position of axis {} of {x}", self.batch),
            ));
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            let length = at(&inputs[1], &[position[self.batch]]).map_or(0, |length| length as i64);
            let length = i32::try_from(length).map_or(0, i64::from);
            if position[self.time] < length {
                source[self.time] = length - 1 - position[self.time];
            }
            at(&inputs[0], &source).unwrap_or(0.0)
        })
    }
}

impl Moves for ReverseSequence {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let tail = output.rank() - 1 - self.batch.max(self.time);
        Frame {
            lead: self.first(),
            tail,
            indices: 1,
            numbers: vec![inputs[0].shape[self.time].clone()],
            ..Frame::default()
        }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let (batch, time) = (self.batch - self.first(), self.time - self.first());
        let length = machine.index(1, &given.at[batch..=batch]);
        let (to, one) = (given.at[time], machine.constant(1));
        let mut source = given.at.to_vec();
        source[time] = machine.select(machine.less(to, length), length - one - to, to);
        machine.read_if(machine.within(source[time], given.numbers[0]), 0, &source)
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// Each sequence's first elements, as many as its length says, in the opposite order: position `b` of axis `batch` holds the sequence that goes along axis `time`,
    /// of length `lengths[b]`. What lies behind the length stays; a length beyond the axis reads 0, and one that is negative or beyond what 32 bits with a sign hold turns nothing.
    ///
    /// # Errors
    /// There is no such axis, both are one, or the lengths are not integers, one for each sequence.
    pub fn reverse_sequence(
        &mut self,
        x: Tensor,
        lengths: Tensor,
        batch: isize,
        time: isize,
    ) -> Result<Tensor, GraphError> {
        let [batch, time] = [batch, time].map(|axis| self.axis("reverse_sequence", x, axis, 0));
        let (batch, time) = (batch?, time?);
        self.add_one(ReverseSequence { batch, time }, &[x, lengths])
    }
}
