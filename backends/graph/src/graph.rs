//! Graphs as data: nodes, tensors, names.
//!
//! A [`Graph`] grows by calls and is never changed by compiling it. Each node is an op with its inputs; a [`Tensor`] names one output of one
//! node and is checked to belong to the graph that it is used with. Types and shapes are known as soon as a node is added, and whatever
//! does not fit is an error then.

mod leaf;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thiserror::Error;

pub use self::leaf::{Leaf, LeafKind};
use crate::data::Data;
use crate::dim::Extents;
use crate::op::{Op, OpError, OpKind};
use crate::ops::state::Update;
use crate::types::{ElementType, IntoShape, TensorType};

/// A value in a graph: one output of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tensor {
    graph: u32,
    pub(crate) node: u32,
    pub(crate) port: u32,
}

impl Tensor {
    /// The node of [`Graph::nodes`] that gives it.
    pub const fn node(self) -> usize {
        self.node as usize
    }

    /// Which output of the node it is.
    pub const fn port(self) -> usize {
        self.port as usize
    }
}

/// An op in a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub op: Arc<dyn Op>,
    /// What it reads.
    pub inputs: Vec<Tensor>,
    /// The types of what it gives.
    pub outputs: Vec<TensorType>,
    /// What a leaf is called; what `explain` and errors call any other node.
    pub name: String,
}

impl Node {
    /// The leaf that it is, if it is one.
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        let op: &dyn Any = &*self.op;
        op.downcast_ref()
    }
}

/// Nodes, and the names of what goes in and out.
///
/// A clone has the tensors that there were when it was made. What is added later to either is a tensor of that one alone.
#[derive(Debug)]
pub struct Graph {
    id: u32,
    /// The graphs of which it is a clone, from the oldest on, each with the number of the nodes that it had then: the first nodes are the oldest one's, and so on.
    cloned: Vec<(u32, u32)>,
    nodes: Vec<Node>,
    leaves: BTreeMap<String, Tensor>,
    outputs: Vec<(String, Tensor)>,
    states: Vec<State>,
    /// How many streams of random numbers are taken.
    streams: u32,
    /// The values of symbols for which the types hold ([`Graph::bound`]).
    bindings: Extents,
}

/// A state of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What a run finds.
    pub found: Tensor,
    /// What it leaves to the next one: the newest version, or what it found if nothing updates it.
    pub left: Tensor,
}

/// The id of graphs for the calls of ops; every other graph has one of its own.
const TRACE: u32 = 0;
/// The name of the seed among the inputs.
pub const SEED: &str = "seed";
/// How many words a seed has.
pub(crate) const SEED_WORDS: usize = 2;

/// What can be wrong with a call that builds a graph.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The op does not take these inputs.
    #[error("{op}: {error}")]
    Op {
        /// The op.
        op: String,
        /// What is wrong.
        #[source]
        error: OpError,
    },
    /// A tensor of another graph.
    #[error("{what}: the tensor belongs to another graph")]
    OtherGraph {
        /// The op or output.
        what: String,
    },
    /// Two leaves or two outputs of one name.
    #[error("there is already {an} {what} called `{name}`", an = article(.what))]
    NameTaken {
        /// `leaf` or `output`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Something is to be updated that is no state.
    #[error(
        "update: `{node}` is no state and no version of one; `Graph::state` makes states, and `update` gives versions"
    )]
    NoState {
        /// The node.
        node: String,
    },
    /// A version of a state is to be updated that was updated before.
    #[error(
        "update: state `{state}`: `{given}` was updated by `{by}` already; versions follow one after the other, and the newest is `{newest}`"
    )]
    OldVersion {
        /// The state.
        state: String,
        /// The version that was given.
        given: String,
        /// The update that made another version of it.
        by: String,
        /// The newest version.
        newest: String,
    },
    /// A constant of other elements than its values are.
    #[error("constant: elements of type {given} given, {expected} expected")]
    ConstantElement {
        /// What the values are.
        given: ElementType,
        /// What the constant is.
        expected: ElementType,
    },
    /// A constant whose values do not fill its shape.
    #[error("constant: {given} values given, the shape {shape} takes {expected}")]
    ConstantLength {
        /// How many were given.
        given: usize,
        /// The shape.
        shape: String,
        /// How many it takes; empty if the shape is not constant.
        expected: String,
    },
}

