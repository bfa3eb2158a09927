//! From nodes to work on values: views become layouts, what strides cannot say is copied, and only what an output or a state needs is kept.

use std::collections::BTreeMap;

use trefoil_dsl::support::check::COPY_MULTIPLE;

use super::program::{
    FillWork, KernelsWork, Located, MapWork, Meaning, Origin, Program, PullWork, Target, UpdateWork, ValueId, Work,
};
use super::{checked, keep};
use crate::error::{Error, Result};
use crate::graph::{Graph, LeafKind, Node, Tensor};
use crate::op::OpKind;
use crate::types::{Layout, TensorType};

/// Makes the program of a graph.
///
/// # Errors
/// A view has no layout, or a param or constant has no fixed shape.
pub fn legalise(graph: &Graph) -> Result<Program> {
    let mut stage = Stage { graph, program: Program::default(), located: BTreeMap::new() };
    let live = live_nodes(graph);
    for (index, node) in graph.nodes().iter().enumerate().filter(|(index, _)| live[*index]) {
        stage.node(index as u32, node)?;
    }
    for (name, tensor) in graph.outputs() {
        stage.output(name, *tensor)?;
    }
    let program = keep::keep(graph, stage.program)?;
    checked("legalise", || program.check())?;
    Ok(program)
}

/// For each node, whether an output or a state needs it.
fn live_nodes(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes().len()];
    let of_states = graph.states().iter().flat_map(|state| [&state.found, &state.left]);
    for tensor in graph.outputs().iter().map(|(_, tensor)| tensor).chain(of_states) {
        live[tensor.node as usize] = true;
    }
    // Nodes come after what they read, so one pass from the last is enough.
    for index in (0..live.len()).rev() {
        if live[index] {
            for input in &graph.nodes()[index].inputs {
                live[input.node as usize] = true;
            }
        }
    }
    live
}

struct Stage<'g> {
    graph: &'g Graph,
    program: Program,
    located: BTreeMap<Tensor, Located>,
}

impl Stage<'_> {
    fn node(&mut self, index: u32, node: &Node) -> Result<()> {
        let inputs: Option<Vec<Located>> = node.inputs.iter().map(|input| self.located.get(input).cloned()).collect();
        let inputs = inputs.ok_or_else(|| Error::Stage {
            stage: "legalise",
            defect: format!("an operand of `{}` lies nowhere", node.name),
        })?;
        match node.op.kind() {
            OpKind::Leaf => {
                let origin = match node.leaf().map(|leaf| &leaf.kind) {
                    Some(LeafKind::Param) => Origin::Param,
                    Some(LeafKind::Constant(bytes)) => Origin::Constant(bytes.clone()),
                    Some(LeafKind::State) => Origin::State,
                    Some(LeafKind::Input | LeafKind::Seed) | None => Origin::Input,
                };
                let what = if origin == Origin::Param { "param" } else { "constant" };
                if origin != Origin::Input && node.outputs[0].elements().constant().is_none() {
                    let ty = node.outputs[0].to_string();
                    return Err(Error::Symbolic { what, name: node.name.clone(), ty });
                }
                self.value(index, node, 0, origin);
            }
            OpKind::Fill(bits) => {
                let output = self.value(index, node, 0, Origin::Computed);
                self.program.works.push(Work::Fill(FillWork { node: index, bits, output }));
            }
            OpKind::View(view) => {
                let (mut source, ty) = (inputs[0].clone(), &node.outputs[0]);
                let mut layout = view.layout(&source.ty, &source.layout, ty);
                if layout.is_none() {
                    source = self.copy(index, &source);
                    layout = view.layout(&source.ty, &source.layout, ty);
                }
                // What a view says of symbols, it says in its own attributes.
                let layout =
                    layout.ok_or_else(|| Error::View { node: node.name.clone() })?.bound(self.graph.bindings());
                let tensor = self.tensor(index, 0);
                self.located.insert(tensor, Located { tensor, value: source.value, ty: ty.clone(), layout });
            }
            OpKind::Update(update) => {
                let [old, value] = <[Located; 2]>::try_from(inputs).map_err(|inputs| Error::Stage {
                    stage: "legalise",
                    defect: format!("`{}` has {} operands", node.name, inputs.len()),
                })?;
                let state = self.program.state_of(old.value);
                // What a dispatch writes it does not read as well, and what lies in the same memory could be half replaced when it is read.
                let value = if self.program.state_of(value.value) == state { self.copy(index, &value) } else { value };
                let output = self.value(index, node, 0, Origin::Version(state));
                self.program.values[output].name = format!("{} after {}", self.program.values[state].name, node.name);
                let part = update.part().map(|part| (part.axis, part.position.clone()));
                let target = Target { layout: update.target(&old.ty).bound(self.graph.bindings()), part };
                self.program.works.push(Work::Update(UpdateWork { node: index, inputs: [old, value], output, target }));
            }
            OpKind::Map(_) => {
                let output = self.value(index, node, 0, Origin::Computed);
                let shape = &node.outputs[0].shape;
                let inputs = inputs
                    .into_iter()
                    .map(|input| Located {
                        layout: input.layout.broadcast(&input.ty.shape, shape),
                        ty: TensorType { element: input.ty.element, shape: shape.clone() },
                        ..input
                    })
                    .collect();
                self.program.works.push(Work::Map(MapWork { node: index, op: node.op.clone(), inputs, output }));
            }
            OpKind::Pull(_) => {
                let output = self.value(index, node, 0, Origin::Computed);
                self.program.works.push(Work::Pull(PullWork { node: index, op: node.op.clone(), inputs, output }));
            }
            OpKind::Kernels(_) => {
                let outputs =
                    (0..node.outputs.len()).map(|port| self.value(index, node, port, Origin::Computed)).collect();
                let op = node.op.clone();
                self.program.works.push(Work::Kernels(KernelsWork { node: index, op, inputs, outputs, chosen: None }));
            }
        }
        Ok(())
    }

    fn output(&mut self, name: &str, tensor: Tensor) -> Result<()> {
        let Some(mut located) = self.located.get(&tensor).cloned() else {
            return Err(Error::Stage { stage: "legalise", defect: format!("output `{name}` has no node") });
        };
        let layout = &located.layout;
        // Copies begin at whole words.
        let size = located.ty.element.bytes() as i64;
        let begins = layout.offset.constant().filter(|offset| (offset * size) % COPY_MULTIPLE as i64 == 0);
        if !layout.has_contiguous_strides(&located.ty.shape) || begins.is_none() {
            located = self.copy(tensor.node, &located);
        }
        self.program.outputs.push((name.to_owned(), located));
        Ok(())
    }

    fn copy(&mut self, node: u32, source: &Located) -> Located {
        let (work, copy) = self.program.copy(node, source);
        self.program.works.push(Work::Map(work));
        copy
    }

    /// The value of a node's output, and its place in memory of its own.
    fn value(&mut self, index: u32, node: &Node, port: usize, origin: Origin) -> ValueId {
        let tensor = self.tensor(index, port);
        let ty = node.outputs[port].clone();
        let name = if port == 0 { node.name.clone() } else { format!("{}:{port}", node.name) };
        let value = self.program.tensor(name, ty.clone(), origin, Meaning::Tensor(tensor));
        let layout = Layout::contiguous(&ty.shape);
        self.located.insert(tensor, Located { tensor, value, ty, layout });
        value
    }

    fn tensor(&self, node: u32, port: usize) -> Tensor {
        self.graph.tensor(node, port as u32)
    }
}
