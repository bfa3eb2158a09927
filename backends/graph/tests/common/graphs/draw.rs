//! The drawing of a graph.

use std::any::Any;
use std::collections::BTreeMap;

use trefoil_graph::graph::{Leaf, LeafKind, SEED};
use trefoil_graph::op::{HostTensor, OpKind};
use trefoil_graph::ops::table::Use;
use trefoil_graph::{Data, Dim, ElementType, Extents, Graph, GraphError, Symbol, Tensor, TensorType, reference};

use super::Numbers;
use crate::common::Values;

/// The fewest and the most nodes.
const NODES: [usize; 2] = [5, 80];
/// Tensors with larger numbers are given out and not computed with: references and devices leave the range of narrow types at different places.
const TAME: f64 = 16.0;
/// How far a state reaches beyond what is written into it.
const ROOM: i64 = 3;
/// Floats of leaves lie between this and its negative, and integers within eight times that.
const RANGE: f32 = 0.9;

/// A graph with everything that its runs need.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub seed: u64,
    pub graph: Graph,
    /// What stands for the extent of 4 of most of the table's uses, where it is a symbol.
    pub symbol: Symbol,
    /// The position of updates that have a symbol for it.
    pub position: Symbol,
    /// Nodes that update states: the axis and position, if not the whole state is written.
    pub updates: BTreeMap<usize, Option<(usize, Dim)>>,
    /// Values of leaves that were cut out of a larger graph, for each run.
    pub cut: BTreeMap<String, Vec<HostTensor>>,
    /// How often each op of the table was drawn.
    pub counts: BTreeMap<String, usize>,
}

impl Drawn {
    /// The runs: values of the symbols, the widest first.
    pub fn runs(&self) -> Vec<Extents> {
        let (_, most) = self.symbol.bounds();
        let few = Numbers::new(self.seed ^ 0xfe).below(most as usize + 1) as i64;
        let extents = |extent: i64, position: i64| {
            let mut extents = Extents::new();
            extents.set(&self.symbol, extent).unwrap();
            extents.set(&self.position, position).unwrap();
            extents
        };
        vec![extents(most, 0), extents(few, ROOM), extents(most, 1)]
    }

    /// The values of leaves in a run, but for states.
    pub fn given(&self, run: usize, extents: &Extents) -> Vec<(String, Values)> {
        let mut all = Vec::new();
        for (name, tensor) in self.graph.leaves() {
            let node = &self.graph.nodes()[tensor.node()];
            let op: &dyn Any = &*node.op;
            let Some(leaf) = op.downcast_ref::<Leaf>() else { continue };
            // Params are the same in every run.
            let run = match leaf.kind {
                LeafKind::Input | LeafKind::Seed => run,
                LeafKind::Param => 0,
                LeafKind::State | LeafKind::Constant(_) => continue,
            };
            let count = leaf.ty.elements().eval(extents).unwrap() as usize;
            let values = match self.cut.get(name) {
                Some(values) => super::run::typed(leaf.ty.element, &values[run].values),
                None => {
                    let seed = (self.seed as u32).wrapping_mul(31).wrapping_add(tensor.node() as u32 * 7 + run as u32);
                    Values::of(leaf.ty.element, count, seed | 1, RANGE)
                }
            };
            all.push((name.clone(), values));
        }
        all
    }

    /// Whether a leaf is a param, which the model gives.
    pub fn is_param(&self, name: &str) -> bool {
        let op: &dyn Any = &*self.graph.nodes()[self.graph.leaves()[name].node()].op;
        op.downcast_ref::<Leaf>().is_some_and(|leaf| leaf.kind == LeafKind::Param)
    }

    /// Every element type of the graph.
    pub fn elements(&self) -> Vec<ElementType> {
        self.graph.nodes().iter().flat_map(|node| node.outputs.iter().map(|ty| ty.element)).collect()
    }
}

struct Drawing<'a> {
    drawn: Drawn,
    uses: &'a [Use],
    numbers: Numbers,
    element: ElementType,
    /// What stands for extents of 4.
    extent: Dim,
    extents: Extents,
    /// What the reference says of every tensor in the first run.
    values: BTreeMap<Tensor, HostTensor>,
    /// Tensors to compute with.
    pool: Vec<Tensor>,
}