impl fmt::Debug for GraphError {
    /// As it is displayed: that is what a program prints whose `main` gives it back, and what `unwrap` says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The article before a word.
fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// That an op has so many outputs where one is expected.
pub(crate) fn several_outputs(op: &str, outputs: usize) -> GraphError {
    GraphError::Op { op: op.to_owned(), error: outputs_error(outputs, "1") }
}

/// The same, of an op that is known to the reader.
fn outputs_error(outputs: usize, expected: &str) -> OpError {
    OpError::Attribute { attribute: "outputs", given: outputs.to_string(), expected: expected.to_owned() }
}

/// Checks that an op takes and gives what the scheduler knows of its kind: ops without kernels of their own give one tensor, and views are of one.
fn expect_of_kind(op: &dyn Op, inputs: usize, outputs: usize) -> Result<(), OpError> {
    let kind = op.kind();
    if outputs != 1 && !matches!(kind, OpKind::Kernels(_)) {
        return Err(outputs_error(outputs, "1, since it has no kernels of its own"));
    }
    if inputs != 1 && matches!(kind, OpKind::View(_)) {
        return Err(OpError::InputCount { given: inputs, expected: 1 });
    }
    Ok(())
}

/// A graph id that no other graph has.
fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(TRACE + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Clone for Graph {
    fn clone(&self) -> Self {
        let Self { id, cloned, nodes, leaves, outputs, states, streams, bindings } = self;
        let mut cloned = cloned.clone();
        cloned.push((*id, nodes.len() as u32));
        Self {
            id: next_id(),
            cloned,
            nodes: nodes.clone(),
            leaves: leaves.clone(),
            outputs: outputs.clone(),
            states: states.clone(),
            streams: *streams,
            bindings: bindings.clone(),
        }
    }
}

impl Default for Graph {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self {
            id: next_id(),
            cloned: Vec::new(),
            nodes: Vec::new(),
            leaves: BTreeMap::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            streams: 0,
            bindings: Extents::new(),
        }
    }

    /// The same graph, with values in the places of those symbols that have one: wherever a type or a layout says a symbol. What ops say of symbols in their own attributes stays, and is looked up in each run as ever.
    pub(crate) fn bound(&self, extents: &Extents) -> Self {
        let mut graph = Self { bindings: extents.clone(), ..self.clone() };
        for output in graph.nodes.iter_mut().flat_map(|node| &mut node.outputs) {
            *output = output.bound(extents);
        }
        graph
    }

    /// The values of symbols for which its types hold.
    pub(crate) fn bindings(&self) -> &Extents {
        &self.bindings
    }

    /// An empty graph for the call of one op, whose tensors have names before it is there: those of [`Graph::traced`].
    pub(crate) fn for_trace() -> Self {
        Self { id: TRACE, ..Self::new() }
    }

    /// The first output of a node of a graph of [`Graph::for_trace`].
    pub(crate) fn traced(node: u32) -> Tensor {
        Tensor { graph: TRACE, node, port: 0 }
    }

    /// A tensor that each run gives.
    ///
    /// # Errors
    /// The name is taken.
    pub fn input(&mut self, name: &str, element: ElementType, shape: impl IntoShape) -> Result<Tensor, GraphError> {
        self.leaf(name, LeafKind::Input, TensorType { element, shape: shape.into_shape() })
    }

    /// The input that random numbers depend on, called `seed`: 64 bits as two words, the lower first. The first random op adds it. A run gives it as it gives every input, or leaves it out and takes the
    /// executable's next one.
    ///
    /// # Errors
    /// The name is taken by a leaf that is no seed.
    pub fn seed(&mut self) -> Result<Tensor, GraphError> {
        if let Some(known) = self.leaves.get(SEED)
            && self.leaf_kind(*known) == Some(&LeafKind::Seed)
        {
            return Ok(*known);
        }
        self.leaf(SEED, LeafKind::Seed, TensorType::new(ElementType::U32, [SEED_WORDS]))
    }

    /// A stream of random numbers that no other op of the graph has.
    pub(crate) fn next_stream(&mut self) -> u32 {
        self.streams += 1;
        self.streams - 1
    }

    /// A tensor that the model gives.
    ///
    /// # Errors
    /// The name is taken.
    pub fn param(&mut self, name: &str, element: ElementType, shape: impl IntoShape) -> Result<Tensor, GraphError> {
        self.leaf(name, LeafKind::Param, TensorType { element, shape: shape.into_shape() })
    }

    /// A tensor that lives in the executable, on the device, from run to run: zero before the first, then what the last run left ([`Graph::update`], [`Graph::feed`]), or what the program put there
    /// ([`crate::Executable::set_state`]).
    ///
    /// # Errors
    /// The name is taken, or an extent is no number.
    pub fn state(&mut self, name: &str, element: ElementType, shape: impl IntoShape) -> Result<Tensor, GraphError> {
        let ty = TensorType { element, shape: shape.into_shape() };
        if ty.shape.iter().any(|extent| extent.constant().is_none()) {
            let expected = "extents that are numbers".to_owned();
            let error = OpError::Attribute { attribute: "shape", given: ty.to_string(), expected };
            return Err(GraphError::Op { op: format!("state `{name}`"), error });
        }
        let found = self.leaf(name, LeafKind::State, ty)?;
        self.states.push(State { found, left: found });
        Ok(found)
    }

    /// A tensor whose values are part of the graph.
    ///
    /// # Errors
    /// The values are of another type, or their number is not what the shape takes.
    pub fn constant<'d>(
        &mut self,
        element: ElementType,
        shape: impl IntoShape,
        values: impl Into<Data<'d>>,
    ) -> Result<Tensor, GraphError> {
        let (ty, values) = (TensorType { element, shape: shape.into_shape() }, values.into());
        if values.element() != element {
            return Err(GraphError::ConstantElement { given: values.element(), expected: element });
        }
        let expected = ty.elements().constant();
        if expected.and_then(|count| u64::try_from(count).ok()) != Some(values.len()) {
            return Err(GraphError::ConstantLength {
                given: usize::try_from(values.len()).unwrap_or(usize::MAX),
                shape: ty.to_string(),
                expected: expected.map(|count| count.to_string()).unwrap_or_default(),
            });
        }
        let mut number = self.nodes.len();
        let mut name = format!("constant {number}");
        // The user's leaves may be called so too.
        while self.leaves.contains_key(&name) {
            number += 1;
            name = format!("constant {number}");
        }
        self.leaf(&name, LeafKind::Constant((&*values.bytes).into()), ty)
    }

