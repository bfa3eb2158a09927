//! Activations that are made of several ops, and the windows of spectra.

use trefoil_graph::Tensor;

use super::maps::numbered;
use super::{Import, Imported, Importer, Unsupported};
use crate::cases::Node;
use trefoil_graph::ElementType;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("PRelu", |i, n| {
        let (x, slope) = (i.input(n, 0)?, i.input(n, 1)?);
        let zero = zero_like(i, x)?;
        let below = i.graph.lt(x, zero)?;
        let bent = i.graph.mul(x, slope)?;
        Ok(vec![i.graph.where_(below, bent, x)?])
    }),
    ("Softsign", |i, n| {
        let x = i.input(n, 0)?;
        let size = i.graph.abs(x)?;
        let below = i.graph.affine(size, 1.0, 1.0)?;
        Ok(vec![i.graph.div(x, below)?])
    }),
    ("Shrink", shrink),
    ("ThresholdedRelu", |i, n| {
        let x = i.input(n, 0)?;
        let (element, alpha) = (i.ty(x)?.element, i.float(n, "alpha", 1.0));
        let (zero, bound) = (zero_like(i, x)?, i.graph.scalar(alpha, element)?);
        let above = i.graph.gt(x, bound)?;
        Ok(vec![i.graph.where_(above, x, zero)?])
    }),
    ("SwiGLU", |i, n| {
        let (a, b) = (i.input(n, 0)?, i.input(n, 1)?);
        let scaled = i.graph.affine(a, i.float(n, "alpha", 1.0), 0.0)?;
        let gate = i.graph.sigmoid(scaled)?;
        let swish = i.graph.mul(a, gate)?;
        Ok(vec![i.graph.mul(swish, b)?])
    }),
    ("HannWindow", |i, n| window(i, n, [0.5, 0.5, 0.0])),
    ("HammingWindow", |i, n| window(i, n, [25.0 / 46.0, 21.0 / 46.0, 0.0])),
    ("BlackmanWindow", |i, n| window(i, n, [0.42, 0.5, 0.08])),
];

fn zero_like(importer: &mut Importer<'_>, x: Tensor) -> Result<Tensor, Unsupported> {
    let element = importer.ty(x)?.element;
    Ok(importer.graph.scalar(0.0, element)?)
}

/// Nothing near 0, and moved toward it elsewhere.
fn shrink(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let element = importer.ty(x)?.element;
    let (bias, bound) = (importer.float(node, "bias", 0.0), importer.float(node, "lambd", 0.5));
    let zero = zero_like(importer, x)?;
    let graph = &mut importer.graph;
    let (low, high) = (graph.scalar(-bound, element)?, graph.scalar(bound, element)?);
    let (below, above) = (graph.lt(x, low)?, graph.gt(x, high)?);
    let (raised, lowered) = (graph.affine(x, 1.0, bias)?, graph.affine(x, 1.0, -bias)?);
    let upper = graph.where_(above, lowered, zero)?;
    Ok(vec![graph.where_(below, raised, upper)?])
}

/// `a - b cos(2 pi n / N) + c cos(4 pi n / N)`, where `N` is the window's length, or one less if it is symmetric. The length must be known.
fn window(importer: &mut Importer<'_>, node: &Node, [a, b, c]: [f32; 3]) -> Imported {
    let length = importer.numbers(node, 0)?.and_then(|length| length.first().copied()).unwrap_or(0);
    let element = numbered(importer, node, "output_datatype")?.unwrap_or(ElementType::F32);
    let is_periodic = importer.int(node, "periodic", 1) != 0;
    let period = (if is_periodic { length } else { length - 1 }).max(1);
    let graph = &mut importer.graph;
    let places = graph.arange(0.0, 1.0, length, ElementType::F32)?;
    let mut turn = |times: f64, factor: f32| {
        let angle = (times * std::f64::consts::TAU / period as f64) as f32;
        let angles = graph.affine(places, angle, 0.0)?;
        let cosine = graph.cos(angles)?;
        graph.affine(cosine, factor, 0.0)
    };
    let (first, second) = (turn(1.0, -b)?, turn(2.0, c)?);
    let sum = graph.add(first, second)?;
    let window = graph.affine(sum, 1.0, a)?;
    Ok(vec![if element == ElementType::F32 { window } else { graph.cast(window, element)? }])
}