/// The graph of a seed, of ops of `uses`.
pub fn draw(seed: u64, uses: &[Use]) -> Drawn {
    let mut numbers = Numbers::new(seed);
    use ElementType::{BF16, Bool, F16, F32, F64, I8, I32, I64, U8, U32};
    let elements = [F32, F32, F32, F32, F32, F32, F16, F16, BF16, I32, I32, U32, U8, I8, Bool, F64, I64];
    let element = *numbers.one_of(&elements).unwrap();
    let symbol = Symbol::new("n", 0, 6).unwrap();
    let position = Symbol::new("p", 0, ROOM).unwrap();
    let extent = match numbers.below(20) {
        0..=6 => Dim::from(4),
        7..=12 => Dim::from(&symbol),
        13 | 14 => Dim::from(1),
        15 | 16 => Dim::from(7),
        17 => Dim::from(3),
        18 => Dim::from(13),
        _ => Dim::from(0),
    };
    let drawn = Drawn {
        seed,
        graph: Graph::new(),
        symbol,
        position,
        updates: BTreeMap::new(),
        cut: BTreeMap::new(),
        counts: BTreeMap::new(),
    };
    let extents = drawn.runs().remove(0);
    let mut drawing =
        Drawing { drawn, uses, numbers, element, extent, extents, values: BTreeMap::new(), pool: Vec::new() };
    let wanted = NODES[0] + drawing.numbers.below(NODES[1] - NODES[0] + 1);
    // Some ops do not take what is drawn for them.
    for _ in 0..4 * wanted {
        if drawing.drawn.graph.nodes().len() >= wanted {
            break;
        }
        if drawing.numbers.percent(6) {
            drawing.state();
        } else {
            drawing.op();
        }
    }
    drawing.outputs();
    drawing.drawn
}