    fn leaf(&mut self, name: &str, kind: LeafKind, ty: TensorType) -> Result<Tensor, GraphError> {
        if self.leaves.contains_key(name) {
            return Err(GraphError::NameTaken { what: "leaf", name: name.to_owned() });
        }
        let op = Leaf { kind, ty: ty.clone() };
        op.infer(&[]).map_err(|error| GraphError::Op { op: format!("{} `{name}`", op.name()), error })?;
        let tensor = self.push(Node { op: Arc::new(op), inputs: Vec::new(), outputs: vec![ty], name: name.to_owned() });
        self.leaves.insert(name.to_owned(), tensor);
        Ok(tensor)
    }

    /// Adds an op: the library's own methods all come here, and so do users' ops. Gives the op's outputs.
    ///
    /// # Errors
    /// An input is of another graph, the op does not take inputs of these types, or it has another number of outputs than ops of its kind.
    pub fn add_op(&mut self, op: impl Op, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        self.add_shared(&(Arc::new(op) as Arc<dyn Op>), inputs)
    }

    /// [`Graph::add_op`] of an op that others hold too, such as one of another graph's nodes.
    ///
    /// # Errors
    /// As [`Graph::add_op`]; and an update is of something that is not a state's newest version ([`Graph::update`]).
    pub fn add_shared(&mut self, op: &Arc<dyn Op>, inputs: &[Tensor]) -> Result<Vec<Tensor>, GraphError> {
        let mut types = Vec::with_capacity(inputs.len());
        for input in inputs {
            types.push(self.known(*input, op.name())?.clone());
        }
        let definition: &dyn Any = &**op;
        let updated = inputs.first().copied().filter(|_| definition.is::<Update>());
        updated.map_or(Ok(()), |state| self.expect_newest(state))?;
        let wrong = |error| GraphError::Op { op: self.describe(&**op, inputs), error };
        let outputs = op.infer(&types).map_err(wrong)?;
        expect_of_kind(&**op, inputs.len(), outputs.len()).map_err(wrong)?;
        let count = outputs.len() as u32;
        let name = format!("{}.{}", op.name(), self.nodes.len());
        let first = self.push(Node { op: op.clone(), inputs: inputs.to_vec(), outputs, name });
        if let Some(old) = updated {
            self.note_version(old, first);
        }
        Ok((0..count).map(|port| Tensor { port, ..first }).collect())
    }

