//! Reductions, running sums, and norms, which candle makes of other ops.

use candle_core::{D, Result, Tensor};
use trefoil::graph::ElementType;
use trefoil::graph::graph::GraphError;
use trefoil::graph::ops::norm::NormOperands;
use trefoil::graph::ops::reduce::Reduction;
use trefoil::graph::ops::scan::Sweep;
use trefoil::graph::{Graph, Tensor as Ours};

use crate::case::Input::{self, Numbers, Shuffled};
use crate::case::{Allowed, Case, FLOATS};

use ElementType::{BF16, F16, F32, F64, I32, I64, U32};

/// A reduction of some axes, as ours and as candle's.
type Row = (
    Reduction,
    fn(Vec<usize>) -> Input,
    fn(&mut Graph, Ours, &[isize], bool) -> std::result::Result<Ours, GraphError>,
    fn(&Tensor, &[usize], bool) -> Result<Tensor>,
);

/// Reductions of any axes.
const REDUCTIONS: &[Row] = &[
    (
        Reduction::Sum,
        Numbers,
        |g, x, axes, keep| g.sum(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.sum_keepdim(axes),
            false => x.sum(axes),
        },
    ),
    (
        Reduction::Mean,
        Numbers,
        |g, x, axes, keep| g.mean(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.mean_keepdim(axes),
            false => x.mean(axes),
        },
    ),
];

/// Reductions that candle has of one axis alone, or without a choice to keep it.
const OF_ONE: &[Row] = &[
    (
        Reduction::Max,
        Numbers,
        |g, x, axes, keep| g.max_over(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.max_keepdim(axes[0]),
            false => x.max(axes[0]),
        },
    ),
    (
        Reduction::Min,
        Numbers,
        |g, x, axes, keep| g.min_over(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.min_keepdim(axes[0]),
            false => x.min(axes[0]),
        },
    ),
    (
        Reduction::ArgMax,
        Shuffled,
        |g, x, axes, keep| g.argmax(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.argmax_keepdim(axes[0]),
            false => x.argmax(axes[0]),
        },
    ),
    (
        Reduction::ArgMin,
        Shuffled,
        |g, x, axes, keep| g.argmin(x, axes, keep),
        |x, axes, keep| match keep {
            true => x.argmin_keepdim(axes[0]),
            false => x.argmin(axes[0]),
        },
    ),
    (
        Reduction::Var,
        Numbers,
        |g, x, axes, keep| g.var(x, axes, keep, 1),
        |x, axes, keep| match keep {
            true => x.var_keepdim(axes[0]),
            false => x.var(axes[0]),
        },
    ),
    (Reduction::LogSumExp, Numbers, |g, x, axes, _| g.logsumexp(x, axes, false), |x, axes, _| x.log_sum_exp(axes)),
];

/// Every reduction, scan and norm.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for row in REDUCTIONS {
        for axes in [&[0][..], &[2], &[0, 2], &[0, 1, 2]] {
            cases.push(reduction(row, &[7, 11, 13], axes, axes.len() == 1));
        }
        cases.push(reduction(row, &[1], &[0], false));
        cases.push(reduction(row, &[3, 1009], &[1], false));
    }
    // The sum of none is 0; candle's mean of none is too, ours is a NaN, as NumPy's.
    cases.push(reduction(&REDUCTIONS[0], &[3, 0, 2], &[1], false));
    for row in OF_ONE {
        for axis in 0..3 {
            cases.push(reduction(row, &[7, 11, 13], &[axis], axis == 1));
        }
        cases.push(reduction(row, &[3, 1009], &[1], false));
    }
    for (shape, axis) in [(vec![1], 0), (vec![101], 0), (vec![3, 1009], 1), (vec![7, 11, 5], 0), (vec![7, 11, 5], 1)] {
        cases.push(Case::new(
            format!("cumsum {shape:?} of axis {axis}"),
            // Candle's is a product with a triangle of ones, which it has for floats.
            FLOATS,
            [Numbers(shape)],
            Allowed::Sum,
            move |g, x| g.cumsum(x[0], axis, Sweep::default()),
            move |x| x[0].cumsum(axis as usize),
        ));
    }
    cases.extend(norms());
    cases
}

