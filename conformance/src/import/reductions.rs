//! Reductions, and norms.

use trefoil_graph::graph::GraphError;
use trefoil_graph::ops::layer_norm::LayerNormOperands;
use trefoil_graph::{Graph, Tensor};

use super::{Import, Imported, Importer, Unsupported, axis, element_type};
use crate::cases::Node;

type Reduce = fn(&mut Graph, Tensor, &[isize], bool) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("ReduceSum", |i, n| reduce(i, n, Graph::sum)),
    ("ReduceMax", |i, n| reduce(i, n, Graph::max_over)),
    ("ReduceMin", |i, n| reduce(i, n, Graph::min_over)),
    ("ReduceMean", |i, n| reduce(i, n, Graph::mean)),
    ("ReduceProd", |i, n| reduce(i, n, Graph::prod)),
    ("ReduceL1", |i, n| reduce(i, n, Graph::l1)),
    ("ReduceL2", |i, n| reduce(i, n, Graph::l2)),
    ("ReduceLogSumExp", |i, n| reduce(i, n, Graph::logsumexp)),
    ("ReduceSumSquare", |i, n| {
        reduce(i, n, |graph, x, axes, keep| {
            let squares = graph.sqr(x)?;
            graph.sum(squares, axes, keep)
        })
    }),
    ("ReduceLogSum", |i, n| {
        reduce(i, n, |graph, x, axes, keep| {
            let sum = graph.sum(x, axes, keep)?;
            graph.log(sum)
        })
    }),
    ("ArgMax", |i, n| place(i, n, [Graph::argmax, Graph::last_argmax])),
    ("ArgMin", |i, n| place(i, n, [Graph::argmin, Graph::last_argmin])),
    ("Softmax", softmax),
    ("LogSoftmax", |i, n| {
        let x = i.input(n, 0)?;
        if i.opset < 13 {
            return Err(i.refuse(n, "the meaning before version 13"));
        }
        let at = axis(i.int(n, "axis", -1));
        let sum = i.graph.logsumexp(x, &[at], true)?;
        Ok(vec![i.graph.sub(x, sum)?])
    }),
    ("LayerNormalization", layer_norm),
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

/// Where the largest or smallest element of an axis is, as a 64-bit integer.
fn place(importer: &mut Importer<'_>, node: &Node, [first, last]: [Reduce; 2]) -> Imported {
    let x = importer.input(node, 0)?;
    let function = if importer.int(node, "select_last_index", 0) == 0 { first } else { last };
    let at = axis(importer.int(node, "axis", 0));
    let keep = importer.int(node, "keepdims", 1) != 0;
    let found = function(&mut importer.graph, x, &[at], keep)?;
    let element = element_type("int64").ok_or_else(|| Unsupported::Element("int64".to_owned()))?;
    Ok(vec![importer.graph.cast(found, element)?])
}

/// Along the last axis.
fn layer_norm(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let rank = importer.ty(x)?.rank() as i64;
    let at = importer.int(node, "axis", -1);
    if at != -1 && at != rank - 1 {
        return Err(importer.refuse(node, "several axes"));
    }
    let operands =
        LayerNormOperands { residual: None, gamma: importer.optional(node, 1)?, beta: importer.optional(node, 2)? };
    Ok(vec![importer.graph.layer_norm(x, importer.float(node, "epsilon", 1e-5), operands)?])
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
