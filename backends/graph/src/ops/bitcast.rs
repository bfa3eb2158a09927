//! The bits of elements taken as another type.

use crate::data::to_f64;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind, View};
use crate::types::{ElementType, Layout, TensorType};

/// The same bits as elements of another type of equal size. It is a view: no kernel, and no bit changes, those of NaNs neither. Bools have no bits of
/// their own; `cast` makes them 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bitcast {
    /// What the elements are.
    pub from: ElementType,
    /// What they are taken for.
    pub to: ElementType,
}

impl Bitcast {
    /// The types that the bits of this one can be taken for.
    fn fits(self, element: ElementType) -> bool {
        let bools = self.to == ElementType::Bool || element == ElementType::Bool;
        element == self.to || !bools && element.bytes() == self.to.bytes()
    }
}

impl Op for Bitcast {
    fn name(&self) -> &'static str {
        "bitcast"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("from", self.from.to_string()), ("to", self.to.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let [x] = inputs else { return Err(OpError::InputCount { given: inputs.len(), expected: 1 }) };
        if x.element != self.from || !self.fits(x.element) {
            let expected = if x.element == self.from {
                let list = ElementType::list(|element| self.fits(element));
                format!("{list}, to take its bits for {} (`cast` converts values)", self.to)
            } else {
                format!("{}, as the op says", self.from)
            };
            return Err(OpError::ElementType { input: "x", given: x.element, expected });
        }
        Ok(vec![TensorType { element: self.to, shape: x.shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let values = inputs[0].values.iter().flat_map(|value| {
            let bits = self.from.bits(*value).to_le_bytes();
            to_f64(self.to, &bits[..self.to.bytes() as usize])
        });
        vec![HostTensor { shape: outputs[0].clone(), values: values.collect() }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::View(self)
    }
}

impl View for Bitcast {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        Some(layout.clone())
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// The bits of elements taken for another type of equal size, such as `f32` for `u32`, or `bf16` for `i16`.
    ///
    /// # Errors
    /// The types differ in size, or one is bool.
    pub fn bitcast(&mut self, x: Tensor, to: ElementType) -> Result<Tensor, GraphError> {
        let from = self.operand("bitcast", x)?.element;
        self.add_one(Bitcast { from, to }, &[x])
    }
}
