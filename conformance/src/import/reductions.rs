//! Reductions.

use trefoil_graph::graph::GraphError;
use trefoil_graph::{ElementType, Graph, Tensor};

use super::{Import, Imported, Importer, Unsupported, axis, dims, element_type};
use crate::cases::Node;

type Reduce = fn(&mut Graph, Tensor, &[isize], bool) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] = &[
    ("ReduceSum", |i, n| reduce(i, n, Graph::sum)),
    ("ReduceMax", |i, n| extreme(i, n, Graph::max_over, f64::NEG_INFINITY)),
    ("ReduceMin", |i, n| extreme(i, n, Graph::min_over, f64::INFINITY)),
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

/// The axes that are reduced; `None` if there are none and none is meant.
fn axes(importer: &Importer<'_>, node: &Node, x: Tensor) -> Result<Option<Vec<isize>>, Unsupported> {
    let rank = importer.ty(x)?.rank() as i64;
    let axes = importer.ints_or_input(node, "axes", 1)?.unwrap_or_default();
    Ok(match (axes.is_empty(), importer.int(node, "noop_with_empty_axes", 0) != 0) {
        (true, true) => None,
        (true, false) => Some((0..rank).map(axis).collect()),
        (false, _) => Some(axes.into_iter().map(axis).collect()),
    })
}

fn reduce(importer: &mut Importer<'_>, node: &Node, function: Reduce) -> Imported {
    let x = importer.input(node, 0)?;
    let Some(axes) = axes(importer, node, x)? else { return Ok(vec![x]) };
    let keep = importer.int(node, "keepdims", 1) != 0;
    Ok(vec![function(&mut importer.graph, x, &axes, keep)?])
}

/// Of nothing ONNX has the value that every other is better than; the graph has none.
fn extreme(importer: &mut Importer<'_>, node: &Node, function: Reduce, of_none: f64) -> Imported {
    let x = importer.input(node, 0)?;
    let Some(axes) = axes(importer, node, x)? else { return Ok(vec![x]) };
    let extents = importer.extents(x)?;
    let rank = isize::try_from(extents.len()).unwrap_or(isize::MAX);
    let is_reduced = |at: usize| axes.iter().any(|axis| usize::try_from(axis.rem_euclid(rank.max(1))) == Ok(at));
    let keep = importer.int(node, "keepdims", 1) != 0;
    if (0..extents.len()).all(|at| extents[at] > 0 || !is_reduced(at)) {
        return Ok(vec![function(&mut importer.graph, x, &axes, keep)?]);
    }
    let kept = (0..extents.len()).filter(|at| keep || !is_reduced(*at));
    let shape: Vec<usize> = kept.map(|at| if is_reduced(at) { 1 } else { extents[at] }).collect();
    let element = importer.ty(x)?.element;
    let value = match element {
        ElementType::Bool => f64::from(u8::from(of_none > 0.0)),
        element if element.is_float() => of_none,
        element => return Err(importer.refuse(node, format!("no elements, of {element}"))),
    };
    Ok(vec![importer.graph.fill(value, element, dims(&shape))?])
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
