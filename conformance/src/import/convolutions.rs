//! Convolution and its transpose.

use trefoil::kernels::activation::Activation;
use trefoil_graph::ops::pull::convolution::Slide;
use trefoil_graph::{Dim, ElementType, Tensor};

use super::slides::{Axis, axes, halves, numbers};
use super::{Import, Imported, Importer, Unsupported, dims};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Conv", |i, n| {
        let [x, weight] = [i.input(n, 0)?, i.input(n, 1)?];
        let bias = i.optional(n, 2)?;
        let slides = slides(i, n, [x, weight])?;
        Ok(vec![i.graph.conv(x, weight, bias, &slides, i.int(n, "group", 1), Activation::Identity)?])
    }),
    ("ConvInteger", whole),
    ("ConvTranspose", transpose),
];

/// What the attributes say of a convolution.
fn slides(importer: &Importer<'_>, node: &Node, [x, weight]: [Tensor; 2]) -> Result<Vec<Slide>, Unsupported> {
    let (extents, sizes) = (importer.extents(x)?, importer.extents(weight)?);
    let sizes: Vec<i64> = sizes.iter().skip(2).map(|size| *size as i64).collect();
    let slide = |axis: Axis| Slide {
        stride: Dim::from(axis.stride),
        dilation: Dim::from(axis.dilation),
        padding: axis.padding.map(Dim::from),
        ..Slide::default()
    };
    Ok(axes(importer, node, &extents, &sizes)?.into_iter().map(slide).collect())
}

/// Integers of 8 bits less their zero points, which may differ between outputs.
fn whole(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let [x, weight] = [importer.input(node, 0)?, importer.input(node, 1)?];
    let slides = slides(importer, node, [x, weight])?;
    let mut operands = [x, weight];
    for (position, operand) in operands.iter_mut().enumerate() {
        *operand = importer.graph.cast(*operand, ElementType::I32)?;
        if let Some(zero) = importer.optional(node, 2 + position)? {
            let zero = importer.graph.cast(zero, ElementType::I32)?;
            let count = importer.extents(zero)?.iter().product::<usize>();
            let mut shape = vec![1; importer.extents(*operand)?.len()];
            shape[0] = count;
            let zero = importer.graph.reshape(zero, dims(&shape))?;
            *operand = importer.graph.sub(*operand, zero)?;
        }
    }
    let [x, weight] = operands;
    Ok(vec![importer.graph.conv(x, weight, None, &slides, importer.int(node, "group", 1), Activation::Identity)?])
}

fn transpose(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let [x, weight] = [importer.input(node, 0)?, importer.input(node, 1)?];
    let bias = importer.optional(node, 2)?;
    let (extents, sizes) = (importer.extents(x)?, importer.extents(weight)?);
    let count = extents.len().saturating_sub(2);
    let strides = numbers(importer, node, "strides", count, 1)?;
    let dilations = numbers(importer, node, "dilations", count, 1)?;
    let pads = numbers(importer, node, "pads", 2 * count, 0)?;
    let more = numbers(importer, node, "output_padding", count, 0)?;
    let auto = importer.string(node, "auto_pad", "NOTSET");
    // Some versions of the format give batch and channels too.
    let wanted = importer.ints(node, "output_shape").map(|shape| shape[shape.len().saturating_sub(count)..].to_vec());
    let slide = |axis: usize| {
        let (extent, size, stride) = (extents[axis + 2] as i64, sizes[axis + 2] as i64, strides[axis]);
        let whole = (extent - 1) * stride + (size - 1) * dilations[axis] + 1 + more[axis];
        let (mut padding, mut output_padding) = ([pads[axis], pads[axis + count]], more[axis]);
        let wanted = match &wanted {
            Some(wanted) => Some(wanted[axis]),
            None if auto.starts_with("SAME") => Some(extent * stride),
            None => None,
        };
        if let Some(wanted) = wanted {
            padding = halves(whole - wanted, auto == "SAME_UPPER");
            output_padding += (wanted - whole).max(0);
        }
        Slide {
            stride: Dim::from(stride),
            dilation: Dim::from(dilations[axis]),
            padding: padding.map(Dim::from),
            output_padding: Dim::from(output_padding),
        }
    };
    let slides: Vec<Slide> = (0..count).map(slide).collect();
    Ok(vec![importer.graph.conv_transpose(
        x,
        weight,
        bias,
        &slides,
        importer.int(node, "group", 1),
        Activation::Identity,
    )?])
}