    /// Adds an op with one output.
    ///
    /// # Errors
    /// As [`Graph::add_op`]; and the op has another number of outputs.
    pub fn add_one(&mut self, op: impl Op, inputs: &[Tensor]) -> Result<Tensor, GraphError> {
        let name = op.name();
        match self.add_op(op, inputs)?.as_slice() {
            [only] => Ok(*only),
            outputs => Err(several_outputs(name, outputs.len())),
        }
    }

    /// Gives a tensor out under a name.
    ///
    /// # Errors
    /// The name is taken, or the tensor is of another graph.
    pub fn output(&mut self, name: &str, tensor: Tensor) -> Result<(), GraphError> {
        self.known(tensor, name)?;
        if self.outputs.iter().any(|(known, _)| known == name) {
            return Err(GraphError::NameTaken { what: "output", name: name.to_owned() });
        }
        self.outputs.push((name.to_owned(), tensor));
        Ok(())
    }

    /// The type of a tensor.
    ///
    /// # Errors
    /// It is of another graph.
    pub fn type_of(&self, tensor: Tensor) -> Result<&TensorType, GraphError> {
        self.known(tensor, "type_of")
    }

    /// The type of a tensor that `op` is to read: errors name it.
    ///
    /// # Errors
    /// It is of another graph.
    pub(crate) fn operand(&self, op: &str, tensor: Tensor) -> Result<&TensorType, GraphError> {
        self.known(tensor, op)
    }

    /// Nodes, each after what it reads.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The tensor that a node gives at a port, both by position.
    pub fn output_of(&self, node: usize, port: usize) -> Option<Tensor> {
        self.nodes.get(node).filter(|known| port < known.outputs.len())?;
        Some(self.tensor(u32::try_from(node).ok()?, u32::try_from(port).ok()?))
    }

    /// States, in the order in which they were named.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Notes a state's new version, `by` an update of the version `of`.
    fn note_version(&mut self, of: Tensor, by: Tensor) {
        for state in self.states.iter_mut().filter(|state| state.left == of) {
            state.left = by;
        }
    }

    /// By whom a leaf is given; `None` for what is computed.
    pub(crate) fn leaf_kind(&self, tensor: Tensor) -> Option<&LeafKind> {
        self.nodes.get(tensor.node as usize)?.leaf().map(|leaf| &leaf.kind)
    }

    /// Inputs, params, states and constants by name.
    pub fn leaves(&self) -> &BTreeMap<String, Tensor> {
        &self.leaves
    }

    /// Outputs in the order in which they were named.
    pub fn outputs(&self) -> &[(String, Tensor)] {
        &self.outputs
    }

    /// The name of an output of a node: that of the graph to which the node was added.
    pub(crate) fn tensor(&self, node: u32, port: u32) -> Tensor {
        let first = self.cloned.iter().find(|(_, nodes)| node < *nodes);
        Tensor { graph: first.map_or(self.id, |(id, _)| *id), node, port }
    }

    fn known(&self, tensor: Tensor, what: &str) -> Result<&TensorType, GraphError> {
        let is_own = tensor == self.tensor(tensor.node, tensor.port);
        let node = self.nodes.get(tensor.node as usize).filter(|_| is_own);
        node.and_then(|node| node.outputs.get(tensor.port as usize))
            .ok_or_else(|| GraphError::OtherGraph { what: what.to_owned() })
    }

    /// The op and the names of its inputs, for errors.
    fn describe(&self, op: &dyn Op, inputs: &[Tensor]) -> String {
        let names: Vec<_> = inputs
            .iter()
            .map(|input| {
                let node = self.nodes.get(input.node as usize);
                node.map_or_else(String::new, |node| format!("{}: {}", node.name, node.outputs[input.port as usize]))
            })
            .collect();
        format!("{}({})", op.name(), names.join(", "))
    }

    fn push(&mut self, node: Node) -> Tensor {
        self.nodes.push(node);
        Tensor { graph: self.id, node: self.nodes.len() as u32 - 1, port: 0 }
    }
}
