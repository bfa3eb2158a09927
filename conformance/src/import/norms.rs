//! Norms: of rows, of channels, of lengths, and what is made of them.

use trefoil_graph::ops::norm::{BatchMoments, NormOperands};
use trefoil_graph::{ElementType, Graph, Tensor};

use super::{Import, Imported, Importer, Unsupported, axis, dims};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Softmax", |i, n| softmax(i, n, Graph::softmax)),
    ("LogSoftmax", |i, n| softmax(i, n, Graph::log_softmax)),
    ("Hardmax", |i, n| softmax(i, n, hardmax)),
    ("LayerNormalization", layer_norm),
    ("RMSNormalization", |i, n| {
        let (x, axes) = (i.input(n, 0)?, last_axes(i, n)?);
        let operands = NormOperands { gamma: i.optional(n, 1)?, ..NormOperands::default() };
        Ok(vec![i.graph.rms_norm(x, &axes, i.float(n, "epsilon", 1e-5), operands)?])
    }),
    ("InstanceNormalization", |i, n| {
        let (x, epsilon) = (i.input(n, 0)?, i.float(n, "epsilon", 1e-5));
        let (gamma, beta) = (i.optional(n, 1)?, i.optional(n, 2)?);
        Ok(vec![i.graph.instance_norm(x, epsilon, gamma, beta)?])
    }),
    ("GroupNormalization", group_norm),
    ("BatchNormalization", batch_norm),
    ("LpNormalization", |i, n| {
        let (x, at) = (i.input(n, 0)?, axis(i.int(n, "axis", -1)));
        // Smaller than every length but 0.
        const LEAST: f32 = f32::MIN_POSITIVE;
        Ok(vec![match i.int(n, "p", 2) {
            1 => i.graph.l1_normalise(x, &[at], LEAST)?,
            2 => i.graph.l2_normalise(x, &[at], 0.0)?,
            other => return Err(i.refuse(n, format!("p = {other}"))),
        }])
    }),
    ("MeanVarianceNormalization", |i, n| {
        let x = i.input(n, 0)?;
        let axes = i.ints(n, "axes").unwrap_or_else(|| vec![0, 2, 3]);
        let axes: Vec<isize> = axes.into_iter().map(axis).collect();
        Ok(vec![i.graph.layer_norm(x, &axes, 1e-9, NormOperands::default())?])
    }),
    ("LRN", local_response),
];

type AlongAxis = fn(&mut Graph, Tensor, isize) -> Result<Tensor, trefoil_graph::graph::GraphError>;

/// Along an axis; before version 13 over all axes from one on, as a matrix.
fn softmax(importer: &mut Importer<'_>, node: &Node, function: AlongAxis) -> Imported {
    let x = importer.input(node, 0)?;
    if importer.opset >= 13 {
        let at = axis(importer.int(node, "axis", -1));
        return Ok(vec![function(&mut importer.graph, x, at)?]);
    }
    let extents = importer.extents(x)?;
    let at = importer.int(node, "axis", 1);
    let at = usize::try_from(if at < 0 { at + extents.len() as i64 } else { at }).unwrap_or(0).min(extents.len());
    let matrix = [extents[..at].iter().product(), extents[at..].iter().product()];
    let matrix = importer.graph.reshape(x, dims(&matrix))?;
    let y = function(&mut importer.graph, matrix, -1)?;
    Ok(vec![importer.graph.reshape(y, dims(&extents))?])
}

/// 1 at the first of the largest elements of an axis, 0 elsewhere.
fn hardmax(graph: &mut Graph, x: Tensor, at: isize) -> Result<Tensor, trefoil_graph::graph::GraphError> {
    let ty = graph.type_of(x)?.clone();
    let rank = ty.rank();
    let place = usize::try_from(if at < 0 { at + rank.cast_signed() } else { at }).unwrap_or(0);
    let extent = ty.shape.get(place).and_then(trefoil_graph::Dim::constant).unwrap_or(0);
    let positions: Vec<u32> = (0..u32::try_from(extent).unwrap_or(0)).collect();
    let mut shape = vec![1usize; rank];
    shape[place.min(rank.saturating_sub(1))] = positions.len();
    let positions = graph.constant(ElementType::U32, dims(&shape), &positions)?;
    let largest = graph.argmax(x, &[at], true)?;
    let is_there = graph.eq(positions, largest)?;
    graph.cast(is_there, ty.element)
}

