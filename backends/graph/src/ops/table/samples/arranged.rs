//! Uses of ops whose elements come from computed places, and of orders along an axis.

use super::{Accuracy, Sample, dims, matrix, samples};
use crate::dim::Dim;
use crate::ops::fill::Number;
use crate::ops::pull::blocks::BlockOrder;
use crate::ops::pull::border::Border;
use crate::ops::pull::pool::{Pooling, Window};
use crate::ops::pull::resize::{Interpolation, ResizeAxis};
use crate::ops::pull::sample::{GridSample, Outside, Sampling};
use crate::ops::scan::Sweep;
use crate::ops::sort::{Best, Order};
use crate::types::ElementType;

/// Family by family.
pub(super) const ALL: &[&[Sample]] = &[MADE, JOINED, INDEXED, WINDOWS, ORDERS];

/// Made from positions.
const MADE: &[Sample] = samples! {
    "arange" Exact "y_i = start + i step" |g, element| g.arange(0.0, 1.0, 4i64, element);
    "linspace" Exact "y_i = start + i (last - start) / (count - 1)" |g, element| g.linspace(0.0, 1.0, 4i64, element);
    "eye" Exact "1 on a diagonal, else 0; identity is one" |g, element| g.eye(4i64, 4i64, 0i64, element);
    "one_hot" Exact "on where the index is the place along a new axis, else off" |g, element| {
        let indices = g.input("indices", ElementType::U32, dims(&[4]))?;
        let ends = if element.is_float() { [Number::Float(0.0), Number::Float(1.0)] } else { [Number::Integer(0), Number::Integer(1)] };
        g.one_hot(indices, 3i64, ends, element, -1)
    };
};

/// Arranged anew.
const JOINED: &[Sample] = samples! {
    "concat" Exact "tensors one after the other along an axis" |g, element| {
        let x = matrix(g, element)?;
        g.concat(&[x, x], 0)
    };
    "stack" Exact ["axis"] "tensors side by side along a new axis" |g, element| {
        let x = matrix(g, element)?;
        g.stack(&[x, x], 0)
    };
    "tile" Exact "x again and again along every axis" |g, element| {
        let x = matrix(g, element)?;
        g.tile(x, &[Dim::from(2), Dim::from(1)])
    };
    "roll" Exact "y_i = x_((i - shift) mod n)" |g, element| {
        let x = matrix(g, element)?;
        g.roll(x, &[(0, Dim::from(1))])
    };
    "reverse" Exact ["axes"] "y_i = x_(n - 1 - i)" |g, element| {
        let x = matrix(g, element)?;
        g.reverse(x, &[0])
    };
    "slice" Exact ["axis", "start", "end", "step"] "y_i = x_(start + i step) up to end" |g, element| {
        let x = matrix(g, element)?;
        g.slice(x, 0, 0i64, 4i64, 2)
    };
    "pad" Exact "x with a border: of a constant, mirrored, or of its outermost elements" |g, element| {
        let x = matrix(g, element)?;
        g.pad(x, &[[1, 1], [0, 2]].map(|pads| pads.map(Dim::from)), Border::Edge)
    };
    "depth_to_space" Exact ["block", "order"] "channels as blocks of places; pixel_shuffle is one" |g, element| {
        let x = g.input("x", element, dims(&[4, 2, 2]))?;
        g.depth_to_space(x, 2, BlockOrder::ChannelFirst)
    };
    "space_to_depth" Exact ["block", "order"] "blocks of places as channels" |g, element| {
        let x = g.input("x", element, dims(&[1, 4, 4]))?;
        g.space_to_depth(x, 2, BlockOrder::ChannelFirst)
    };
};

/// Read at places that indices tell.
const INDEXED: &[Sample] = samples! {
    "gather" Exact "y[.., k, ..] = x[.., i_k, ..]; 0 where there is no such place; embedding is one" |g, element| {
        let (x, indices) = (matrix(g, element)?, g.input("indices", ElementType::U32, dims(&[2]))?);
        g.gather(x, indices, 0)
    };
    "gather_elements" Exact "y_p = x at p, but along an axis at i_p" |g, element| {
        let (x, indices) = (matrix(g, element)?, g.input("indices", ElementType::U32, dims(&[2, 4]))?);
        g.gather_elements(x, indices, 0)
    };
    "gather_nd" Exact "parts of x by the coordinates along the last axis of the indices" |g, element| {
        let (x, indices) = (matrix(g, element)?, g.input("indices", ElementType::U32, dims(&[3, 2]))?);
        g.gather_nd(x, indices, 0)
    };
    "tril" Exact "x where column - row <= diagonal, else 0; triu likewise" |g, element| {
        let x = matrix(g, element)?;
        g.tril(x, 0i64)
    };
};

/// Windows and places between elements.
const WINDOWS: &[Sample] = samples! {
    "pool" Sums "the largest, smallest, sum, product, mean or norm of each window" |g, element| {
        let x = g.input("x", element, dims(&[1, 1, 4, 4]))?;
        g.pool(x, Pooling::Max, &[Window::new(2i64), Window::new(2i64)])
    };
    "adaptive_mean" Sums "the means of parts of equal or nearly equal extents" |g, element| {
        let x = g.input("x", element, dims(&[1, 1, 4, 4]))?;
        g.adaptive_mean(x, &[Dim::from(2), Dim::from(3)])
    };
    "resize" Sums "x at places between its elements: the nearest, or linearly or cubically between them" |g, element| {
        let x = g.input("x", element, dims(&[1, 1, 4, 4]))?;
        g.resize(x, &[1i64, 1, 8, 6].map(ResizeAxis::new), Interpolation::Linear)
    };
    "grid_sample" Sums "x at the places that a grid tells" |g, element| {
        let x = g.input("x", element, dims(&[1, 1, 4, 4]))?;
        let grid = g.input("grid", element, dims(&[1, 2, 2, 2]))?;
        g.grid_sample(x, grid, GridSample { sampling: Sampling::Linear, outside: Outside::Zeros, align_corners: false })
    };
};

/// Running results and orders.
const ORDERS: &[Sample] = samples! {
    "cumsum" Sums "y_i = x_0 + .. + x_i, or without x_i, or from the other end" |g, element| {
        let x = matrix(g, element)?;
        g.cumsum(x, 0, Sweep::default())
    };
    "cumprod" Sums "y_i = x_0 .. x_i, or without x_i, or from the other end" |g, element| {
        let x = matrix(g, element)?;
        g.cumprod(x, 0, Sweep::default())
    };
    "cummax" Exact "the largest up to i; NaN if there is one" |g, element| {
        let x = matrix(g, element)?;
        g.cummax(x, 0, Sweep::default())
    };
    "cummin" Exact "the smallest up to i; NaN if there is one" |g, element| {
        let x = matrix(g, element)?;
        g.cummin(x, 0, Sweep::default())
    };
    "sort" Exact ["axis", "order"] "elements in order, NaN last" |g, element| {
        let x = matrix(g, element)?;
        g.sort(x, 0, Order::Ascending)
    };
    "argsort" Exact ["axis", "order"] "where the sorted elements are; the lower index first of equal ones" |g, element| {
        let x = matrix(g, element)?;
        g.argsort(x, 0, Order::Ascending)
    };
    "top_k" Exact ["k", "axis", "largest", "sorted"] "the k largest or smallest and where they are" |g, element| {
        let x = matrix(g, element)?;
        Ok(g.top_k(x, 2, 0, Best::default())?.0)
    };
};
