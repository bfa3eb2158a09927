//! `softmax(x, axis)`: exp(x - max(x)) / sum(exp(x - max(x))) along an axis.

#[cfg(feature = "cpu")]
mod host;

use trefoil_kernels::softmax::{softmax_any, softmax_held};

use super::support::{
    contiguous, expect_element, expect_inputs, holding, instance, kernel_time, one_kernel, transfer_time, upper,
};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

/// Softmax along the last axis.
#[derive(Clone, Copy, Debug)]
pub struct Softmax;

impl Graph {
    /// Softmax of an `f32` tensor along `axis` (negative counts from the last).
    ///
    /// # Errors
    /// The tensor is not `f32`, or has no such axis.
    pub fn softmax(&mut self, x: Tensor, axis: isize) -> Result<Tensor, GraphError> {
        self.along_last_axis("softmax", x, axis, |graph, x| graph.add_one(Softmax, &[x]))
    }
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_element("x", &inputs[0], ElementType::F32)?;
        if inputs[0].rank() == 0 {
            return Err(OpError::Shape { input: "x", given: inputs[0].to_string(), expected: "an axis".to_owned() });
        }
        Ok(vec![inputs[0].clone()])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let mut y = inputs[0].clone();
        let columns = y.shape.last().copied().unwrap_or(1).max(1);
        for row in y.values.chunks_mut(columns) {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
            row.iter_mut().for_each(|x| *x = (*x - largest).exp() / sum);
        }
        vec![y]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 5
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            Box::new(Held),
            Box::new(Any),
            #[cfg(feature = "cpu")]
            Box::new(host::Rows),
        ])
    }
}

/// Rows held in registers.
#[derive(Debug)]
struct Held;

/// Rows of any length.
#[derive(Debug)]
struct Any;

/// Rows and columns of a tensor that is normalised along its last axis.
pub(super) fn rows_and_columns(ty: &TensorType) -> (Dim, Dim) {
    match ty.shape.split_last() {
        Some((columns, outer)) => (outer.iter().cloned().product(), columns.clone()),
        None => (Dim::from(1i64), Dim::from(1i64)),
    }
}

impl Candidate for Held {
    fn name(&self) -> &'static str {
        "softmax held in registers"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (rows, columns) = rows_and_columns(&request.inputs[0].ty);
        if !columns.divides_evenly(4) {
            return Err(Ineligible::Other(format!("rows of {columns} elements, not a multiple of 4")));
        }
        let held = holding(&columns, 1024, &[1, 2, 4, 8])
            .ok_or_else(|| Ineligible::Other(format!("rows of {columns} elements, more than 8192")))?;
        contiguous(request.inputs)?;
        Ok(one_kernel(
            instance(softmax_held::KERNELS, &format!("softmax_held_{held}"))?,
            vec![Slot::Input(0), Slot::Output(0)],
            vec![ParamValue::Dim(columns)],
            Grid::Workgroups(rows),
            kernel_time(request.device, transfer_time(8.0 * upper(&request.outputs[0].elements()))),
        ))
    }
}

impl Candidate for Any {
    fn name(&self) -> &'static str {
        "softmax of any rows"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (rows, columns) = rows_and_columns(&request.inputs[0].ty);
        contiguous(request.inputs)?;
        Ok(one_kernel(
            instance(softmax_any::KERNELS, "softmax_any")?,
            vec![Slot::Input(0), Slot::Output(0)],
            vec![ParamValue::Dim(columns)],
            Grid::Workgroups(rows),
            kernel_time(request.device, transfer_time(16.0 * upper(&request.outputs[0].elements()))),
        ))
    }
}
