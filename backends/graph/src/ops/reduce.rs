//! `sum`, `mean` and `max` over an axis.

use trefoil_kernels::reduce::{max_columns, max_rows, sum_columns, sum_rows};

use super::support::{contiguous, expect_element, expect_inputs, instance, one_kernel, transfer_time, upper};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

/// What elements are reduced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; 0 of none.
    Sum,
    /// The largest; an axis that may be empty is an error.
    Max,
}

/// A reduction over one axis, which the result lacks.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    /// To what.
    pub reduction: Reduction,
    /// Over which axis.
    pub axis: usize,
}

impl Graph {
    /// The sum over `axes` (negative ones count from the last) of an `f32` tensor. With `keep` the axes stay, with extent 1.
    ///
    /// # Errors
    /// The tensor is not `f32`, has no such axis, or an axis is named twice.
    pub fn sum(&mut self, x: Tensor, axes: &[isize], keep: bool) -> Result<Tensor, GraphError> {
        self.reduce("sum", x, axes, keep, Reduction::Sum)
    }

    /// The largest element over `axes`, as [`Graph::sum`].
    ///
    /// # Errors
    /// As [`Graph::sum`]; or an axis may be empty.
    pub fn max_over(&mut self, x: Tensor, axes: &[isize], keep: bool) -> Result<Tensor, GraphError> {
        self.reduce("max_over", x, axes, keep, Reduction::Max)
    }

    fn reduce(
        &mut self,
        name: &'static str,
        x: Tensor,
        axes: &[isize],
        keep: bool,
        reduction: Reduction,
    ) -> Result<Tensor, GraphError> {
        let axes = self.axes(name, x, axes)?;
        let mut kept = self.type_of(x)?.shape.clone();
        let mut result = x;
        for axis in axes.iter().rev() {
            result = self.add_one(Reduce { reduction, axis: *axis }, &[result])?;
            kept[*axis] = Dim::from(1i64);
        }
        if keep { self.reshape(result, kept) } else { Ok(result) }
    }
}

impl Op for Reduce {
    fn name(&self) -> &'static str {
        match self.reduction {
            Reduction::Sum => "sum",
            Reduction::Max => "max",
        }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("axis", self.axis.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_element("x", &inputs[0], ElementType::F32)?;
        let mut shape = inputs[0].shape.clone();
        if self.axis >= shape.len() {
            let expected = format!("an axis of {}", inputs[0]);
            return Err(OpError::Attribute { attribute: "axis", given: self.axis.to_string(), expected });
        }
        let extent = shape.remove(self.axis);
        if self.reduction == Reduction::Max && extent.bounds().0 < 1 {
            let expected = format!("at least one element along axis {}", self.axis);
            return Err(OpError::Shape { input: "x", given: inputs[0].to_string(), expected });
        }
        Ok(vec![TensorType { element: ElementType::F32, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let shape = &inputs[0].shape;
        let n = shape[self.axis];
        let inner: usize = shape[self.axis + 1..].iter().product();
        let outer: usize = shape[..self.axis].iter().product();
        let mut values = Vec::with_capacity(outer * inner);
        for o in 0..outer {
            for i in 0..inner {
                let along = (0..n).map(|j| inputs[0].values[(o * n + j) * inner + i]);
                values.push(match self.reduction {
                    Reduction::Sum => along.sum(),
                    Reduction::Max => along.fold(f64::NEG_INFINITY, f64::max),
                });
            }
        }
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements()
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Axis(*self))])
    }
}

/// A workgroup a row along the last axis, an invocation an element along another.
#[derive(Debug)]
struct Axis(Reduce);

impl Candidate for Axis {
    fn name(&self) -> &'static str {
        "reduction of one axis"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request.inputs)?;
        let shape = &request.inputs[0].ty.shape;
        let n = ParamValue::Dim(shape[self.0.axis].clone());
        let inner: Dim = shape[self.0.axis + 1..].iter().cloned().product();
        let elements = request.outputs[0].elements();
        let sum = self.0.reduction == Reduction::Sum;
        let scale = sum.then_some(ParamValue::F32(1.0));
        let (kernels, name, mut params, grid) = match (inner.is(1), sum) {
            (true, true) => (sum_rows::KERNELS, "sum_rows", vec![n], Grid::Workgroups(elements)),
            (true, false) => (max_rows::KERNELS, "max_rows", vec![n], Grid::Workgroups(elements)),
            (false, true) => {
                (sum_columns::KERNELS, "sum_columns", vec![n, ParamValue::Dim(inner)], Grid::Invocations(elements))
            }
            (false, false) => {
                (max_columns::KERNELS, "max_columns", vec![n, ParamValue::Dim(inner)], Grid::Invocations(elements))
            }
        };
        params.extend(scale);
        let cost = transfer_time(4.0 * upper(&request.inputs[0].ty.elements()));
        Ok(one_kernel(instance(kernels, name)?, vec![Slot::Input(0), Slot::Output(0)], params, grid, cost))
    }
}
