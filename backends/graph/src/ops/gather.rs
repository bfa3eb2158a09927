//! `embedding(table, indices)`: rows of a table by index; an index out of range reads zeros.

use trefoil_kernels::gather::gather_rows;

use super::support::{contiguous, expect_inputs, instance, one_kernel, transfer_time, upper};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{
    Candidate, Grid, HostTensor, Implementation, Ineligible, Op, OpError, OpKind, ParamValue, Request, Slot,
};
use crate::types::{ElementType, TensorType};

/// Rows of a `[rows, columns]` table (`f32` or `f16`) by indices (`i32` or `u32`) of any shape; the result is `f32`, of the indices' shape and then the columns.
#[derive(Clone, Copy, Debug)]
pub struct Embedding;

impl Graph {
    /// Rows of `table` by `indices`; the result has the indices' shape and then the table's columns.
    ///
    /// # Errors
    /// The table is not a matrix of floats, or the indices are not integers.
    pub fn embedding(&mut self, table: Tensor, indices: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(Embedding, &[table, indices])
    }
}

impl Op for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (table, indices) = (&inputs[0], &inputs[1]);
        if !matches!(table.element, ElementType::F32 | ElementType::F16) {
            return Err(OpError::ElementType {
                input: "table",
                given: table.element,
                expected: "f32 or f16; `cast` converts".to_owned(),
            });
        }
        if !matches!(indices.element, ElementType::I32 | ElementType::U32) {
            let expected = "i32 or u32; `cast` converts".to_owned();
            return Err(OpError::ElementType { input: "indices", given: indices.element, expected });
        }
        let [_, columns] = table.shape.as_slice() else {
            let expected = "a matrix of rows".to_owned();
            return Err(OpError::Shape { input: "table", given: table.to_string(), expected });
        };
        let shape = indices.shape.iter().chain([columns]).cloned().collect();
        Ok(vec![TensorType { element: ElementType::F32, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (rows, columns) = (inputs[0].shape[0], inputs[0].shape[1]);
        let mut values = Vec::with_capacity(inputs[1].values.len() * columns);
        for index in &inputs[1].values {
            let row = (0..rows).find(|row| f64::from(u32::try_from(*row).unwrap_or(u32::MAX)) == *index);
            match row {
                Some(row) => values.extend_from_slice(&inputs[0].values[row * columns..(row + 1) * columns]),
                None => values.extend(std::iter::repeat_n(0.0, columns)),
            }
        }
        vec![HostTensor { shape: outputs[0].clone(), values }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Kernels(vec![Box::new(Rows)])
    }
}

/// One invocation an element.
#[derive(Debug)]
struct Rows;

impl Candidate for Rows {
    fn name(&self) -> &'static str {
        "gather of rows"
    }

    fn implement(&self, request: &Request<'_>) -> Result<Implementation, Ineligible> {
        contiguous(request.inputs)?;
        let table = &request.inputs[0].ty;
        let elements = request.outputs[0].elements();
        Ok(one_kernel(
            instance(gather_rows::KERNELS, &format!("gather_rows_{}", table.element))?,
            vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)],
            vec![ParamValue::Dim(table.shape[0].clone()), ParamValue::Dim(table.shape[1].clone())],
            Grid::Invocations(elements.clone()),
            transfer_time(8.0 * upper(&elements)),
        ))
    }
}
