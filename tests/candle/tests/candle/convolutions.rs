//! Convolutions and their transposes, over one axis and two.

use trefoil::graph::Dim;
use trefoil::graph::ops::pull::convolution::Slide;
use trefoil::kernels::activation::Activation;

use crate::case::Input::Numbers;
use crate::case::{Allowed, Case, FLOATS};

/// How both move along every axis.
#[derive(Clone, Copy, Debug)]
struct Moves {
    stride: usize,
    dilation: usize,
    padding: usize,
    output_padding: usize,
    groups: usize,
}

impl Moves {
    const fn new(stride: usize, dilation: usize, padding: usize, output_padding: usize, groups: usize) -> Self {
        Self { stride, dilation, padding, output_padding, groups }
    }

    fn slides(self, axes: usize) -> Vec<Slide> {
        let [stride, dilation, padding, output_padding] =
            [self.stride, self.dilation, self.padding, self.output_padding].map(Dim::from);
        vec![Slide { stride, dilation, padding: [padding.clone(), padding], output_padding }; axes]
    }
}

/// Shapes of images, of weights, and how they move.
type Row = (&'static [usize], &'static [usize], Moves);

const FORWARD: &[Row] = &[
    (&[1, 1, 1], &[1, 1, 1], Moves::new(1, 1, 0, 0, 1)),
    (&[2, 3, 13], &[5, 3, 4], Moves::new(2, 2, 3, 0, 1)),
    (&[2, 6, 17], &[4, 3, 3], Moves::new(1, 1, 1, 0, 2)),
    (&[1, 5, 31], &[5, 1, 7], Moves::new(3, 1, 3, 0, 5)),
    (&[1, 1, 1, 1], &[1, 1, 1, 1], Moves::new(1, 1, 0, 0, 1)),
    (&[2, 3, 11, 7], &[5, 3, 3, 2], Moves::new(1, 1, 1, 0, 1)),
    (&[2, 3, 11, 13], &[5, 3, 3, 3], Moves::new(2, 1, 1, 0, 1)),
    (&[1, 4, 13, 17], &[7, 4, 3, 2], Moves::new(1, 3, 2, 0, 1)),
    (&[2, 6, 7, 5], &[4, 3, 3, 2], Moves::new(1, 1, 1, 0, 2)),
    (&[1, 7, 9, 11], &[7, 1, 3, 3], Moves::new(1, 1, 1, 0, 7)),
    (&[1, 7, 9, 11], &[14, 1, 3, 3], Moves::new(2, 1, 1, 0, 7)),
    (&[2, 37, 5, 5], &[67, 37, 1, 1], Moves::new(1, 1, 0, 0, 1)),
];

/// Weights are `[channels, outputs / groups, ..]`.
const TRANSPOSED: &[Row] = &[
    (&[1, 1, 1], &[1, 1, 1], Moves::new(1, 1, 0, 0, 1)),
    (&[2, 3, 5], &[3, 4, 3], Moves::new(2, 1, 1, 1, 1)),
    (&[2, 3, 7], &[3, 4, 3], Moves::new(3, 2, 2, 0, 1)),
    (&[1, 6, 7], &[6, 2, 4], Moves::new(2, 1, 1, 1, 3)),
    (&[1, 2, 3, 4], &[2, 3, 3, 2], Moves::new(2, 1, 0, 1, 1)),
    (&[2, 5, 7, 3], &[5, 3, 3, 3], Moves::new(1, 2, 1, 0, 1)),
    (&[1, 3, 5, 7], &[3, 1, 5, 4], Moves::new(3, 1, 2, 2, 1)),
];

/// Every convolution.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &(image, weight, moves) in FORWARD {
        let axes = image.len() - 2;
        let about = format!("{image:?} {weight:?}, {moves:?}");
        let inputs = || [Numbers(image.to_vec()), Numbers(weight.to_vec())];
        let theirs = move |x: &[candle_core::Tensor]| {
            let Moves { stride, dilation, padding, groups, .. } = moves;
            match axes {
                // Of a weight with other strides it makes a copy, and then multiplies by what it copied from.
                1 => x[0].conv1d(&x[1].contiguous()?, padding, stride, dilation, groups),
                _ => x[0].conv2d(&x[1], padding, stride, dilation, groups),
            }
        };
        cases.push(Case::new(
            format!("conv {about}"),
            FLOATS,
            inputs(),
            Allowed::Sum,
            move |g, x| g.conv(x[0], x[1], None, &moves.slides(axes), moves.groups, Activation::Identity),
            theirs,
        ));
        let mut with_bias = inputs().to_vec();
        with_bias.push(Numbers(vec![weight[0]]));
        cases.push(Case::new(
            format!("conv with bias and relu {about}"),
            FLOATS,
            with_bias,
            Allowed::Sum,
            move |g, x| g.conv(x[0], x[1], Some(x[2]), &moves.slides(axes), moves.groups, Activation::Relu),
            move |x| {
                let bias = x[2].reshape([&[1, x[2].elem_count()][..], &vec![1; axes]].concat())?;
                theirs(x)?.broadcast_add(&bias)?.relu()
            },
        ));
    }
    for &(image, weight, moves) in TRANSPOSED {
        let axes = image.len() - 2;
        cases.push(Case::new(
            format!("conv_transpose {image:?} {weight:?}, {moves:?}"),
            FLOATS,
            [Numbers(image.to_vec()), Numbers(weight.to_vec())],
            Allowed::Sum,
            move |g, x| g.conv_transpose(x[0], x[1], None, &moves.slides(axes), moves.groups, Activation::Identity),
            move |x| {
                let Moves { stride, dilation, padding, output_padding, groups } = moves;
                match axes {
                    1 => x[0].conv_transpose1d(&x[1], padding, output_padding, stride, dilation, groups),
                    // Candle's has no groups over two axes.
                    _ => x[0].conv_transpose2d(&x[1], padding, output_padding, stride, dilation),
                }
            },
        ));
    }
    cases
}
