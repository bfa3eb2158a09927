//! Maps: one output element from the input elements at the same position, with NumPy's broadcasting.
//!
//! Most are functions of elements of one type: each is one row of a table (`rows`), with its formula, its reference, the types that it takes and its attributes; the macro
//! `functions!` makes the definition ([`Function`]) and the method of [`crate::Graph`] from it, and [`Elementwise`] is the op of all of them. A row's formula is
//! written with Rust's operators (`term`), and works on scalars and, lane by lane, on vectors alike: constants are made like the values that they meet.
//! 16-bit floats are computed in `f32`, some by shorter formulas (`halves`).

mod accuracy;
mod body;
mod elementwise;
mod functions;
mod halves;
mod methods;
mod rows;
mod term;

use trefoil_codegen::ir::builder::FunctionBuilder;
use trefoil_codegen::ir::{Expression, Handle, Local};

pub use self::accuracy::Accuracy;
use self::body::cast;
pub use self::elementwise::Elementwise;
use self::functions::Takes;
pub use self::functions::{Attribute, Function, Rule};
use crate::dim::Dim;
use crate::op::{HostTensor, Map, Op, OpError, OpKind};
use crate::ops::support::{apart, expect_inputs};
use crate::types::{ElementType, Shape, TensorType, broadcast};

type Value = Handle<Expression>;

/// `accept` where the condition holds, else `reject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Where;

/// Elements converted to another type:
///
/// * floats to integers toward zero and saturating at the ends of the type; a NaN is 0;
/// * integers to each other by their bits: cut off, or extended by the source's sign;
/// * anything to bool by comparison with zero: a NaN is true; bool to 0 and 1;
/// * to `f32` and `f64` with one rounding to the nearest, ties to even;
/// * to `f16` and `bf16` by way of `f32`, each time to the nearest, ties to even. What `f32` holds exactly (`f16`, `bf16`, integers of up to 24 bits)
///   is rounded once, `f64` and larger integers twice.
///
/// [`Graph::bitcast`](crate::Graph::bitcast) takes the bits as they are instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// What they are.
    pub from: ElementType,
    /// What they become.
    pub to: ElementType,
}

/// The same elements, one after the other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contiguous;

/// The shape of a map of these inputs.
fn map_shape(names: &[&'static str], inputs: &[TensorType]) -> Result<Shape, OpError> {
    broadcast(inputs.iter().map(|input| input.shape.as_slice())).map_err(|(axis, known, extent)| {
        // The input at fault is the first that does not fit those before it.
        let at = (1..inputs.len())
            .find(|end| broadcast(inputs[..=*end].iter().map(|input| input.shape.as_slice())).is_err())
            .unwrap_or(0);
        let (wanted, other) = (apart(&known, &extent), apart(&extent, &known));
        OpError::Shape {
            input: names[at],
            given: inputs[at].to_string(),
            expected: format!("an extent that broadcasts with {wanted}, not {other}, on axis -{}", axis + 1),
        }
    })
}

fn element_error(input: &'static str, given: ElementType, expected: impl Into<String>) -> OpError {
    OpError::ElementType { input, given, expected: expected.into() }
}

fn elements(outputs: &[TensorType]) -> Dim {
    outputs.iter().map(TensorType::elements).sum()
}

/// The reference of a map: `f` at each position, with broadcasting worked out by division.
fn each(inputs: &[HostTensor], shape: &[usize], mut f: impl FnMut(&[f64]) -> f64) -> Vec<HostTensor> {
    let total: usize = shape.iter().product();
    let mut arguments = vec![0.0; inputs.len()];
    let values = (0..total)
        .map(|linear| {
            for (argument, input) in arguments.iter_mut().zip(inputs) {
                let (mut rest, mut at, mut stride) = (linear, 0, 1);
                for back in 1..=shape.len() {
                    let coordinate = rest % shape[shape.len() - back];
                    rest /= shape[shape.len() - back];
                    if back <= input.shape.len() {
                        let extent = input.shape[input.shape.len() - back];
                        at += if extent == 1 { 0 } else { coordinate } * stride;
                        stride *= extent;
                    }
                }
                *argument = input.values[at];
            }
            f(&arguments)
        })
        .collect();
    vec![HostTensor { shape: shape.to_vec(), values }]
}

impl Op for Where {
    fn name(&self) -> &'static str {
        "where"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 3..=3)?;
        if inputs[0].element != ElementType::Bool {
            return Err(element_error("condition", inputs[0].element, Takes::Bools.words()));
        }
        if inputs[2].element != inputs[1].element {
            let expected = format!("{0}, as `accept` is; `cast` to {0} converts", inputs[1].element);
            return Err(element_error("reject", inputs[2].element, expected));
        }
        let shape = map_shape(&["condition", "accept", "reject"], inputs)?;
        Ok(vec![TensorType { element: inputs[1].element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(inputs, &outputs[0], |arguments| if arguments[0] != 0.0 { arguments[1] } else { arguments[2] })
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Where {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        let (condition, accept, reject) =
            (builder.local(elements[0]), builder.local(elements[1]), builder.local(elements[2]));
        builder.select(condition, accept, reject)
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("from", self.from.to_string()), ("to", self.to.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        if inputs[0].element != self.from {
            return Err(element_error("x", inputs[0].element, format!("{}, as the op says", self.from)));
        }
        Ok(vec![TensorType { element: self.to, shape: inputs[0].shape.clone() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let [low, high] = self.to.scalar().limits().map(|limit| limit as f64);
        each(inputs, &outputs[0], |arguments| {
            let x = arguments[0];
            if self.to == ElementType::Bool {
                f64::from(u8::from(x != 0.0))
            } else if self.to.is_float() {
                self.to.rounded(x)
            } else if !self.from.is_float() {
                self.to.wrapped(x as i128)
            } else if x.is_nan() {
                0.0
            } else {
                // Integers have no negative zero.
                x.trunc().clamp(low, high) + 0.0
            }
        })
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Cast {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        cast(builder, self.to, elements[0])
    }

    fn lanewise(&self) -> bool {
        true
    }
}

impl Op for Contiguous {
    fn name(&self) -> &'static str {
        "contiguous"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        inputs.to_vec()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Map(self)
    }
}

impl Map for Contiguous {
    fn body(&self, builder: &mut FunctionBuilder<'_>, elements: &[Handle<Local>]) -> Value {
        builder.local(elements[0])
    }

    fn lanewise(&self) -> bool {
        true
    }
}
