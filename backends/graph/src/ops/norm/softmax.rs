//! Softmax and its logarithm.

use trefoil_dsl::device::{DeviceKind, Properties};
use trefoil_kernels::norm::kernels;

use super::plan::{Held, Longest, Manner, Rows};
use super::{expect_axes, rows_of};
use crate::dim::Dim;
use crate::op::{Candidate, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot};
use crate::ops::support::{expect_inputs, expect_one_of, instance, kernel_time, one_kernel, transfer_time, upper};
use crate::types::{ElementType, TensorType};

/// exp(x - max x) / Σ exp(x - max x) over some axes together, or the logarithm of that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Softmax {
    /// Over which axes, in ascending order.
    pub axes: Vec<usize>,
    /// Whether the result is the logarithm: x - max x - ln Σ exp(x - max x).
    pub logarithm: bool,
}

impl Op for Softmax {
    fn name(&self) -> &'static str {
        if self.logarithm { "log_softmax" } else { "softmax" }
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("axes", format!("{:?}", self.axes))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        expect_one_of("x", &inputs[0], ElementType::is_float)?;
        expect_axes(&inputs[0], &self.axes)?;
        Ok(vec![inputs[0].clone()])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let mut y = inputs[0].clone();
        for row in rows_of(&y.shape, &self.axes) {
            let largest = row.iter().map(|at| y.values[*at]).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|at| (y.values[*at] - largest).exp()).sum();
            for at in row {
                let distance = y.values[at] - largest;
                y.values[at] = if self.logarithm { distance - sum.ln() } else { distance.exp() / sum };
            }
        }
        vec![y]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 5
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            Box::new(Registers(self)),
            Box::new(Strided(self)),
            #[cfg(feature = "cpu")]
            Box::new(super::host::SoftmaxOnHost(self)),
        ])
    }
}

/// Vulkan's kernels are the slower, the more invocations meet for a maximum and a sum.
fn manner(device: &Properties) -> Manner {
    let middle = if device.kind == DeviceKind::Vulkan { 8 } else { 4 };
    Manner { longest: Longest::on(device, Longest::Twice), middle }
}

/// Rows that follow on each other, held in registers.
#[derive(Debug)]
struct Registers<'a>(&'a Softmax);

/// Any rows.
#[derive(Debug)]
struct Strided<'a>(&'a Softmax);

impl Candidate for Registers<'_> {
    fn name(&self) -> &'static str {
        "softmax held in registers"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let x = &request.inputs[0];
        if x.ty.element == ElementType::F64 {
            return Err(Ineligible::Other("doubles are not held four at a time".to_owned()));
        }
        let rows = Rows::of(x, &self.0.axes, None);
        let plain = rows.in_quads()?;
        let held = Held::of(x.ty.element, &plain.elements, manner(request.device));
        let Held { quads, bits, .. } = held;
        let kernel = held.kernel("softmax", x.ty.element);
        let [levels, extents, strides, _] = plain.starts;
        let kernel = instance(&kernels(), &format!("{kernel}_{}_{quads}", x.ty.element))?;
        Ok(one_kernel(
            held.specialised(kernel, &plain.rows, &plain.elements)?,
            vec![Slot::Input(0), Slot::Output(0)],
            vec![
                ParamValue::Dims(vec![plain.rows.clone(), plain.elements]),
                ParamValue::Dim(Dim::from(bits)),
                levels,
                extents,
                strides,
                ParamValue::Bool(self.0.logarithm),
            ],
            held.grid(&plain.rows),
            kernel_time(request.device, transfer_time(2.0 * upper(&x.ty.bytes()))),
        ))
    }

    fn passes(&self, request: &Request<'_>, _: usize) -> Option<u32> {
        let x = &request.inputs[0];
        let elements = Rows::of(x, &self.0.axes, None).in_quads().ok()?.elements;
        let held = Held::of(x.ty.element, &elements, manner(request.device));
        Some(if held.is_all_of(&elements) { 1 } else { 2 })
    }
}

impl Candidate for Strided<'_> {
    fn name(&self) -> &'static str {
        "softmax of any strides"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let x = &request.inputs[0];
        let any = Rows::of(x, &self.0.axes, None).of_any_strides()?;
        let [levels, row_extents, extents, x_rows, x_strides, y_rows, y_strides, _, _] = any.places;
        Ok(one_kernel(
            instance(&kernels(), &format!("softmax_strided_{}", x.ty.element))?,
            vec![Slot::Input(0), Slot::Output(0)],
            vec![
                ParamValue::Dims(vec![any.rows, any.elements]),
                ParamValue::Dim(Dim::from(any.along)),
                ParamValue::Bool(any.beside),
                levels,
                row_extents,
                extents,
                x_rows,
                x_strides,
                y_rows,
                y_strides,
                ParamValue::Bool(self.0.logarithm),
            ],
            any.grid,
            kernel_time(request.device, transfer_time(3.0 * upper(&x.ty.bytes()))),
        ))
    }

    fn passes(&self, _: &Request<'_>, _: usize) -> Option<u32> {
        Some(2)
    }
}
