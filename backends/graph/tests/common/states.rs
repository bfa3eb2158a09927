//! What the tests of states share.

use trefoil_dsl::device::Device;
use trefoil_graph::compile::prove::prove;
use trefoil_graph::explain::ExplainedUse;
use trefoil_graph::{Executable, Extents, Graph, Model, Options, Symbol};

/// A graph compiled, and proved right in every build.
pub fn compile(graph: &Graph, device: &Device) -> Executable {
    let executable = Executable::compile(graph, &Model::new(), device, &Options::default()).unwrap();
    prove(graph, &executable.trace().unwrap()).unwrap();
    executable
}

/// A value for one symbol.
pub fn at(symbol: &Symbol, value: usize) -> Extents {
    Extents::with([(symbol, value as i64)]).unwrap()
}

/// What steps write into states, and how much of it.
pub fn updates(executable: &Executable) -> Vec<ExplainedUse> {
    let uses = executable.explain().steps.into_iter().flat_map(|step| step.uses);
    uses.filter(|used| used.written && used.part.is_some()).collect()
}
