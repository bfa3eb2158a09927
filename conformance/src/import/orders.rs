//! Scans, and the best elements of an axis.

use trefoil_graph::graph::GraphError;
use trefoil_graph::ops::{Best, Sweep};
use trefoil_graph::{Graph, Tensor};

use super::{Import, Imported, Importer, Unsupported, axis, element_type};
use crate::cases::Node;

type Scan = fn(&mut Graph, Tensor, isize, Sweep) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] =
    &[("CumSum", |i, n| scan(i, n, Graph::cumsum)), ("CumProd", |i, n| scan(i, n, Graph::cumprod)), ("TopK", top_k)];

/// The axis is an input.
fn scan(importer: &mut Importer<'_>, node: &Node, function: Scan) -> Imported {
    let x = importer.input(node, 0)?;
    let at = importer.numbers(node, 1)?.and_then(|numbers| numbers.first().copied()).unwrap_or(0);
    let [exclusive, reverse] = ["exclusive", "reverse"].map(|name| importer.int(node, name, 0) != 0);
    Ok(vec![function(&mut importer.graph, x, axis(at), Sweep { exclusive, reverse })?])
}

/// How many is an attribute, or the input that newer versions have in its place; places are 64-bit integers.
fn top_k(importer: &mut Importer<'_>, node: &Node) -> Imported {
    let x = importer.input(node, 0)?;
    let k = match importer.int(node, "k", 0) {
        0 => importer.numbers(node, 1)?.and_then(|numbers| numbers.first().copied()).unwrap_or(0),
        k => k,
    };
    let at = axis(importer.int(node, "axis", -1));
    let [largest, sorted] = ["largest", "sorted"].map(|name| importer.int(node, name, 1) != 0);
    let best = Best { largest, sorted };
    let (values, places) = importer.graph.top_k(x, usize::try_from(k).unwrap_or(0), at, best)?;
    let element = element_type("int64").ok_or_else(|| Unsupported::Element("int64".to_owned()))?;
    Ok(vec![values, importer.graph.cast(places, element)?])
}
