//! Elements taken from and put at indices, and sorts.

use candle_core::{Result, Tensor};
use trefoil::graph::ElementType;
use trefoil::graph::ops::scatter::Update;
use trefoil::graph::ops::sort::{Best, Order};

use crate::case::Input::{Indices, Numbers, Shuffled};
use crate::case::{Allowed, Case, FLOATS, NUMBERS, dims};

use ElementType::{I64, U8, U32};

/// Every op with indices.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (axis, of) in [(0, 7), (1, 5), (2, 11)] {
        for indices in [U32, U8, I64] {
            cases.push(Case::new(
                format!("gather of axis {axis} by {indices}"),
                NUMBERS,
                [Numbers(vec![7, 5, 11]), Indices(vec![13], of, indices)],
                Allowed::Exact,
                move |g, x| g.gather(x[0], x[1], axis),
                move |x| x[0].index_select(&x[1], axis as usize),
            ));
        }
        let mut extents = vec![7, 5, 11];
        extents[axis as usize] = 3;
        cases.push(Case::new(
            format!("gather_elements of axis {axis}"),
            NUMBERS,
            [Numbers(vec![7, 5, 11]), Indices(extents.clone(), of, U32)],
            Allowed::Exact,
            move |g, x| g.gather_elements(x[0], x[1], axis),
            move |x| x[0].gather(&x[1], axis as usize),
        ));
        cases.push(Case::new(
            format!("scatter_elements of axis {axis}"),
            NUMBERS,
            [Numbers(vec![7, 5, 11]), Indices(extents.clone(), of, U32), Numbers(extents.clone())],
            Allowed::Exact,
            move |g, x| g.scatter_elements(x[0], x[1], x[2], axis, Update::Set),
            move |x| x[0].scatter(&x[1], &x[2], axis as usize),
        ));
        cases.push(Case::new(
            format!("scatter_add of axis {axis}"),
            NUMBERS,
            [Numbers(vec![7, 5, 11]), Indices(extents.clone(), of, U32), Numbers(extents)],
            Allowed::Sum,
            move |g, x| g.scatter_elements(x[0], x[1], x[2], axis, Update::Add),
            move |x| x[0].scatter_add(&x[1], &x[2], axis as usize),
        ));
        let mut updates = vec![7, 5, 11];
        updates[axis as usize] = 13;
        cases.push(Case::new(
            format!("index_add of axis {axis}"),
            NUMBERS,
            [Numbers(vec![7, 5, 11]), Indices(vec![13], of, U32), Numbers(updates)],
            Allowed::Sum,
            move |g, x| g.index_add(x[0], axis, x[1], x[2]),
            move |x| x[0].index_add(&x[1], &x[2], axis as usize),
        ));
    }
    cases.push(Case::new(
        "embedding",
        FLOATS,
        [Numbers(vec![17, 5]), Indices(vec![7], 17, U32)],
        Allowed::Exact,
        |g, x| g.embedding(x[0], x[1]),
        |x| x[0].embedding(&x[1]),
    ));
    cases.push(Case::new(
        "gather of no indices",
        NUMBERS,
        [Numbers(vec![7, 5]), Indices(vec![0], 7, U32)],
        Allowed::Exact,
        |g, x| g.gather(x[0], x[1], 0),
        |x| x[0].index_select(&x[1], 0),
    ));
    cases.push(Case::new(
        "update_slice",
        NUMBERS,
        [Numbers(vec![7, 5]), Numbers(vec![3, 5])],
        Allowed::Exact,
        |g, x| g.update_slice_at(x[0], x[1], &dims(&[2, 0])),
        |x| x[0].slice_scatter(&x[1], 0, 2),
    ));
    cases.push(Case::new(
        "update_slice of two axes",
        NUMBERS,
        [Numbers(vec![7, 5]), Numbers(vec![3, 2])],
        Allowed::Exact,
        |g, x| g.update_slice_at(x[0], x[1], &dims(&[4, 1])),
        |x| x[0].slice_assign(&[4..7, 1..3], &x[1]),
    ));
    for shape in [vec![1], vec![3, 17], vec![2, 3, 131]] {
        for order in [Order::Ascending, Order::Descending] {
            let descending = order == Order::Descending;
            // Each number once: candle's order of equal ones is not settled.
            let input = || [Shuffled(shape.clone())];
            cases.push(
                Case::new(
                    format!("sort {shape:?}, descending: {descending}"),
                    NUMBERS,
                    input(),
                    Allowed::Exact,
                    move |g, x| g.sort(x[0], -1, order),
                    move |x| sorted(&x[0], descending),
                )
                .long(),
            );
            cases.push(
                Case::new(
                    format!("argsort {shape:?}, descending: {descending}"),
                    NUMBERS,
                    input(),
                    Allowed::Exact,
                    move |g, x| g.argsort(x[0], -1, order),
                    move |x| x[0].contiguous()?.arg_sort_last_dim(!descending),
                )
                .long(),
            );
            let k = shape.last().map_or(1, |last| *last.min(&5));
            cases.push(
                Case::new(
                    format!("top_k {shape:?}, largest: {descending}"),
                    NUMBERS,
                    input(),
                    Allowed::Exact,
                    move |g, x| Ok(g.top_k(x[0], k, -1, Best { largest: descending, sorted: true })?.0),
                    move |x| sorted(&x[0], descending)?.narrow(candle_core::D::Minus1, 0, k),
                )
                .long(),
            );
        }
    }
    cases
}

fn sorted(x: &Tensor, descending: bool) -> Result<Tensor> {
    Ok(x.contiguous()?.sort_last_dim(!descending)?.0)
}
