//! Ops that join, border, repeat and gather.

use trefoil_graph::graph::{GraphError, Tensor as GraphTensor};
use trefoil_graph::ops::fill::Number;
use trefoil_graph::ops::pull::blocks::BlockOrder;
use trefoil_graph::ops::pull::border::Border;
use trefoil_graph::{Dim, ElementType, Graph, Tensor};

use super::maps::numbered;
use super::{Import, Imported, Importer, Unsupported, axis};
use crate::cases::{Attribute, Node};

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Concat", |i, n| {
        let inputs = i.inputs(n)?;
        let at = axis(i.int(n, "axis", 1));
        Ok(vec![i.graph.concat(&inputs, at)?])
    }),
    ("Pad", pad),
    ("CenterCropPad", crop_or_pad),
    ("Tile", |i, n| {
        let x = i.input(n, 0)?;
        let repeats = i.numbers(n, 1)?.unwrap_or_default();
        let repeats: Vec<Dim> = repeats.into_iter().map(Dim::from).collect();
        Ok(vec![i.graph.tile(x, &repeats)?])
    }),
    ("Gather", |i, n| gather(i, n, Graph::gather)),
    ("GatherElements", |i, n| gather(i, n, Graph::gather_elements)),
    ("GatherND", gather_nd),
    ("OneHot", one_hot),
    ("Trilu", |i, n| {
        let x = i.input(n, 0)?;
        let diagonal = i.numbers(n, 1)?.and_then(|k| k.first().copied()).unwrap_or(0);
        let upper = i.int(n, "upper", 1) != 0;
        Ok(vec![if upper { i.graph.triu(x, diagonal)? } else { i.graph.tril(x, diagonal)? }])
    }),
    ("EyeLike", |i, n| {
        let x = i.input(n, 0)?;
        let ty = i.ty(x)?;
        let element = numbered(i, n, "dtype")?.unwrap_or(ty.element);
        let [rows, columns] = ty.shape.as_slice() else { return Err(i.refuse(n, "a tensor that is no matrix")) };
        Ok(vec![i.graph.eye(rows, columns, i.int(n, "k", 0), element)?])
    }),
    ("Range", range),
    ("DepthToSpace", |i, n| blocks(i, n, Graph::depth_to_space)),
    ("SpaceToDepth", |i, n| blocks(i, n, Graph::space_to_depth)),
    ("ReverseSequence", |i, n| {
        let (x, lengths) = (i.input(n, 0)?, i.input(n, 1)?);
        let (batch, time) = (axis(i.int(n, "batch_axis", 1)), axis(i.int(n, "time_axis", 0)));
        Ok(vec![i.graph.reverse_sequence(x, lengths, batch, time)?])
    }),
    ("Compress", compress),
];

type Gather = fn(&mut Graph, GraphTensor, GraphTensor, isize) -> Result<GraphTensor, GraphError>;
type Blocks = fn(&mut Graph, GraphTensor, i64, BlockOrder) -> Result<GraphTensor, GraphError>;

/// Indices as words, of which negative ones count from the end of an axis.
pub(super) fn from_the_end(
    importer: &mut Importer<'_>,
    indices: Tensor,
    extent: Tensor,
) -> Result<Tensor, Unsupported> {
    let graph = &mut importer.graph;
    let words = graph.cast(indices, ElementType::I32)?;
    let zero = graph.scalar(0, ElementType::I32)?;
    let negative = graph.lt(words, zero)?;
    let counted = graph.add(words, extent)?;
    Ok(graph.where_(negative, counted, words)?)
}

fn gather(importer: &mut Importer<'_>, node: &Node, function: Gather) -> Imported {
    let (x, indices) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let extents = importer.extents(x)?;
    let at = importer.int(node, "axis", 0);
    let place = if at < 0 { at + extents.len() as i64 } else { at };
    let extent = usize::try_from(place).ok().and_then(|place| extents.get(place)).copied().unwrap_or(0);
    let extent = importer.graph.scalar(extent as i64, ElementType::I32)?;
    let indices = from_the_end(importer, indices, extent)?;
    Ok(vec![function(&mut importer.graph, x, indices, axis(at))?])
}

fn gather_nd(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (x, indices) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let (extents, batch) = (importer.extents(x)?, importer.int(node, "batch_dims", 0) as usize);
    let named = importer.extents(indices)?.last().copied().unwrap_or(0);
    let extents: Vec<i32> = extents.iter().skip(batch).take(named).map(|extent| *extent as i32).collect();
    let extents = importer.constant(ElementType::I32, &[extents.len()], bytemuck::cast_slice(&extents))?;
    let indices = from_the_end(importer, indices, extents)?;
    Ok(vec![importer.graph.gather_nd(x, indices, batch)?])
}

