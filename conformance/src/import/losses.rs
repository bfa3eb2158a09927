//! Losses of classes: what is picked of logarithms of probabilities, weighted by class.

use trefoil_graph::{ElementType, Tensor};

use super::{Import, Importer, Unsupported, dims};
use crate::cases::{Attribute, Node};

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("NegativeLogLikelihoodLoss", |i, n| {
        let x = i.input(n, 0)?;
        Ok(vec![picked(i, n, x)?])
    }),
    ("SoftmaxCrossEntropyLoss", |i, n| {
        let x = i.input(n, 0)?;
        let logarithms = i.graph.log_softmax(x, 1)?;
        Ok(vec![picked(i, n, logarithms)?, logarithms])
    }),
];

/// Classes are the second axis of `logarithms`, and the other axes are those of the targets.
fn picked(importer: &mut Importer<'_>, node: &Node, logarithms: Tensor) -> Result<Tensor, Unsupported> {
    let (target, weights) = (importer.input(node, 1)?, importer.optional(node, 2)?);
    let reduction = importer.string(node, "reduction", "mean");
    if !["none", "sum", "mean"].contains(&reduction) {
        return Err(importer.refuse(node, format!("reduction = {reduction}")));
    }
    let (element, places) = (importer.ty(logarithms)?.element, importer.extents(target)?);
    let graph = &mut importer.graph;
    let mut class = graph.cast(target, ElementType::I32)?;
    let mut counts = None;
    if let Some(Attribute::Int(ignored)) = node.attributes.get("ignore_index") {
        let ignored = graph.scalar(*ignored, ElementType::I32)?;
        let counted = graph.ne(class, ignored)?;
        // What is ignored may be no class.
        let zero = graph.scalar(0, ElementType::I32)?;
        class = graph.where_(counted, class, zero)?;
        counts = Some(counted);
    }
    let index = graph.unsqueeze(class, 1)?;
    let found = graph.gather_elements(logarithms, index, 1)?;
    let found = graph.squeeze(found, 1)?;
    let mut weight = match weights {
        Some(weights) => graph.gather(weights, class, 0)?,
        None => graph.fill(1.0, element, dims(&places))?,
    };
    if let Some(counts) = counts {
        let zero = graph.scalar(0.0, element)?;
        weight = graph.where_(counts, weight, zero)?;
    }
    let loss = graph.mul(found, weight)?;
    let loss = graph.neg(loss)?;
    if reduction == "none" {
        return Ok(loss);
    }
    let axes: Vec<isize> = (0..places.len()).filter_map(|axis| isize::try_from(axis).ok()).collect();
    let sum = graph.sum(loss, &axes, false)?;
    if reduction == "sum" {
        return Ok(sum);
    }
    let all = graph.sum(weight, &axes, false)?;
    Ok(graph.div(sum, all)?)
}