fn reduction(row: &'static Row, shape: &[usize], axes: &[usize], keep: bool) -> Case {
    let (reduction, input, ours, theirs) = *row;
    let types: Vec<_> =
        reduction.takes().filter(|element| matches!(element, F32 | F16 | BF16 | F64 | U32 | I32 | I64)).collect();
    let axes = axes.to_vec();
    let ours_axes: Vec<isize> = axes.iter().map(|axis| *axis as isize).collect();
    Case::new(
        format!("{reduction:?} {shape:?} of {axes:?}"),
        &types,
        [input(shape.to_vec())],
        if reduction.chooses() { Allowed::Exact } else { Allowed::Sum },
        move |g, x| ours(g, x[0], &ours_axes, keep),
        move |x| theirs(&x[0], &axes, keep),
    )
}

fn softmax(x: &Tensor, axis: usize) -> Result<Tensor> {
    let powers = x.broadcast_sub(&x.max_keepdim(axis)?)?.exp()?;
    powers.broadcast_div(&powers.sum_keepdim(axis)?)
}

/// What is added to variances.
const EPSILON: f32 = 1e-5;

fn scaled(x: &Tensor, squares: &Tensor) -> Result<Tensor> {
    x.broadcast_div(&(squares.mean_keepdim(D::Minus1)? + f64::from(EPSILON))?.sqrt()?)
}

fn layer_norm(x: &Tensor) -> Result<Tensor> {
    let apart = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    scaled(&apart, &apart.sqr()?)
}

fn norms() -> Vec<Case> {
    let mut cases = Vec::new();
    for (shape, axis) in [(vec![1], 0), (vec![3, 1009], 1), (vec![7, 11, 5], 1), (vec![7, 11, 5], 2)] {
        cases.push(Case::new(
            format!("softmax {shape:?} of axis {axis}"),
            FLOATS,
            [Numbers(shape.clone())],
            Allowed::Sum,
            move |g, x| g.softmax(x[0], axis),
            move |x| softmax(&x[0], axis as usize),
        ));
        cases.push(Case::new(
            format!("log_softmax {shape:?} of axis {axis}"),
            FLOATS,
            [Numbers(shape)],
            Allowed::Sum,
            move |g, x| g.log_softmax(x[0], axis),
            move |x| x[0].broadcast_sub(&x[0].log_sum_exp(axis as usize)?.unsqueeze(axis as usize)?),
        ));
    }
    for (shape, columns) in [(vec![2, 3, 5], 5), (vec![7, 1009], 1009), (vec![3, 1], 1)] {
        let inputs = || [Numbers(shape.clone()), Numbers(vec![columns]), Numbers(vec![columns])];
        cases.push(Case::new(
            format!("layer_norm {shape:?}"),
            FLOATS,
            inputs(),
            Allowed::Sum,
            |g, x| {
                let operands = NormOperands { gamma: Some(x[1]), beta: Some(x[2]), ..NormOperands::default() };
                g.layer_norm(x[0], &[-1], EPSILON, operands)
            },
            |x| layer_norm(&x[0])?.broadcast_mul(&x[1])?.broadcast_add(&x[2]),
        ));
        cases.push(Case::new(
            format!("rms_norm {shape:?}"),
            FLOATS,
            inputs(),
            Allowed::Sum,
            |g, x| {
                let operands = NormOperands { gamma: Some(x[1]), ..NormOperands::default() };
                g.rms_norm(x[0], &[-1], EPSILON, operands)
            },
            |x| scaled(&x[0], &x[0].sqr()?)?.broadcast_mul(&x[1]),
        ));
    }
    cases
}
