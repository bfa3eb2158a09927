//! One use of every op that is neither a function of elements nor a reduction.

mod arranged;
mod models;

use super::{Accuracy, Sample};
use crate::dim::Dim;
use crate::graph::{Graph, GraphError, Tensor};
use crate::ops::narrow::{Narrow, Overflow, Rounding};
use crate::ops::pull::pool::Window;
use crate::ops::pull::slices::Overhang;
use crate::ops::random::{Distribution, Random, Sampling};
use crate::ops::scatter::Update;
use crate::types::{ElementType, TensorType};

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

use samples;

/// Family by family.
pub(super) fn all() -> impl Iterator<Item = &'static Sample> {
    [&[CREATION, TYPES, VIEWS, RANDOM, NARROW, INDEXING], arranged::ALL, models::ALL]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
}

/// Made from nothing.
const CREATION: &[Sample] = samples! {
    "full" Exact "y = value; zeros and ones are such tensors" |g, element| g.fill(1.0, element, dims(&[4, 4]));
    "stop_gradient" Exact "x, through which no gradient passes" |g, element| {
        let x = matrix(g, element)?;
        g.stop_gradient(x)
    };
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

/// Random numbers, of the run's seed, the op's stream and an element's index alone.
const RANDOM: &[Sample] = samples! {
    "random_bits" Exact "words of Philox4x32-10 at the element's index" |g, element| g.random_bits(dims(&[4, 4]), element);
    "uniform" Exact "low + (high - low) u, from low up to and without high" |g, element| g.uniform(dims(&[4, 4]), 0.0, 1.0, element);
    "normal" Normals "mean + deviation n, by the transform of Box and Muller" |g, element| g.normal(dims(&[4, 4]), 0.0, 1.0, element);
    "bernoulli" Exact "true with a probability of p" |g, element| {
        let ty = TensorType::new(element, [4i64, 4]);
        let op = Random { distribution: Distribution::Bernoulli { p: 0.5 }, stream: 0, ty };
        let seed = g.seed()?;
        g.add_one(op, &[seed])
    };
    "bernoulli_of" Exact [] "true with the probability that stands in p" |g, element| {
        let p = matrix(g, element)?;
        g.bernoulli_of(p)
    };
    "dropout" Sums ["p"] "x / (1 - p) where it is kept, else 0; and whether it is kept" |g, element| {
        let x = matrix(g, element)?;
        Ok(g.dropout(x, 0.5)?.0)
    };
    "sample" Sums ["temperature", "top_k", "top_p", "min_p"] "for each row of logits, the index of one drawn by softmax among those that are left" |g, element| {
        let logits = matrix(g, element)?;
        g.sample(logits, Sampling { top_p: 0.9, ..Sampling::default() })
    };
};

/// Numbers stored in eight bits and fewer.
const NARROW: &[Sample] = samples! {
    "encode" Exact "the codes of x in a type of eight bits or fewer: floats round to the nearest, ties to even; what is beyond saturates or not" |g, element| {
        let x = matrix(g, element)?;
        g.encode(x, Narrow::I4, Overflow::Saturated, Rounding::Nearest)
    };
    "decode" Exact "the numbers of codes, in the type that `to` says" |g, element| {
        let codes = matrix(g, ElementType::U8)?;
        g.decode(codes, Narrow::I4, element)
    };
    "pack_codes" Exact ["narrow"] "codes of four or two bits side by side in bytes, the first in the lowest bits" |g, element| {
        let codes = matrix(g, element)?;
        g.pack_codes(codes, Narrow::I4)
    };
    "unpack_codes" Exact ["narrow", "n"] "the codes that lie side by side in bytes" |g, element| {
        let packed = matrix(g, element)?;
        g.unpack_codes(packed, Narrow::I4, 8i64)
    };
};

/// Elements at places that indices tell.
const INDEXING: &[Sample] = samples! {
    "scatter_set" Exact ["axis"] "x with y[.., i_k, ..] = u[.., k, ..], the last k for each place; also by elements and by coordinates" |g, element| {
        scattered(g, element, Update::Set)
    };
    "scatter_add" Sums ["axis"] "x with y[.., i_k, ..] = x + Σ u[.., k, ..] over all k for a place; also by elements and by coordinates" |g, element| {
        scattered(g, element, Update::Add)
    };
    "scatter_mul" Sums ["axis"] "as scatter_add with products" |g, element| scattered(g, element, Update::Mul);
    "scatter_max" Exact ["axis"] "as scatter_add with the largest; NaN if there is one" |g, element| {
        scattered(g, element, Update::Max)
    };
    "scatter_min" Exact ["axis"] "as scatter_add with the smallest; NaN if there is one" |g, element| {
        scattered(g, element, Update::Min)
    };
    "dynamic_slice" Exact "y_j = x_(s + j) for starts s; 0 beyond" |g, element| {
        let (x, starts) = (matrix(g, element)?, g.input("starts", ElementType::U32, dims(&[2]))?);
        g.dynamic_slice(x, starts, 0, &dims(&[2, 2]))
    };
    "update_slice" Exact "x with y_(s + j) = u_j for starts s" |g, element| {
        let (x, starts) = (matrix(g, element)?, g.input("starts", ElementType::U32, dims(&[2]))?);
        let update = g.input("update", element, dims(&[2, 2]))?;
        g.update_slice(x, update, starts, 0, Overhang::Dropped)
    };
    "update" Exact "the new version of a state: s with y_(p + j) = u_j along an axis, in its own memory" |g, element| {
        let (state, value) = (g.state("state", element, dims(&[4, 4]))?, g.input("value", element, dims(&[1, 4]))?);
        g.update(state, value, 0, 2)
    };
    "im2col" Exact ["windows"] "what windows see of an image, a column for each" |g, element| {
        let x = g.input("x", element, dims(&[1, 1, 4, 4]))?;
        g.im2col(x, &[Window::new(2), Window::new(2)])
    };
    "col2im" Sums "the sum of what windows see at each place of an image" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 9]))?;
        g.col2im(x, &dims(&[4, 4]), &[Window::new(2), Window::new(2)])
    };
};

/// Two rows of a matrix.
fn scattered(g: &mut Graph, element: ElementType, update: Update) -> Result<Tensor, GraphError> {
    let (x, indices) = (matrix(g, element)?, g.input("indices", ElementType::U32, dims(&[2]))?);
    let updates = g.input("updates", element, dims(&[2, 4]))?;
    g.scatter(x, indices, updates, 0, update)
}

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// An input of 4 rows of 4.
fn matrix(g: &mut Graph, element: ElementType) -> Result<Tensor, GraphError> {
    g.input("x", element, dims(&[4, 4]))
}
