//! Elements at places along an axis: what sorts of 64-bit types, and places in another order, are made of.

use trefoil_kernels::sort::kernels;

use super::super::support::{contiguous, expect_inputs, instance, kernel_time, transfer_time, upper};
use super::plan::{Rows, unsigned};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, KernelStep, Op, OpError, OpKind, ParamValue, Request,
    Slot, Step,
};
use crate::types::{Layout, TensorType};

/// The elements of `x` at places along an axis; of the places' shape. An op of the sorts alone: they give no place that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Take {
    axis: usize,
}

impl Graph {
    /// The elements of `x` at the places that a sort has found along an axis.
    pub(super) fn taken(&mut self, x: Tensor, places: Tensor, axis: usize) -> Result<Tensor, GraphError> {
        self.add_one(Take { axis }, &[x, places])
    }
}

impl Op for Take {
    fn name(&self) -> &'static str {
        "sorted_elements"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("axis", self.axis.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        Ok(vec![TensorType { element: inputs[0].element, shape: inputs[1].shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, places) = (&inputs[0], &inputs[1]);
        let inner: usize = x.shape[self.axis + 1..].iter().product();
        let (n, k) = (x.shape[self.axis], places.shape[self.axis]);
        let element =
            |(at, place): (usize, &f64)| x.values[(at / (k * inner) * n + *place as usize) * inner + at % inner];
        let values = places.values.iter().enumerate().map(element).collect();
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Way(self.axis))])
    }
}

/// One invocation an element.
#[derive(Debug)]
struct Way(usize);

impl Candidate for Way {
    fn name(&self) -> &'static str {
        "elements at places"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let [x, places] = request.inputs else { return Err(Ineligible::Other("two inputs".to_owned())) };
        let output = &request.outputs[0];
        let results = Layout::contiguous(&output.shape).strides;
        let rows = Rows::new(&output.shape, self.0, [&x.layout.strides, &results, &places.layout.strides]);
        let Ok(rows) = rows else {
            contiguous(request.inputs)?;
            return Err(Ineligible::Other("its rows are spread over too many axes".to_owned()));
        };
        let k = output.shape[self.0].clone();
        let mut params =
            vec![ParamValue::Dims(vec![k.clone(), Dim::from(0i64)]), ParamValue::Dims(rows.steps.to_vec())];
        params.extend(rows.params(&[0, 1, 2]));
        params.push(ParamValue::Dim(rows.count.clone()));
        params.extend([false, true, false].map(ParamValue::Bool));
        let kernel = instance(&kernels(), &format!("sort_take_{}", unsigned(x.ty.element)))?;
        let bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Empty, Slot::Output(0), Slot::Scratch(0)];
        let grid = Grid::Invocations(rows.count * k);
        let step = Step::Kernel(KernelStep { kernel, bindings, params, grid });
        let cost = kernel_time(request.device, transfer_time(3.0 * upper(&output.bytes())));
        // A binding that is written holds something.
        Ok(Implementation { steps: vec![step], scratch: vec![Dim::from(8i64)], cost })
    }
}