impl Drawing<'_> {
    /// Adds an op of the table, if it takes what there is.
    fn op(&mut self) {
        let uses = self.uses;
        let drawn = &uses[self.numbers.below(uses.len())];
        let types = &drawn.row.types;
        let element = if types.contains(&self.element) { self.element } else { *self.numbers.one_of(types).unwrap() };
        let mut aside = Graph::new();
        let variant = self.numbers.below(8);
        if drawn.add(&mut aside, element, variant).is_err()
            || aside.nodes().iter().any(|node| matches!(node.op.kind(), OpKind::Update(_)))
        {
            // Updates are drawn with their states.
            return;
        }
        let extents = [self.extent.clone(), Dim::from(4)];
        for extent in extents {
            let before = (self.drawn.graph.clone(), self.numbers.clone());
            if self.graft(&aside, &extent).is_ok() && self.drawn.graph.nodes().len() <= NODES[1] {
                *self.drawn.counts.entry(drawn.row.op.clone()).or_default() += 1;
                self.evaluate(before.0.nodes().len());
                return;
            }
            (self.drawn.graph, self.numbers) = before;
        }
    }

    /// Adds the nodes of another graph, with tensors of this one for its leaves.
    fn graft(&mut self, aside: &Graph, extent: &Dim) -> Result<(), GraphError> {
        let mut made: Vec<Vec<Tensor>> = Vec::new();
        for node in aside.nodes() {
            let op: &dyn Any = &*node.op;
            let ty = &node.outputs[0];
            made.push(match op.downcast_ref::<Leaf>().map(|leaf| &leaf.kind) {
                Some(LeafKind::Constant(bytes)) => vec![constant(&mut self.drawn.graph, ty, bytes)?],
                Some(LeafKind::Seed) => vec![self.drawn.graph.seed()?],
                Some(_) => {
                    let shape = ty.shape.iter().map(|known| match known.constant() {
                        Some(4) => extent.clone(),
                        Some(8) => extent.clone() * 2i64,
                        _ => known.clone(),
                    });
                    let ty = TensorType { element: ty.element, shape: shape.collect() };
                    vec![self.operand(&ty)?]
                }
                None => {
                    let inputs: Vec<_> = node.inputs.iter().map(|input| made[input.node()][input.port()]).collect();
                    self.drawn.graph.add_shared(&node.op, &inputs)?
                }
            });
        }
        Ok(())
    }

    /// A tensor of a type: one that is there, one that fits by a view or a cast, or a leaf.
    fn operand(&mut self, ty: &TensorType) -> Result<Tensor, GraphError> {
        let graph = &mut self.drawn.graph;
        let of = |graph: &Graph, tensor: Tensor| graph.nodes()[tensor.node()].outputs[tensor.port()].clone();
        let fitting = |holds: &dyn Fn(&TensorType) -> bool| -> Vec<Tensor> {
            self.pool.iter().copied().filter(|tensor| holds(&of(graph, *tensor))).collect()
        };
        if !self.numbers.percent(12) {
            let same = fitting(&|known| known == ty);
            if let Some(tensor) = self.numbers.one_of(&same).copied() {
                let square = ty.rank() == 2 && ty.shape[0] == ty.shape[1];
                return if square && self.numbers.percent(15) { graph.transpose(tensor, &[1, 0]) } else { Ok(tensor) };
            }
            let turned = fitting(&|known| known.element == ty.element && known.shape.iter().rev().eq(&ty.shape));
            if let Some(tensor) = self.numbers.one_of(&turned).copied() {
                let order: Vec<usize> = (0..ty.rank()).rev().collect();
                return graph.transpose(tensor, &order);
            }
            let as_many = fitting(&|known| known.element == ty.element && known.elements() == ty.elements());
            if let Some(tensor) = self.numbers.one_of(&as_many).copied() {
                return graph.reshape(tensor, ty.shape.clone());
            }
            let other = fitting(&|known| known.shape == ty.shape);
            if let Some(tensor) = self.numbers.one_of(&other).copied() {
                return graph.cast(tensor, ty.element);
            }
        }
        let name = format!("leaf {} of {}", graph.nodes().len(), self.drawn.seed);
        let constant = ty.shape.iter().all(|extent| extent.constant().is_some());
        match self.numbers.below(10) {
            0 | 1 if constant => graph.param(&name, ty.element, ty.shape.clone()),
            2 if constant => graph.state(&name, ty.element, ty.shape.clone()),
            _ => graph.input(&name, ty.element, ty.shape.clone()),
        }
    }

    /// Adds a state with one or two versions, all of which may be read.
    fn state(&mut self) {
        let graph = &mut self.drawn.graph;
        let before = graph.nodes().len();
        let plain = |tensor: &&Tensor| {
            let ty = &graph.nodes()[tensor.node()].outputs[tensor.port()];
            ty.rank() > 0 && ty.shape.iter().all(|extent| extent.constant().is_some_and(|extent| extent > 0))
        };
        let values: Vec<Tensor> = self.pool.iter().filter(plain).copied().collect();
        let Some(value) = self.numbers.one_of(&values).copied() else { return };
        if before + 3 > NODES[1] {
            return;
        }
        let ty = graph.nodes()[value.node()].outputs[value.port()].clone();
        let name = format!("state {before}");
        if self.numbers.percent(30) {
            let found = graph.state(&name, ty.element, ty.shape).unwrap();
            self.drawn.updates.insert(graph.nodes().len(), None);
            graph.feed(found, value).unwrap();
        } else {
            let axis = self.numbers.below(ty.rank());
            let mut shape = ty.shape.clone();
            shape[axis] = shape[axis].clone() + ROOM;
            let mut version = graph.state(&name, ty.element, shape).unwrap();
            for _ in 0..=self.numbers.below(2) {
                let position = if self.numbers.percent(50) {
                    Dim::from(&self.drawn.position)
                } else {
                    Dim::from(self.numbers.below(ROOM as usize + 1) as i64)
                };
                self.drawn.updates.insert(graph.nodes().len(), Some((axis, position.clone())));
                version = graph.update(version, value, axis as isize, position).unwrap();
            }
        }
        *self.drawn.counts.entry("update".to_owned()).or_default() += 1;
        self.evaluate(before);
    }

    /// What the reference says of the nodes from `first` on, and which of them to compute with.
    fn evaluate(&mut self, first: usize) {
        let given = self.drawn.given(0, &self.extents);
        let leaves = given.into_iter().map(|(name, values)| (name, values.host())).collect();
        for node in first..self.drawn.graph.nodes().len() {
            let graph = &self.drawn.graph;
            let made = reference::evaluate_node(graph, node, &leaves, &self.values, &self.extents)
                .unwrap_or_else(|error| panic!("seed {}: {error}", self.drawn.seed));
            for (port, value) in made.into_iter().enumerate() {
                let tensor = tensor(graph, node, port);
                let tame = value.values.iter().all(|value| value.abs() <= TAME);
                if tame && graph.nodes()[node].name != SEED {
                    self.pool.push(tensor);
                }
                self.values.insert(tensor, value);
            }
        }
    }

    /// Gives out what nothing reads, and some of the rest.
    fn outputs(&mut self) {
        let graph = &mut self.drawn.graph;
        let mut read = std::collections::BTreeSet::new();
        graph.nodes().iter().for_each(|node| read.extend(node.inputs.iter().copied()));
        // Versions of states that a later one replaces are read by that, and what the last leaves is read by the next run.
        for node in 0..graph.nodes().len() {
            let op: &dyn Any = &*graph.nodes()[node].op;
            let is_leaf = op.is::<Leaf>();
            for port in 0..graph.nodes()[node].outputs.len() {
                let tensor = tensor(graph, node, port);
                if (!read.contains(&tensor) && !is_leaf) || self.numbers.percent(8) {
                    let name = format!("output {node}.{port}");
                    graph.output(&name, tensor).unwrap();
                }
            }
        }
    }
}

/// The tensor at a port of a node.
pub fn tensor(graph: &Graph, node: usize, port: usize) -> Tensor {
    graph.output_of(node, port).unwrap()
}

/// A constant of those bytes.
pub fn constant(graph: &mut Graph, ty: &TensorType, bytes: &[u8]) -> Result<Tensor, GraphError> {
    graph.constant(ty.element, ty.shape.clone(), Data::from_bytes(ty.element, bytes).unwrap())
}
