//! Tensors of one value.

use std::fmt;

use trefoil_codegen::ir::{Literal, Scalar};

use crate::data::to_f64;
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::ops::support::expect_extents;
use crate::types::{ElementType, IntoShape, Shape, TensorType};

/// The largest integer up to which every integer is an `f64`: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as Rust has it: integers of every type are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    Float(f64),
    /// An integer, or a bool as 0 or 1.
    Integer(i128),
}

macro_rules! numbers {
    ($($ty:ty => $variant:ident;)*) => {
        $(impl From<$ty> for Number {
            fn from(value: $ty) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

numbers! {
    half::f16 => Float;
    half::bf16 => Float;
    f32 => Float;
    f64 => Float;
    i8 => Integer;
    u8 => Integer;
    i16 => Integer;
    u16 => Integer;
    i32 => Integer;
    u32 => Integer;
    i64 => Integer;
    u64 => Integer;
    bool => Integer;
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        // No target has more than 64 bits of it.
        Self::Integer(value as i128)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Integer(value) => write!(f, "{value}"),
        }
    }
}

impl Number {
    /// The bits of an element of that type: the nearest float, ties to even; otherwise the number itself, or `None` if the type does not
    /// have it, or if it is a float so large that it may have been another integer once.
    pub(crate) fn bits(self, element: ElementType) -> Option<u64> {
        let scalar = element.scalar();
        let whole = match self {
            Self::Integer(value) => value,
            Self::Float(value) if element.is_float() => return Literal::float(scalar, value).map(Literal::bits),
            Self::Float(value) if value.fract() == 0.0 && value.abs() <= EXACT => value as i128,
            Self::Float(_) => return None,
        };
        match scalar {
            Scalar::Bool => u64::try_from(whole).ok().filter(|bit| *bit <= 1),
            Scalar::F32 => Some(u64::from((whole as f32).to_bits())),
            Scalar::F64 => Some((whole as f64).to_bits()),
            _ if element.is_float() => Literal::float(scalar, odd(whole)).map(Literal::bits),
            _ => Literal::exact_integer(scalar, whole).map(Literal::bits),
        }
    }
}

/// An integer as an `f64` that rounds to a 16-bit float as the integer itself does: what does not fit leaves an odd last digit.
fn odd(whole: i128) -> f64 {
    let nearest = whole as f64;
    let error = whole - nearest as i128;
    if error == 0 || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The neighbour on the other side of the integer is odd.
    let away = (error > 0) == (whole > 0);
    f64::from_bits(if away { nearest.to_bits() + 1 } else { nearest.to_bits() - 1 })
}

/// A tensor whose elements are all `value`. It takes no memory where maps read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fill {
    /// The value, rounded once to the element type if that is a float type; otherwise one that the type has.
    pub value: Number,
    /// Element type and shape.
    pub ty: TensorType,
}

impl Op for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("value", self.value.to_string()), ("type", self.ty.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        if !inputs.is_empty() {
            return Err(OpError::InputCount { given: inputs.len(), expected: 0 });
        }
        expect_extents(&self.ty.shape)?;
        let element = self.ty.element;
        if self.value.bits(element).is_some() {
            return Ok(vec![self.ty.clone()]);
        }
        let [low, high] = if element == ElementType::Bool { [0, 1] } else { element.scalar().limits() };
        let fits = |value: f64| value.fract() == 0.0 && value >= low as f64 && value <= high as f64;
        let expected = match self.value {
            Number::Float(value) if fits(value) => format!(
                "an integer type of Rust, such as `{value:.0}_i64`, because the tensor is {element} and integers above 2^53 are rounded when they become floats"
            ),
            _ => format!("an integer from {low} to {high}, because the tensor is {element}"),
        };
        Err(OpError::Attribute { attribute: "value", given: self.value.to_string(), expected })
    }

    fn reference(&self, _: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let bits = self.value.bits(self.ty.element).unwrap_or(0).to_le_bytes();
        let one = to_f64(self.ty.element, &bits[..self.ty.element.bytes() as usize]);
        let shape = outputs[0].clone();
        let count = shape.iter().product();
        vec![HostTensor { shape, values: one.repeat(count) }]
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        // A fill whose type lacks the value is in no graph.
        OpKind::Fill(self.value.bits(self.ty.element).unwrap_or(0))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// A tensor whose elements are all `value`.
    ///
    /// # Errors
    /// The element type does not hold the value.
    pub fn fill(
        &mut self,
        value: impl Into<Number>,
        element: ElementType,
        shape: impl IntoShape,
    ) -> Result<Tensor, GraphError> {
        self.add_one(Fill { value: value.into(), ty: TensorType { element, shape: shape.into_shape() } }, &[])
    }

    /// A tensor of no axes, which broadcasts to any shape.
    ///
    /// # Errors
    /// As [`Graph::fill`].
    pub fn scalar(&mut self, value: impl Into<Number>, element: ElementType) -> Result<Tensor, GraphError> {
        self.fill(value, element, Shape::new())
    }
}
