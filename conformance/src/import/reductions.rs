//! Reductions, and norms.

use trefoil_graph::graph::GraphError;
use trefoil_graph::{Graph, Tensor};

use super::{Import, Imported, Importer, axis};
use crate::cases::Node;

type Reduce = fn(&mut Graph, Tensor, &[isize], bool) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("ReduceSum", |i, n| reduce(i, n, Graph::sum)),
    ("ReduceMax", |i, n| reduce(i, n, Graph::max_over)),
    ("Softmax", softmax),
];

fn reduce(importer: &mut Importer<'_>, node: &Node, function: Reduce) -> Imported {
    let x = importer.input(node, 0)?;
    let rank = importer.ty(x)?.rank() as i64;
    let axes = importer.ints_or_input(node, "axes", 1)?.unwrap_or_default();
    let axes: Vec<isize> = match (axes.is_empty(), importer.int(node, "noop_with_empty_axes", 0) != 0) {
        (true, true) => return Ok(vec![x]),
        (true, false) => (0..rank).map(axis).collect(),
        (false, _) => axes.into_iter().map(axis).collect(),
    };
    let keep = importer.int(node, "keepdims", 1) != 0;
    Ok(vec![function(&mut importer.graph, x, &axes, keep)?])
}

/// Before version 13 over all axes from one on.
fn softmax(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    if importer.opset < 13 {
        return Err(importer.refuse(node, "the meaning before version 13"));
    }
    let at = axis(importer.int(node, "axis", -1));
    Ok(vec![importer.graph.softmax(x, at)?])
}
