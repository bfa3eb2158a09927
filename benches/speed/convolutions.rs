//! Convolutions of `f32`, as image models have them.

use trefoil::graph::Dim;
use trefoil::graph::ops::pull::convolution::Slide;
use trefoil::kernels::activation::Activation;

use crate::cases::Case;
use crate::measure::Scale;

/// Channels, extent, outputs, extent of the kernel, stride, groups.
const LAYERS: [[i64; 6]; 5] = [
    [64, 56, 64, 3, 1, 1],
    [256, 14, 256, 3, 1, 1],
    [256, 56, 64, 1, 1, 1],
    [3, 224, 64, 7, 2, 1],
    [256, 56, 256, 3, 1, 256],
];

/// The cases in sizes that a device can do in reasonable time.
pub fn all(scale: Scale) -> Vec<Case> {
    let images = match scale {
        Scale::Gpu => 32,
        Scale::Cpu => 4,
        Scale::Software => 1,
    };
    LAYERS.map(|layer| case(images, layer)).into()
}

fn case(images: i64, [channels, extent, outputs, size, stride, groups]: [i64; 6]) -> Case {
    let out = (extent - 1) / stride + 1;
    let sums = images * outputs * out * out;
    let of_groups = if groups == 1 { String::new() } else { format!(" groups {groups}") };
    let of_stride = if stride == 1 { String::new() } else { format!(" by {stride}") };
    Case {
        name: format!("conv {images}x{channels}x{extent}x{extent} to {outputs}, {size}x{size}{of_stride}{of_groups}"),
        inputs: vec![
            ("x", vec![images, channels, extent, extent]),
            ("weight", vec![outputs, channels / groups, size, size]),
        ],
        build: Box::new(move |g, inputs| {
            let padding = [Dim::from(size / 2), Dim::from(size / 2)];
            let slide = Slide { stride: Dim::from(stride), padding, ..Slide::default() };
            let result = g.conv(inputs[0], inputs[1], None, &[slide.clone(), slide], groups, Activation::Identity)?;
            g.output("result", result)
        }),
        bytes: (4 * (images * channels * extent * extent + sums)).unsigned_abs(),
        flops: Some((2 * sums * channels / groups * size * size).unsigned_abs()),
    }
}
