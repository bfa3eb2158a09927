//! Updates that go to where indices say, and the sum of what windows see.

use trefoil_graph::ops::pull::pool::Window;
use trefoil_graph::ops::pull::slices::Overhang;
use trefoil_graph::ops::scatter::Update;
use trefoil_graph::{Dim, ElementType};

use super::pulls::from_the_end;
use super::{Import, Imported, Importer, Unsupported, axis, dims};
use crate::cases::Node;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("Scatter", elements),
    ("ScatterElements", elements),
    ("ScatterND", parts),
    ("TensorScatter", cache),
    ("Col2Im", overlaid),
];

fn update(importer: &Importer<'_>, node: &Node) -> Result<Update, Unsupported> {
    Ok(match importer.string(node, "reduction", "none") {
        "none" => Update::Set,
        "add" => Update::Add,
        "mul" => Update::Mul,
        "max" => Update::Max,
        "min" => Update::Min,
        other => return Err(importer.refuse(node, format!("reduction = {other}"))),
    })
}

fn elements(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (x, indices, updates) = (importer.input(node, 0)?, importer.input(node, 1)?, importer.input(node, 2)?);
    let (extents, at) = (importer.extents(x)?, importer.int(node, "axis", 0));
    let place = if at < 0 { at + extents.len() as i64 } else { at };
    let extent = usize::try_from(place).ok().and_then(|place| extents.get(place)).copied().unwrap_or(0);
    let extent = importer.graph.scalar(extent as i64, ElementType::I32)?;
    let indices = from_the_end(importer, indices, extent)?;
    let update = update(importer, node)?;
    Ok(vec![importer.graph.scatter_elements(x, indices, updates, axis(at), update)?])
}

fn parts(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (x, indices, updates) = (importer.input(node, 0)?, importer.input(node, 1)?, importer.input(node, 2)?);
    let named = importer.extents(indices)?.last().copied().unwrap_or(0);
    let extents: Vec<i32> = importer.extents(x)?.iter().take(named).map(|extent| *extent as i32).collect();
    let extents = importer.constant(ElementType::I32, &[extents.len()], bytemuck::cast_slice(&extents))?;
    let indices = from_the_end(importer, indices, extents)?;
    let update = update(importer, node)?;
    Ok(vec![importer.graph.scatter_nd(x, indices, updates, update)?])
}

/// Each sequence of a batch is written from where it is on, along an axis behind the first.
fn cache(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let (past, update) = (importer.input(node, 0)?, importer.input(node, 1)?);
    let extents = importer.extents(past)?;
    let at = importer.int(node, "axis", -2);
    let place = usize::try_from(if at < 0 { at + extents.len() as i64 } else { at }).unwrap_or(0);
    if place == 0 || place >= extents.len() {
        return Err(importer.refuse(node, format!("axis = {at}")));
    }
    let overhang = match importer.string(node, "mode", "linear") {
        "linear" => Overhang::Dropped,
        "circular" => Overhang::Wrapped,
        other => return Err(importer.refuse(node, format!("mode = {other}"))),
    };
    let given = importer.optional(node, 2)?;
    let graph = &mut importer.graph;
    let batch = extents[0];
    let starts = match given {
        Some(starts) => {
            let starts = graph.cast(starts, ElementType::I32)?;
            graph.unsqueeze(starts, -1)?
        }
        None => graph.fill(0, ElementType::I32, dims(&[batch, 1]))?,
    };
    // Nothing moves along the axes between.
    let starts = if place == 1 {
        starts
    } else {
        let others = graph.fill(0, ElementType::I32, dims(&[batch, place - 1]))?;
        graph.concat(&[others, starts], 1)?
    };
    Ok(vec![graph.update_slice(past, update, starts, 1, overhang)?])
}

/// Pads stand in front of all axes, then behind all.
fn overlaid(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let image = importer.numbers(node, 1)?.unwrap_or_default();
    let sizes = importer.numbers(node, 2)?.unwrap_or_default();
    let axes = sizes.len();
    let of = |name: &str, count: usize, default: i64| {
        let numbers = importer.ints(node, name).unwrap_or_else(|| vec![default; count]);
        if numbers.len() == count { Ok(numbers) } else { Err(importer.refuse(node, format!("{name} = {numbers:?}"))) }
    };
    let (strides, dilations, pads) = (of("strides", axes, 1)?, of("dilations", axes, 1)?, of("pads", 2 * axes, 0)?);
    let window = |at: usize| Window {
        stride: Dim::from(strides[at]),
        dilation: Dim::from(dilations[at]),
        padding: [Dim::from(pads[at]), Dim::from(pads[axes + at])],
        ..Window::new(sizes[at])
    };
    let windows: Vec<Window> = (0..axes).map(window).collect();
    let image: Vec<Dim> = image.into_iter().map(Dim::from).collect();
    Ok(vec![importer.graph.col2im(x, &image, &windows)?])
}