/// The axes from one on.
fn last_axes(importer: &Importer<'_>, node: &Node) -> Result<Vec<isize>, Unsupported> {
    let x = importer.input(node, 0)?;
    let rank = importer.ty(x)?.rank() as i64;
    let at = importer.int(node, "axis", -1);
    Ok((if at < 0 { at + rank } else { at }..rank).map(axis).collect())
}

fn layer_norm(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (x, axes) = (importer.input(node, 0)?, last_axes(importer, node)?);
    let operands = NormOperands {
        gamma: importer.optional(node, 1)?,
        beta: importer.optional(node, 2)?,
        ..NormOperands::default()
    };
    let epsilon = importer.float(node, "epsilon", 1e-5);
    if node.outputs.len() == 1 {
        return Ok(vec![importer.graph.layer_norm(x, &axes, epsilon, operands)?]);
    }
    let normed = importer.graph.layer_norm_and_moments(x, &axes, epsilon, operands)?;
    Ok(vec![normed.y, normed.mean, normed.inverse_deviation])
}

/// Before version 21 scale and bias are given for each group.
fn group_norm(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let groups = usize::try_from(importer.int(node, "num_groups", 0)).unwrap_or(0);
    let channels = importer.extents(x)?.get(1).copied().unwrap_or(0);
    let mut vectors = [importer.optional(node, 1)?, importer.optional(node, 2)?];
    if importer.opset < 21 && groups > 0 {
        for vector in vectors.iter_mut().flatten() {
            let column = importer.graph.reshape(*vector, dims(&[groups, 1]))?;
            let each = importer.graph.expand(column, dims(&[groups, channels / groups]))?;
            *vector = importer.graph.reshape(each, dims(&[channels]))?;
        }
    }
    let [gamma, beta] = vectors;
    Ok(vec![importer.graph.group_norm(x, groups, importer.float(node, "epsilon", 1e-5), gamma, beta)?])
}

/// By given moments; while training by the batch's own, which are mixed with the given ones as further outputs.
fn batch_norm(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let (gamma, beta) = (importer.optional(node, 1)?, importer.optional(node, 2)?);
    let given = BatchMoments { mean: importer.input(node, 3)?, variance: importer.input(node, 4)? };
    let epsilon = importer.float(node, "epsilon", 1e-5);
    if importer.int(node, "training_mode", 0) == 0 {
        return Ok(vec![importer.graph.batch_norm(x, given, epsilon, gamma, beta)?]);
    }
    let rank = importer.ty(x)?.rank() as i64;
    let momentum = importer.float(node, "momentum", 0.9);
    let axes: Vec<isize> = (0..rank).filter(|at| *at != 1).map(axis).collect();
    let graph = &mut importer.graph;
    let own = BatchMoments { mean: graph.mean(x, &axes, false)?, variance: graph.var(x, &axes, false, 0)? };
    let y = graph.batch_norm(x, own, epsilon, gamma, beta)?;
    let mut mixed = |given: Tensor, own: Tensor| {
        let (given, own) = (graph.affine(given, momentum, 0.0)?, graph.affine(own, 1.0 - momentum, 0.0)?);
        graph.add(given, own)
    };
    Ok(vec![y, mixed(given.mean, own.mean)?, mixed(given.variance, own.variance)?])
}

/// x / (bias + alpha / size * the sum of the squares of `size` neighbouring channels) ^ beta. The sum is a product with a matrix of ones around its diagonal.
fn local_response(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let extents = importer.extents(x)?;
    let &[batch, channels, ref rest @ ..] = extents.as_slice() else {
        return Err(importer.refuse(node, "no channels"));
    };
    let size = importer.int(node, "size", 1);
    let (alpha, beta) = (importer.float(node, "alpha", 1e-4), importer.float(node, "beta", 0.75));
    let bias = importer.float(node, "bias", 1.0);
    let (before, after) = ((size - 1) / 2, size / 2);
    let near = |to: i64, from: i64| from >= to - before && from <= to + after;
    let band =
        (0..channels as i64).flat_map(|to| (0..channels as i64).map(move |from| f32::from(u8::from(near(to, from)))));
    let band: Vec<f32> = band.collect();
    let graph = &mut importer.graph;
    let band = graph.constant(ElementType::F32, dims(&[1, channels, channels]), &band)?;
    let squares = graph.sqr(x)?;
    let squares = graph.reshape(squares, dims(&[batch, channels, rest.iter().product()]))?;
    let sums = graph.matmul(band, squares)?;
    let sums = graph.reshape(sums, dims(&extents))?;
    let divisor = graph.affine(sums, alpha / size as f32, bias)?;
    let divisor = graph.powf(divisor, beta)?;
    Ok(vec![graph.div(x, divisor)?])
}
