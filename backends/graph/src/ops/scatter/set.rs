//! Slots set to their last updates: a pull, so that rows move in the widest units.

use super::super::pull::pull_op;
use super::super::support::{expect_element, expect_inputs, shape_error};
use crate::op::{HostTensor, Op, OpError};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::TensorType;

/// `x`, `[lines, slots, columns]`, with each slot that has an update replaced by it: inputs are `x`, the updates, `[lines, count, columns]`, and which is the last of each slot, as
/// [`super::LastUpdates`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScatterSet;

impl Op for ScatterSet {
    pull_op!(moves, "scatter_set");

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=3)?;
        let (x, updates, last) = (&inputs[0], &inputs[1], &inputs[2]);
        expect_element("updates", updates, x.element)?;
        let alike = |axis: usize| x.rank() == 3 && updates.rank() == 3 && x.shape[axis] == updates.shape[axis];
        if !alike(0) || !alike(2) {
            return Err(shape_error("updates", updates, format!("lines, updates and columns, for x of {x}")));
        }
        if last.shape != x.shape[1..2] || !last.element.is_integer() {
            return Err(shape_error("last", last, format!("an integer for each slot of {x}")));
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, updates, last) = (&inputs[0], &inputs[1], &inputs[2]);
        let (columns, count) = (x.shape[2], updates.shape[1]);
        let mut values = x.values.clone();
        for line in 0..x.shape[0] {
            for (slot, last) in last.values.iter().enumerate().filter(|(_, last)| **last >= 1.0) {
                let to = (line * x.shape[1] + slot) * columns;
                let from = (line * count + *last as usize - 1) * columns;
                values[to..to + columns].copy_from_slice(&updates.values[from..from + columns]);
            }
        }
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }
}

impl Moves for ScatterSet {
    fn frame(&self, _: &[TensorType], _: &TensorType) -> Frame {
        Frame { lead: 1, tail: 1, indices: 1, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let last = machine.index(2, given.at);
        let is_updated = machine.less(machine.constant(0), last);
        machine.choose(is_updated, || machine.read(1, &[last - machine.constant(1)]), || machine.read(0, given.at))
    }
}
