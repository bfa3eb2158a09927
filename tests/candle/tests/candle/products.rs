//! Products of matrices and vectors, and attention, which candle makes of two of them.

use candle_core::{D, DType, Device, Tensor};
use trefoil::graph::ElementType;
use trefoil::graph::ops::attention::{Attention, AttentionLayout, AttentionOperands};

use crate::case::Input::{Mask, Numbers};
use crate::case::{Allowed, Case, FLOATS};

use ElementType::{BF16, F16, F32};

/// Shapes of both operands.
const SHAPES: [[&[usize]; 2]; 11] = [
    [&[1, 1], &[1, 1]],
    [&[7, 13], &[13, 5]],
    [&[1, 101], &[101, 67]],
    [&[67, 101], &[101, 1]],
    [&[131, 37], &[37, 67]],
    [&[3, 0], &[0, 5]],
    [&[0, 3], &[3, 5]],
    [&[2, 3, 7, 5], &[2, 3, 5, 11]],
    [&[2, 1, 7, 13], &[3, 13, 5]],
    [&[3, 7, 13], &[13, 5]],
    [&[7, 13], &[3, 13, 5]],
];

/// Every product.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = SHAPES
        .into_iter()
        .map(|[a, b]| {
            Case::new(
                format!("matmul {a:?} {b:?}"),
                FLOATS,
                [Numbers(a.to_vec()), Numbers(b.to_vec())],
                Allowed::Sum,
                |g, x| g.matmul(x[0], x[1]),
                |x| x[0].broadcast_matmul(&x[1]),
            )
        })
        .collect();
    cases.push(Case::new(
        "a matrix and a vector",
        FLOATS,
        [Numbers(vec![17, 101]), Numbers(vec![101])],
        Allowed::Sum,
        |g, x| g.matmul(x[0], x[1]),
        |x| x[0].mv(&x[1]),
    ));
    cases.push(Case::new(
        "two vectors",
        FLOATS,
        [Numbers(vec![101]), Numbers(vec![101])],
        Allowed::Sum,
        |g, x| g.matmul(x[0], x[1]),
        |x| x[0].dot(&x[1]),
    ));
    for causal in [false, true] {
        cases.push(attention(causal, false));
    }
    cases.push(attention(false, true));
    cases
}

/// Attention of 2 texts, 3 heads, 11 queries and keys and 5 elements a head.
fn attention(causal: bool, masked: bool) -> Case {
    const KEYS: usize = 11;
    let operand = || Numbers(vec![2, 3, KEYS, 5]);
    let mut inputs = vec![operand(), operand(), operand()];
    if masked {
        inputs.push(Mask(vec![2, 3, KEYS, KEYS]));
    }
    Case::new(
        format!("attention, causal: {causal}, masked: {masked}"),
        &[F32, F16, BF16],
        inputs,
        Allowed::Sum,
        move |g, x| {
            // A query that sees no key at all has no weights in candle.
            let mask = if masked {
                let own = g.eye(KEYS, KEYS, 0i64, ElementType::Bool)?;
                Some(g.logical_or(x[3], own)?)
            } else {
                None
            };
            let op = Attention { causal, ..Attention::new(AttentionLayout::Bhsd, 0.375) };
            g.attention(x[0], x[1], x[2], AttentionOperands { mask, ..AttentionOperands::default() }, op)
        },
        move |x| {
            let mut scores = (x[0].matmul(&x[1].t()?.contiguous()?)? * 0.375)?;
            let hidden = Tensor::full(f64::NEG_INFINITY, scores.shape(), &Device::Cpu)?;
            if causal {
                let seen = Tensor::tril2(KEYS, DType::U8, &Device::Cpu)?.broadcast_as(scores.shape())?;
                scores = seen.where_cond(&scores, &hidden)?;
            }
            if masked {
                let own = Tensor::eye(KEYS, DType::U8, &Device::Cpu)?;
                let seen = x[3].broadcast_maximum(&own)?;
                scores = seen.where_cond(&scores, &hidden)?;
            }
            let powers = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
            powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?.matmul(&x[2].contiguous()?)
        },
    )
}
