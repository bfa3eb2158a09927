//! One use of every op that is neither a function of elements nor a reduction.

use super::{Accuracy, Sample};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::types::ElementType;

/// Rows of a table: name, accuracy, formula, and a use for elements of a type; with names of attributes where it is made of several nodes.
macro_rules! samples {
    ($($op:literal $accuracy:ident $([$($attribute:literal),*])? $formula:literal |$g:ident, $element:ident| $body:expr;)*) => {
        &[$(Sample {
            op: $op,
            formula: $formula,
            accuracy: Accuracy::$accuracy,
            attributes: { let given: &[&[&str]] = &[$(&[$($attribute),*])?]; given.first().copied() },
            add: |$g, $element| $body,
        }),*]
    };
}

/// Family by family.
pub(super) const ALL: &[&[Sample]] = &[CREATION, TYPES, VIEWS];

/// Made from nothing.
const CREATION: &[Sample] = samples! {
    "full" Exact "y = value; zeros and ones are such tensors" |g, element| g.fill(1.0, element, dims(&[4, 4]));
};

/// Chosen and converted.
const TYPES: &[Sample] = samples! {
    "where" Exact "y = accept where the condition holds, else reject" |g, element| {
        let condition = g.input("condition", ElementType::Bool, dims(&[4, 4]))?;
        let x = matrix(g, element)?;
        g.where_(condition, x, x)
    };
    "cast" Exact "x as another type: floats round to the nearest, to integers toward zero and saturating; integers wrap" |g, element| {
        let x = matrix(g, element)?;
        g.cast(x, ElementType::Bool)
    };
    "bitcast" Exact "the bits of x as another type" |g, element| {
        let x = matrix(g, element)?;
        g.bitcast(x, element)
    };
};

/// The same elements, otherwise arranged: no kernel where strides can say it.
const VIEWS: &[Sample] = samples! {
    "reshape" Exact "the same elements in the same order, with other extents" |g, element| {
        let x = matrix(g, element)?;
        g.reshape(x, dims(&[8, 2]))
    };
    "transpose" Exact "axis k of y is axis p_k of x" |g, element| {
        let x = matrix(g, element)?;
        g.transpose(x, &[1, 0])
    };
    "expand" Exact "axes of extent 1 are repeated" |g, element| {
        let x = g.input("x", element, dims(&[4, 1]))?;
        g.expand(x, dims(&[4, 8]))
    };
    "squeeze" Exact "without an axis of extent 1" |g, element| {
        let x = g.input("x", element, dims(&[4, 1]))?;
        g.squeeze(x, -1)
    };
    "unsqueeze" Exact "with one more axis, of extent 1" |g, element| {
        let x = matrix(g, element)?;
        g.unsqueeze(x, 0)
    };
};

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// An input of 4 rows of 4.
fn matrix(g: &mut Graph, element: ElementType) -> Result<Tensor, GraphError> {
    g.input("x", element, dims(&[4, 4]))
}
