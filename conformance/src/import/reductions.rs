//! Reductions.

use trefoil_graph::graph::GraphError;
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
