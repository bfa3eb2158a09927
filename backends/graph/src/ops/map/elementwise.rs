//! The op of every function of elements.

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{Handle, Local};

use super::functions::{Attribute, Function};
use super::term::Sketch;
use super::{Value, each, element_error, elements, map_shape};
use crate::dim::Dim;
use crate::eager::{Eager, EagerTensor};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Map, Op, OpError, OpKind};
use crate::ops::support::expect_inputs;
use crate::types::{ElementType, TensorType};

/// A function of elements with its attributes.
#[derive(Clone, Debug)]
pub struct Elementwise {
    /// Which.
    pub function: &'static Function,
    /// The type of every input, in which integers wrap and floats are rounded.
    pub element: ElementType,
    /// The values of the function's attributes, in their order.
    pub attributes: Vec<f32>,
}

impl Elementwise {
    fn check(&self, attribute: &Attribute, index: usize) -> Result<(), OpError> {
        let value = self.attributes[index];
        let broken = attribute.rule.broken_by(value, &self.attributes[..index]).or_else(|| {
            let fits = !self.element.is_integer() || f64::from(value) == self.element.wrapped(value as i128);
            (!fits).then(|| format!("a value of {}, the type of the elements", self.element))
        });
        broken.map_or(Ok(()), |expected| {
            Err(OpError::Attribute { attribute: attribute.name, given: value.to_string(), expected })
        })
    }
}

impl Op for Elementwise {
    fn name(&self) -> &'static str {
        self.function.name
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let own = self.function.attributes.iter().zip(&self.attributes);
        let own = own.map(|(attribute, value)| (attribute.name, format!("{value:?}")));
        std::iter::once(("element", self.element.to_string())).chain(own).collect()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let Function { inputs: names, takes, attributes, .. } = self.function;
        expect_inputs(inputs, names.len()..=names.len())?;
        for (name, input) in names.iter().zip(inputs) {
            if !takes.allows(input.element) {
                return Err(element_error(name, input.element, takes.words()));
            }
            if input.element != self.element {
                let expected = format!("{0}, as `{1}` is; `cast` to {0} converts", self.element, names[0]);
                return Err(element_error(name, input.element, expected));
            }
        }
        if self.attributes.len() != attributes.len() {
            return Err(OpError::Attribute {
                attribute: "attributes",
                given: format!("{:?}", self.attributes),
                expected: format!("{} numbers", attributes.len()),
            });
        }
        for (index, attribute) in attributes.iter().enumerate() {
            self.check(attribute, index)?;
        }
        let shape = map_shape(names, inputs)?;
        let element = if self.function.is_test { ElementType::Bool } else { self.element };
        Ok(vec![TensorType { element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let function = self.function;
        let real = |arguments: &[f64]| function.reference.and_then(|of| of(arguments, &self.attributes));
        let whole = |arguments: &[f64]| {
            let of = function.integers.filter(|_| self.element.is_integer())?;
            let arguments: Vec<i128> = arguments.iter().map(|argument| *argument as i128).collect();
            Some(self.element.wrapped(of(self.element.scalar().bits(), &arguments, &self.attributes)?))
        };
        each(inputs, &outputs[0], |arguments| {
            // Every row has one of them for each type that it takes.
            self.element.rounded(whole(arguments).or_else(|| real(arguments)).unwrap_or(f64::NAN))
        })
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> Dim {
        elements(outputs)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Elementwise {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        let first = elements.first().map(|first| builder.local(*first));
        let sketch = Sketch::new(first.and_then(|first| builder.type_of(first).scalar()), self.element);
        let terms: Vec<_> = elements.iter().map(|element| sketch.element(*element)).collect();
        match (elements, (self.function.body)(&terms, &self.attributes)) {
            ([like, ..], Some(root)) => sketch.write(root, *like, builder),
            // `infer` has counted both inputs and attributes.
            _ => builder.f32(f32::NAN),
        }
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Graph {
    /// A function of elements, such as every method of a function's name adds; attributes in the order of the definition.
    ///
    /// # Errors
    /// The number of inputs or attributes is another, the function does not take elements of this type, several inputs differ in type or do not
    /// broadcast, or an attribute is impossible.
    pub fn elementwise(
        &mut self,
        function: &'static Function,
        inputs: &[Tensor],
        attributes: &[f32],
    ) -> Result<Tensor, GraphError> {
        let element = match inputs {
            [first, ..] => self.operand(function.name, *first)?.element,
            [] => ElementType::F32,
        };
        self.add_one(Elementwise { function, element, attributes: attributes.to_vec() }, inputs)
    }
}

impl Eager {
    /// [`Graph::elementwise`] of tensors on the device: shapes, types and errors are its own.
    ///
    /// # Errors
    /// As for graphs; a tensor of another `Eager` or one that was never computed; no memory, or no way to compute it on the device.
    pub fn elementwise(
        &self,
        function: &'static Function,
        inputs: &[&EagerTensor],
        attributes: &[f32],
    ) -> crate::error::Result<EagerTensor> {
        // Not derived from the graph's method, so that errors name the function.
        let mut call = self.call(function.name);
        let names = function.inputs.iter().copied().chain(std::iter::repeat("input"));
        let inputs: Vec<_> = inputs.iter().zip(names).map(|(input, name)| call.operand(name, input)).collect();
        call.attribute(attributes);
        call.run(|graph| graph.elementwise(function, &inputs, attributes))
    }
}
