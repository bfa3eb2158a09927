//! Elements that are moved and not changed.

use candle_core::{D, DType, Device, Tensor};
use trefoil::graph::Dim;
use trefoil::graph::ops::fill::Number;
use trefoil::graph::ops::pull::border::Border;

use crate::case::Input::Numbers;
use crate::case::{Allowed, Case, NUMBERS, dims};

macro_rules! cases {
    ($($name:literal [$($shape:expr),*] |$g:ident, $x:ident| $ours:expr, |$y:ident| $theirs:expr;)*) => {
        vec![$(Case::new(
            $name,
            NUMBERS,
            [$(Numbers($shape.to_vec())),*],
            Allowed::Exact,
            |$g, $x| $ours,
            |$y| $theirs,
        )),*]
    };
}

/// Every op that moves.
pub fn cases() -> Vec<Case> {
    cases! {
        "transpose" [[2, 3, 5, 7]]
            |g, x| g.transpose(x[0], &[2, 0, 3, 1]), |y| y[0].permute((2, 0, 3, 1));
        "transpose of two axes" [[7, 11]] |g, x| g.transpose(x[0], &[1, 0]), |y| y[0].t();
        "contiguous" [[7, 11]] |g, x| g.contiguous(x[0]), |y| y[0].contiguous();
        "reshape" [[3, 5, 2]] |g, x| g.reshape(x[0], dims(&[10, 3])), |y| y[0].reshape((10, 3));
        "reshape of no elements" [[3, 0, 2]] |g, x| g.reshape(x[0], dims(&[0, 5])), |y| y[0].reshape((0, 5));
        "squeeze" [[3, 1, 2]] |g, x| g.squeeze(x[0], 1), |y| y[0].squeeze(1);
        "unsqueeze" [[3, 2]] |g, x| g.unsqueeze(x[0], 1), |y| y[0].unsqueeze(1);
        "narrow" [[2, 7, 3]] |g, x| g.narrow(x[0], 1, 2i64, 4i64), |y| y[0].narrow(1, 2, 4);
        "narrow to nothing" [[2, 7]] |g, x| g.narrow(x[0], 1, 7i64, 0i64), |y| y[0].narrow(1, 7, 0);
        "a chunk" [[2, 11, 3]] |g, x| g.narrow(x[0], 1, 4i64, 4i64), |y| Ok(y[0].chunk(3, 1)?.swap_remove(1));
        "expand" [[3, 1]] |g, x| g.expand(x[0], dims(&[2, 3, 5])), |y| y[0].broadcast_as((2, 3, 5));
        "concat" [[2, 3], [2, 1], [2, 5]] |g, x| g.concat(x, 1), |y| Tensor::cat(y, 1);
        "concat of rows" [[3, 5], [1, 5], [7, 5]] |g, x| g.concat(x, 0), |y| Tensor::cat(y, 0);
        "concat with nothing" [[3, 5], [0, 5]] |g, x| g.concat(x, 0), |y| Tensor::cat(y, 0);
        "stack" [[2, 3], [2, 3], [2, 3]] |g, x| g.stack(x, 1), |y| Tensor::stack(y, 1);
        "stack behind" [[2, 3], [2, 3]] |g, x| g.stack(x, -1), |y| Tensor::stack(y, D::Minus1);
        "tile" [[2, 3]] |g, x| g.tile(x[0], &dims(&[3, 2])), |y| y[0].repeat((3, 2));
        "tile with a new axis" [[2, 3]] |g, x| g.tile(x[0], &dims(&[2, 1, 3])), |y| y[0].repeat((2, 1, 3));
        "roll" [[2, 7]] |g, x| g.roll(x[0], &[(1, Dim::from(3))]), |y| y[0].roll(3, 1);
        "roll back" [[7, 5]] |g, x| g.roll(x[0], &[(0, Dim::from(-2))]), |y| y[0].roll(-2, 0);
        "reverse" [[3, 7, 5]] |g, x| g.reverse(x[0], &[0, 2]), |y| y[0].flip(&[0, 2]);
        "pad with zeros" [[3, 7]]
            |g, x| {
                let zero = match g.type_of(x[0])?.element.is_float() {
                    true => Number::Float(0.0),
                    false => Number::Integer(0),
                };
                g.pad(x[0], &[[0, 0], [2, 3]].map(|pads| pads.map(Dim::from)), Border::Constant(zero))
            },
            |y| y[0].pad_with_zeros(1, 2, 3);
        "pad with the outermost" [[3, 7]]
            |g, x| g.pad(x[0], &[[1, 2], [0, 0]].map(|pads| pads.map(Dim::from)), Border::Edge),
            |y| y[0].pad_with_same(0, 1, 2);
        "tril" [[5, 5]]
            |g, x| g.tril(x[0], 0i64),
            |y| Tensor::tril2(5, DType::U8, &Device::Cpu)?.where_cond(&y[0], &y[0].zeros_like()?);
        "triu" [[7, 7]]
            |g, x| g.triu(x[0], 0i64),
            |y| Tensor::triu2(7, DType::U8, &Device::Cpu)?.where_cond(&y[0], &y[0].zeros_like()?);
        "eye" [[1]]
            |g, x| { let element = g.type_of(x[0])?.element; g.eye(5i64, 5i64, 0i64, element) },
            |y| Tensor::eye(5, y[0].dtype(), &Device::Cpu);
    }
}