fn one_hot(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (indices, values) = (importer.input(node, 0)?, importer.input(node, 2)?);
    let depth = importer.numbers(node, 1)?.and_then(|depth| depth.first().copied()).unwrap_or(0);
    let element = importer.ty(values)?.element;
    let [off, on] = importer.values_of(values)?[..] else {
        return Err(importer.refuse(node, "values that are no pair"));
    };
    let extent = importer.graph.scalar(depth as i32, ElementType::I32)?;
    let indices = from_the_end(importer, indices, extent)?;
    let at = axis(importer.int(node, "axis", -1));
    let values = [Number::Float(off), Number::Float(on)];
    Ok(vec![importer.graph.one_hot(indices, depth, values, element, at)?])
}

/// Pads in front of all axes, then behind all.
fn pad(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let ty = importer.ty(x)?;
    let rank = ty.rank();
    let given = importer.ints_or_input(node, "pads", 1)?.unwrap_or_default();
    let axes = match importer.numbers(node, 3)? {
        Some(axes) => axes,
        None => (0..rank as i64).collect(),
    };
    if given.len() != 2 * axes.len() {
        return Err(importer.refuse(node, format!("{} pads for {} axes", given.len(), axes.len())));
    }
    let mut pads = vec![[Dim::from(0i64), Dim::from(0i64)]; rank];
    for (position, at) in axes.iter().enumerate() {
        let place = usize::try_from(if *at < 0 { at + rank as i64 } else { *at }).unwrap_or(usize::MAX);
        let Some(pair) = pads.get_mut(place) else { return Err(importer.refuse(node, format!("axis {at}"))) };
        *pair = [Dim::from(given[position]), Dim::from(given[position + axes.len()])];
    }
    let border = match importer.string(node, "mode", "constant") {
        "constant" => {
            let value = match importer.optional(node, 2)? {
                Some(value) => importer.values_of(value)?.first().copied().unwrap_or(0.0),
                None => f64::from(importer.float(node, "value", 0.0)),
            };
            Border::Constant(Number::Float(value))
        }
        "edge" => Border::Edge,
        "reflect" => Border::Reflect,
        "wrap" => Border::Wrap,
        mode => return Err(importer.refuse(node, format!("mode `{mode}`"))),
    };
    Ok(vec![importer.graph.pad(x, &pads, border)?])
}

fn crop_or_pad(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let extents = importer.extents(x)?;
    let wanted = importer.numbers(node, 1)?.unwrap_or_default();
    let axes = importer.ints(node, "axes").unwrap_or_else(|| (0..extents.len() as i64).collect());
    let mut pads = vec![[Dim::from(0i64), Dim::from(0i64)]; extents.len()];
    for (at, wanted) in axes.iter().zip(wanted) {
        let place = usize::try_from(if *at < 0 { at + extents.len() as i64 } else { *at }).unwrap_or(usize::MAX);
        let Some(extent) = extents.get(place) else { return Err(importer.refuse(node, format!("axis {at}"))) };
        let added = wanted - *extent as i64;
        // Half of what is added or taken away, rounded toward none of it.
        let front = if added < 0 { -(-added / 2) } else { added / 2 };
        pads[place] = [Dim::from(front), Dim::from(added - front)];
    }
    Ok(vec![importer.graph.pad(x, &pads, Border::Constant(Number::Integer(0)))?])
}

/// Its length must be known, and with it all that it is made from.
fn range(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let start = importer.input(node, 0)?;
    let element = importer.ty(start)?.element;
    let mut numbers = [0.0; 3];
    for (position, number) in numbers.iter_mut().enumerate() {
        let input = importer.input(node, position)?;
        *number = importer.values_of(input)?.first().copied().unwrap_or(0.0);
    }
    let [start, limit, delta] = numbers;
    let count = ((limit - start) / delta).ceil().max(0.0) as i64;
    Ok(vec![importer.graph.arange(start, delta, count, element)?])
}

fn blocks(importer: &mut Importer<'_>, node: &Node, function: Blocks) -> Imported {
    let x = importer.input(node, 0)?;
    let block = importer.int(node, "blocksize", 1);
    let order = match importer.string(node, "mode", "DCR") {
        "CRD" => BlockOrder::ChannelFirst,
        _ => BlockOrder::PositionFirst,
    };
    Ok(vec![function(&mut importer.graph, x, block, order)?])
}

/// The condition decides the result's extent, so that it must be known.
fn compress(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let mut x = importer.input(node, 0)?;
    let condition = importer.numbers(node, 1)?.unwrap_or_default();
    let at = match node.attributes.get("axis") {
        Some(Attribute::Int(at)) => axis(*at),
        _ => {
            let count: usize = importer.extents(x)?.iter().product();
            x = importer.graph.reshape(x, vec![Dim::from(count)])?;
            0
        }
    };
    let kept = condition.iter().enumerate().filter(|(_, holds)| **holds != 0).map(|(place, _)| place as i32);
    let kept: Vec<i32> = kept.collect();
    let indices = importer.constant(ElementType::I32, &[kept.len()], bytemuck::cast_slice(&kept))?;
    Ok(vec![importer.graph.gather(x, indices, at)?])
}
