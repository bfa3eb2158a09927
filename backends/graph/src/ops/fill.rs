//! Tensors of one value.

use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::types::{ElementType, Shape, TensorType};

/// A tensor whose elements are all `value`. It takes no memory where maps read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// The value, rounded to the element type when used.
    pub value: f64,
    /// Element type and shape.
    pub ty: TensorType,
}

impl Op for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("value", format!("{:?}", self.value)), ("type", self.ty.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        if !inputs.is_empty() {
            return Err(OpError::InputCount { given: inputs.len(), expected: 0 });
        }
        let (low, high) = match self.ty.element {
            ElementType::F32 | ElementType::F16 => return Ok(vec![self.ty.clone()]),
            ElementType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            ElementType::U32 => (0.0, f64::from(u32::MAX)),
            ElementType::Bool => (0.0, 1.0),
        };
        if self.value.fract() != 0.0 || self.value < low || self.value > high {
            return Err(OpError::Attribute {
                attribute: "value",
                given: self.value.to_string(),
                expected: format!("an integer from {low} to {high}, because the tensor is {}", self.ty.element),
            });
        }
        Ok(vec![self.ty.clone()])
    }

    fn reference(&self, _: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let round = |value: f64| match self.ty.element {
            ElementType::F32 => f64::from(value as f32),
            ElementType::F16 => half::f16::from_f64(value).to_f64(),
            ElementType::I32 | ElementType::U32 | ElementType::Bool => value,
        };
        let shape = outputs[0].clone();
        let count = shape.iter().product();
        vec![HostTensor { shape, values: vec![round(self.value); count] }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Fill(self.value)
    }
}

impl Graph {
    /// A tensor whose elements are all `value`.
    ///
    /// # Errors
    /// The element type does not hold the value.
    pub fn fill(&mut self, value: f64, element: ElementType, shape: impl Into<Shape>) -> Result<Tensor, GraphError> {
        self.add_one(Fill { value, ty: TensorType { element, shape: shape.into() } }, &[])
    }

    /// A tensor of no axes, which broadcasts to any shape.
    ///
    /// # Errors
    /// As [`Graph::fill`].
    pub fn scalar(&mut self, value: f64, element: ElementType) -> Result<Tensor, GraphError> {
        self.fill(value, element, Shape::new())
    }
}
