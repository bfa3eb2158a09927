//! `layer_norm(x, residual?, gamma?, beta?, eps)`: (v - mean(v)) / sqrt(variance(v) + eps) * gamma + beta for v = x + residual, along the last axis.

#[cfg(feature = "cpu")]
mod host;

use trefoil_kernels::layer_norm::{layer_norm_any, layer_norm_held};

use super::softmax::rows_and_columns;
use super::support::{
    contiguous, expect_element, expect_inputs, expect_shape, holding, instance, kernel_time, one_kernel, transfer_time,
    upper,
};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

/// Layer normalisation along the last axis. Which optional operands there are is said here; those that are there are the op's inputs, in
/// the order x, residual, gamma, beta.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether a tensor of x's shape is added first.
    pub residual: bool,
    /// Whether the result is scaled, column by column.
    pub gamma: bool,
    /// Whether the result is shifted, column by column.
    pub beta: bool,
}

/// The optional operands of [`Graph::layer_norm`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LayerNormOperands {
    /// Added to x first; of x's shape.
    pub residual: Option<Tensor>,
    /// Scales the result; one for each column.
    pub gamma: Option<Tensor>,
    /// Shifts the result; one for each column.
    pub beta: Option<Tensor>,
}

impl Graph {
    /// Layer normalisation of an `f32` tensor along its last axis.
    ///
    /// # Errors
    /// A tensor is not `f32`, or an operand has another shape than it should.
    pub fn layer_norm(&mut self, x: Tensor, epsilon: f32, operands: LayerNormOperands) -> Result<Tensor, GraphError> {
        let op = LayerNorm {
            epsilon,
            residual: operands.residual.is_some(),
            gamma: operands.gamma.is_some(),
            beta: operands.beta.is_some(),
        };
        let inputs: Vec<_> =
            [Some(x), operands.residual, operands.gamma, operands.beta].into_iter().flatten().collect();
        self.add_one(op, &inputs)
    }
}

impl LayerNorm {
    /// Where each optional operand stands among the inputs.
    fn slots(&self) -> [Slot; 3] {
        let mut next = 1;
        [self.residual, self.gamma, self.beta].map(|present| {
            if !present {
                return Slot::Empty;
            }
            next += 1;
            Slot::Input(next - 1)
        })
    }

    fn position(slot: &Slot) -> Option<usize> {
        match slot {
            Slot::Input(position) => Some(*position),
            Slot::Output(_) | Slot::Scratch(_) | Slot::Empty => None,
        }
    }
}

impl Op for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("epsilon", format!("{:?}", self.epsilon)),
            ("residual", self.residual.to_string()),
            ("gamma", self.gamma.to_string()),
            ("beta", self.beta.to_string()),
        ]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = 1 + usize::from(self.residual) + usize::from(self.gamma) + usize::from(self.beta);
        expect_inputs(inputs, count..=count)?;
        let x = &inputs[0];
        expect_element("x", x, ElementType::F32)?;
        let Some(columns) = x.shape.last() else {
            return Err(OpError::Shape { input: "x", given: x.to_string(), expected: "an axis".to_owned() });
        };
        let [residual, gamma, beta] = self.slots();
        for (name, slot, shape) in [
            ("residual", residual, x.shape.as_slice()),
            ("gamma", gamma, std::slice::from_ref(columns)),
            ("beta", beta, std::slice::from_ref(columns)),
        ] {
            if let Some(position) = Self::position(&slot) {
                expect_element(name, &inputs[position], ElementType::F32)?;
                expect_shape(name, &inputs[position], shape)?;
            }
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        let mut y = inputs[0].clone();
        let columns = y.shape.last().copied().unwrap_or(1).max(1);
        let [residual, gamma, beta] = self.slots().map(|slot| Self::position(&slot).map(|at| &inputs[at].values));
        if let Some(residual) = residual {
            y.values.iter_mut().zip(residual).for_each(|(y, r)| *y += r);
        }
        let count = f64::from(u32::try_from(columns).unwrap_or(u32::MAX));
        for row in y.values.chunks_mut(columns) {
            let mean = row.iter().sum::<f64>() / count;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let factor = 1.0 / (variance + f64::from(self.epsilon)).sqrt();
            for (column, x) in row.iter_mut().enumerate() {
                *x = (*x - mean) * factor;
                if let Some(gamma) = gamma {
                    *x *= gamma[column];
                }
                if let Some(beta) = beta {
                    *x += beta[column];
                }
            }
        }
        vec![y]
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> Dim {
        inputs[0].elements() * 8
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![
            Box::new(Held(*self)),
            Box::new(Any(*self)),
            #[cfg(feature = "cpu")]
            Box::new(host::Rows(*self)),
        ])
    }
}

/// Rows held in registers.
#[derive(Debug)]
struct Held(LayerNorm);

/// Rows of any length.
#[derive(Debug)]
struct Any(LayerNorm);

fn bindings(op: &LayerNorm) -> Vec<Slot> {
    let [residual, gamma, beta] = op.slots();
    vec![Slot::Input(0), residual, gamma, beta, Slot::Output(0)]
}

impl Candidate for Held {
    fn name(&self) -> &'static str {
        "layer_norm held in registers"
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
            instance(layer_norm_held::KERNELS, &format!("layer_norm_held_{held}_{}", self.0.residual))?,
            bindings(&self.0),
            vec![ParamValue::Dim(columns), ParamValue::F32(self.0.epsilon)],
            Grid::Workgroups(rows),
            kernel_time(request.device, transfer_time(8.0 * upper(&request.outputs[0].elements()))),
        ))
    }
}

impl Candidate for Any {
    fn name(&self) -> &'static str {
        "layer_norm of any rows"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        let (rows, columns) = rows_and_columns(&request.inputs[0].ty);
        contiguous(request.inputs)?;
        Ok(one_kernel(
            instance(layer_norm_any::KERNELS, "layer_norm_any")?,
            bindings(&self.0),
            vec![ParamValue::Dim(columns), ParamValue::F32(self.0.epsilon)],
            Grid::Workgroups(rows),
            kernel_time(request.device, transfer_time(24.0 * upper(&request.outputs[0].elements()))),
        ))
    }
}
