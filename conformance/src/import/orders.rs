//! Scans: running sums and products.

use trefoil_graph::graph::GraphError;
use trefoil_graph::{Graph, Tensor};

use super::{Import, Imported, Importer, axis};
use crate::cases::Node;

type Scan = fn(&mut Graph, Tensor, isize, bool, bool) -> Result<Tensor, GraphError>;

/// By ONNX's names.
pub(super) const IMPORTS: &[(&str, Import)] =
    &[("CumSum", |i, n| scan(i, n, Graph::cumsum)), ("CumProd", |i, n| scan(i, n, Graph::cumprod))];

/// The axis is an input.
fn scan(importer: &mut Importer<'_>, node: &Node, function: Scan) -> Imported {
    let x = importer.input(node, 0)?;
    let at = importer.numbers(node, 1)?.and_then(|numbers| numbers.first().copied()).unwrap_or(0);
    let (exclusive, reverse) = (importer.int(node, "exclusive", 0) != 0, importer.int(node, "reverse", 0) != 0);
    Ok(vec![function(&mut importer.graph, x, axis(at), exclusive, reverse)?])
}
