//! The nodes of a graph run one by one.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use trefoil_dsl::device::Device;
use trefoil_graph::graph::{Leaf, LeafKind};
use trefoil_graph::{Data, Eager, EagerTensor, Graph, HostTensor};

use super::Values;

/// The `Eager` of a device that all tests of a program share, so that none compiles what another has compiled.
fn shared(device: &Device) -> Eager {
    static SHARED: OnceLock<Mutex<BTreeMap<u64, Eager>>> = OnceLock::new();
    let mut all = SHARED.get_or_init(Mutex::default).lock().unwrap();
    all.entry(device.id()).or_insert_with(|| Eager::new(device)).clone()
}

/// The extents of a type without symbols.
fn extents(shape: &[trefoil_graph::Dim]) -> Vec<usize> {
    shape.iter().map(|extent| usize::try_from(extent.constant().unwrap()).unwrap()).collect()
}

/// What each output of a graph without symbols is if every node is a call of its own; inputs that nobody gives are not, and neither is what needs them.
pub fn one_by_one(graph: &Graph, device: &Device, inputs: &[(&str, Values)]) -> Vec<(String, HostTensor)> {
    let eager = shared(device);
    let mut made: Vec<Option<Vec<EagerTensor>>> = Vec::new();
    for node in graph.nodes() {
        let op: &dyn Any = &*node.op;
        let tensor = |data: Data<'_>| vec![eager.tensor(&extents(&node.outputs[0].shape), data).unwrap()];
        made.push(match op.downcast_ref::<Leaf>().map(|leaf| &leaf.kind) {
            Some(LeafKind::Constant(bytes)) => Some(tensor(Data::from_bytes(node.outputs[0].element, bytes).unwrap())),
            Some(_) => {
                let given = inputs.iter().find(|(name, _)| *name == node.name);
                given.map(|(_, values)| tensor(values.data()))
            }
            None => {
                let port = |input| place(input, &made).cloned();
                let operands: Option<Vec<EagerTensor>> = node.inputs.iter().map(port).collect();
                operands.map(|operands| {
                    let operands: Vec<_> = operands.iter().collect();
                    eager.add_shared(&node.op, &operands).unwrap_or_else(|error| panic!("`{}`: {error}", node.name))
                })
            }
        });
    }
    let outputs = graph.outputs().iter();
    outputs.filter_map(|(name, tensor)| Some((name.clone(), place(tensor, &made)?.host().unwrap()))).collect()
}

fn place<'m>(tensor: &trefoil_graph::Tensor, made: &'m [Option<Vec<EagerTensor>>]) -> Option<&'m EagerTensor> {
    made[tensor.node()].as_ref().map(|outputs| &outputs[tensor.port()])
}
