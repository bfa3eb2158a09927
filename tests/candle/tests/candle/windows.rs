//! Pools, and images at other sizes.

use trefoil::graph::Dim;
use trefoil::graph::ops::pull::pool::{Pooling, Window};
use trefoil::graph::ops::pull::resize::{Alignment, Interpolation, Nearest, ResizeAxis};

use crate::case::Input::Numbers;
use crate::case::{Allowed, Case, FLOATS, NUMBERS};

/// Windows and strides over both axes.
const POOLS: [[(i64, i64); 2]; 4] = [[(1, 1), (1, 1)], [(2, 2), (2, 2)], [(3, 2), (2, 1)], [(2, 3), (5, 1)]];

/// The sizes to which 5 by 7 become.
const SIZES: [[usize; 2]; 5] = [[1, 1], [5, 7], [10, 21], [7, 8], [3, 4]];

fn window((size, stride): (i64, i64)) -> Window {
    Window { stride: Dim::from(stride), ..Window::new(size) }
}

fn usizes(pair: [i64; 2]) -> (usize, usize) {
    (pair[0] as usize, pair[1] as usize)
}

/// Every window.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for axes in POOLS {
        let image = || [Numbers(vec![2, 3, 7, 11])];
        let (size, stride) = (usizes(axes.map(|axis| axis.0)), usizes(axes.map(|axis| axis.1)));
        cases.push(Case::new(
            format!("max pooling {axes:?}"),
            FLOATS,
            image(),
            Allowed::Exact,
            move |g, x| g.pool(x[0], Pooling::Max, &axes.map(window)),
            move |x| x[0].max_pool2d_with_stride(size, stride),
        ));
        cases.push(Case::new(
            format!("mean pooling {axes:?}"),
            FLOATS,
            image(),
            Allowed::Sum,
            move |g, x| g.pool(x[0], Pooling::Mean, &axes.map(window)),
            move |x| x[0].avg_pool2d_with_stride(size, stride),
        ));
    }
    for size @ [rows, columns] in SIZES {
        let image = || [Numbers(vec![2, 3, 5, 7])];
        cases.push(Case::new(
            format!("nearest {size:?}"),
            NUMBERS,
            image(),
            Allowed::Exact,
            move |g, x| {
                let axes =
                    size.map(|extent| ResizeAxis { alignment: Alignment::Asymmetric, ..ResizeAxis::new(extent) });
                g.resize(x[0], &axes, Interpolation::Nearest(Nearest::Lower))
            },
            move |x| x[0].upsample_nearest2d(rows, columns),
        ));
        for corners in [false, true] {
            let alignment = if corners { Alignment::Corners } else { Alignment::HalfPixel };
            cases.push(Case::new(
                format!("bilinear {size:?}, {alignment:?}"),
                FLOATS,
                image(),
                Allowed::Sum,
                move |g, x| {
                    let axes =
                        size.map(|extent| ResizeAxis { alignment: alignment.clone(), ..ResizeAxis::new(extent) });
                    g.resize(x[0], &axes, Interpolation::Linear)
                },
                // Of its own size candle hands the memory on as it lies, whatever the strides.
                move |x| x[0].contiguous()?.upsample_bilinear2d(rows, columns, corners),
            ));
        }
    }
    cases.push(Case::new(
        "nearest of one axis",
        NUMBERS,
        [Numbers(vec![2, 3, 7])],
        Allowed::Exact,
        |g, x| {
            let axis = ResizeAxis { alignment: Alignment::Asymmetric, ..ResizeAxis::new(17i64) };
            g.resize(x[0], &[axis], Interpolation::Nearest(Nearest::Lower))
        },
        |x| x[0].upsample_nearest1d(17),
    ));
    cases.push(Case::new(
        "bilinear by a scale",
        FLOATS,
        [Numbers(vec![1, 2, 5, 7])],
        Allowed::Sum,
        |g, x| {
            // (i + 1/2) / 1.5 - 1/2, whatever the extents.
            let alignment = Alignment::At { step: 4, start: -1, over: 6 };
            let axes = [7i64, 10].map(|extent| ResizeAxis { alignment: alignment.clone(), ..ResizeAxis::new(extent) });
            g.resize(x[0], &axes, Interpolation::Linear)
        },
        |x| x[0].upsample_bilinear2d_with_scale(1.5, 1.5, false),
    ));
    cases
}
