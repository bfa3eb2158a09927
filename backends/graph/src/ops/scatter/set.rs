//! Slots set to their last updates: a pull, so that rows move in the widest units; or a kernel that works in place.

use trefoil_kernels::scatter::kernels;

use super::super::support::{
    LAUNCH, expect_element, expect_inputs, instance, kernel_time, one_kernel, shape_error, upper,
};
use super::join::{bits, grid, of_bits};
use super::result;
use crate::dim::Dim;
use crate::op::{Candidate, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot};
use crate::pull::{Frame, Given, Machine, Moves, Pull};
use crate::types::{ElementType, TensorType};

/// `x`, `[lines, slots, columns]`, with each slot that has an update replaced by it: inputs are `x`, the updates, `[lines, count, columns]`, and which is the last of each slot, `u32` of `[slots]`, as
/// [`super::LastUpdates`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScatterSet;

impl Op for ScatterSet {
    fn name(&self) -> &'static str {
        "scatter_set"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Pull(Pull::moves(self).unless(vec![Box::new(InPlace)]))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=3)?;
        let (x, updates, last) = (&inputs[0], &inputs[1], &inputs[2]);
        expect_element("updates", updates, x.element)?;
        let alike = |axis: usize| x.rank() == 3 && updates.rank() == 3 && x.shape[axis] == updates.shape[axis];
        if !alike(0) || !alike(2) {
            return Err(shape_error("updates", updates, format!("lines, updates and columns, for x of {x}")));
        }
        expect_element("last", last, ElementType::U32)?;
        if last.shape != x.shape[1..2] {
            return Err(shape_error("last", last, format!("a number for each slot of {x}")));
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

/// The rows that have updates, in the memory of x.
#[derive(Debug)]
struct InPlace;

impl Candidate for InPlace {
    fn name(&self) -> &'static str {
        "last updates in place"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [x, updates, last] = request.inputs else { return Err(Ineligible::Other("three inputs".to_owned())) };
        let result = result(request, true)?;
        if !last.layout.has_contiguous_strides(&last.ty.shape) {
            return Err(Ineligible::NeedsContiguous(vec![2]));
        }
        let [lines, slots, columns] = &*x.ty.shape else { return Err(Ineligible::Other("three axes".to_owned())) };
        // Elements of eight bytes are two columns of words each.
        let (name, words) = match x.ty.element.bytes() {
            1 => ("scatter_set_u8", 1i64),
            2 => ("scatter_set_u16", 1),
            4 => ("scatter_set_u32", 1),
            _ => ("scatter_set_u32", 2),
        };
        let strides = &updates.layout.strides;
        if words == 2 && !strides[2].is(1) {
            return Err(Ineligible::NeedsContiguous(vec![1]));
        }
        let columns = columns.clone() * words;
        let [of_line, of_update] = [0, 1].map(|axis| strides[axis].clone() * words);
        let quads = strides[2].is(1) && [&columns, &of_line, &of_update].into_iter().all(|size| size.divides_evenly(4));
        let most = columns.bounds().1;
        let bits = bits(if quads { most / 4 } else { most });
        let params = vec![
            ParamValue::Bool(quads),
            ParamValue::Dims(vec![lines.clone(), slots.clone(), columns]),
            ParamValue::Dims(vec![of_line, of_update, strides[2].clone()]),
            of_bits(bits),
        ];
        // The pull is taken for a launch, whatever it moves: this is as much less as it moves less.
        let [all, moved, numbers] = [x, updates, last].map(|operand| upper(&operand.ty.bytes()));
        let share = (2.0 * moved.min(all) + numbers * upper(lines)) / (2.0 * all + numbers).max(1.0);
        let cost = kernel_time(request.device, LAUNCH * share);
        let bindings = vec![Slot::Input(1), Slot::Input(2), result];
        let rows = lines.clone() * slots.clone();
        Ok(one_kernel(instance(&kernels(), name)?, bindings, params, grid(rows, bits), cost))
    }
}
