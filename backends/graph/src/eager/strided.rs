//! How an operand that is a view stands in the graph of a call: as its memory, and one op that says where the elements lie.

use crate::dim::Dim;
use crate::op::{HostTensor, Op, OpError, OpKind, View};
use crate::types::{Layout, TensorType};

/// Elements of a tensor of one axis at the places that strides say: all views of it together, whatever ops they were.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Strided {
    /// Element type and shape as the reader sees them.
    pub ty: TensorType,
    /// Where they lie.
    pub layout: Layout,
}

impl Op for Strided {
    fn name(&self) -> &'static str {
        "strided"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let Layout { offset, strides } = &self.layout;
        vec![("type", self.ty.to_string()), ("offset", offset.to_string()), ("strides", format!("{strides:?}"))]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        match inputs {
            [x] if x.rank() == 1 && x.element == self.ty.element => Ok(vec![self.ty.clone()]),
            [x] => {
                let expected = format!("elements of {} along one axis", self.ty.element);
                Err(OpError::Shape { input: "x", given: x.to_string(), expected })
            }
            _ => Err(OpError::InputCount { given: inputs.len(), expected: 1 }),
        }
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let shape = &outputs[0];
        let strides: Vec<usize> = self.layout.strides.iter().map(Dim::number).collect();
        let at = |linear: usize| {
            let (mut rest, mut at) = (linear, self.layout.offset.number());
            for (extent, stride) in shape.iter().zip(&strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            inputs[0].values.get(at).copied().unwrap_or(0.0)
        };
        vec![HostTensor { shape: shape.clone(), values: (0..shape.iter().product()).map(at).collect() }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::View(self)
    }
}

impl View for Strided {
    fn layout(&self, input: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        layout.is_contiguous(&input.shape).then(|| self.layout.clone())
    }
}
