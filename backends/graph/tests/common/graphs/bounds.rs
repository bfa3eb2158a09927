//! What the outputs of a graph may be: the reference, and how far from it a right device may come.
//!
//! The reference is run several times more. In each of these runs every element of every node is moved by as much as the op's stated accuracy allows, one way or the other, and so are what is computed from it, the
//! decisions that are taken on it, and the states that it leaves. How far the outputs of these runs lie apart is what right devices may do; how far the movements of one node reach is not guessed, but seen in the reference itself.
//! Elements that the movements decide (an integer part at an edge, an order of equals) lie far apart, and are told as unsettled.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use trefoil_graph::graph::Leaf;
use trefoil_graph::op::{HostTensor, OpKind};
use trefoil_graph::ops::map::Function;
use trefoil_graph::reference::{evaluate_node, tolerance};
use trefoil_graph::{ElementType, Extents, Graph, Tensor};

use super::Numbers;
use super::draw::tensor;
use super::run::typed;

/// How the elements of a run of the reference are moved.
#[derive(Clone, Copy, Debug)]
enum Moved {
    /// Not at all: the reference itself.
    Not,
    /// Each node's to the nearest number of its type, as a device does that fuses nothing.
    Rounded,
    /// All up, or all down.
    Up,
    Down,
    /// All away from zero, or all towards it.
    Out,
    In,
    /// Each as a coin of this side says.
    Coin,
}

/// The runs. What one coin decides is the same in all of them once in so many powers of two; what several decide together, the runs that move all alike see.
const RUNS: [Moved; 14] = {
    use Moved::{Coin, Down, In, Not, Out, Rounded, Up};
    [Not, Rounded, Up, Down, Out, In, Coin, Coin, Coin, Coin, Coin, Coin, Coin, Coin]
};

impl Moved {
    fn apply(self, value: f64, by: f64, element: ElementType, numbers: &mut Numbers) -> f64 {
        match self {
            Self::Not => value,
            Self::Rounded => typed(element, &[value]).host().values[0],
            Self::Up => value + by,
            Self::Down => value - by,
            Self::Out => value + by.copysign(value),
            Self::In => value - by.copysign(value),
            Self::Coin if numbers.next() & 1 == 0 => value + by,
            Self::Coin => value - by,
        }
    }
}

/// What random directions miss: of a sum of many movements they reach the root of their number, and devices' errors may all have one sign in short sums.
const REACH: f64 = 4.0;
/// Integers up to this are exact in `f64`.
const EXACT: f64 = (1u64 << 53) as f64;
/// Below this, results may be flushed to zero.
const TINY: f64 = 256.0 * f32::MIN_POSITIVE as f64;

/// How far an element of a node's output may be from the exact one, given exact inputs.
struct Local {
    relative: f64,
    absolute: f64,
}

impl Local {
    const EXACT: Self = Self { relative: 0.0, absolute: 0.0 };

    fn at(&self, value: f64) -> f64 {
        self.absolute + self.relative * value.abs()
    }
}

/// Half of the distance between neighbours, relative to them: what one rounding to the type costs.
fn rounding(element: ElementType) -> Local {
    let bits = match element {
        ElementType::F16 => 11,
        ElementType::BF16 => 8,
        ElementType::F32 => 24,
        ElementType::F64 => 53,
        _ => return Local::EXACT,
    };
    // Half-precision numbers near zero lie evenly, and others may be flushed.
    let absolute = if element == ElementType::F16 { 2f64.powi(-25) } else { TINY };
    Local { relative: 2f64.powi(-bits), absolute: if element == ElementType::F64 { 0.0 } else { absolute } }
}

/// What the op states of its accuracy.
fn local(graph: &Graph, node: usize, port: usize, exact: &[&str], inputs: &[HostTensor], values: &[f64]) -> Local {
    let node = &graph.nodes()[node];
    let element = node.outputs[port].element;
    if !element.is_float() {
        return Local::EXACT;
    }
    let op: &dyn Any = &*node.op;
    let moves = matches!(node.op.kind(), OpKind::Leaf | OpKind::Fill(_) | OpKind::View(_) | OpKind::Update(_));
    if moves || op.is::<Leaf>() {
        return Local::EXACT;
    }
    let rounded = rounding(element);
    if let Some(function) = Function::named(node.op.name()) {
        let widest = inputs.first().map_or(0.0, largest);
        let units = function.accuracy(element).at(if widest.is_finite() { widest } else { 0.0 });
        if units == 0.0 {
            return Local::EXACT;
        }
        if element == ElementType::F64 {
            // Stated for `f32`; of the same formulas in `f64`, the type's tolerance.
            return Local { relative: tolerance(element), absolute: 0.0 };
        }
        return Local { relative: units * 2f64.powi(-23) + rounded.relative, absolute: rounded.absolute.max(TINY) };
    }
    if exact.contains(&node.op.name()) {
        return Local::EXACT;
    }
    // Stated relative to the result, or to 1 if that is more; of sums that cancel, what counts is the largest number among what is summed and what comes out.
    let widest = values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(1.0, f64::max);
    let summed = inputs.iter().map(largest).filter(|value| value.is_finite()).fold(1.0, f64::max);
    Local { relative: tolerance(element), absolute: tolerance(element) * widest.max(summed) }
}

fn largest(tensor: &HostTensor) -> f64 {
    tensor.values.iter().map(|value| value.abs()).fold(0.0, f64::max)
}

/// Whether tensors are the same bit for bit.
fn alike(a: &HostTensor, b: &HostTensor) -> bool {
    a.shape == b.shape && a.values.iter().map(|x| x.to_bits()).eq(b.values.iter().map(|x| x.to_bits()))
}

/// What an output should be.
#[derive(Clone, Debug)]
pub struct Expected {
    pub value: HostTensor,
    /// How far each element may be from it; infinite where it is unsettled.
    pub tolerance: Vec<f64>,
}

/// The runs of a graph's reference, each with its own states.
pub struct Reference<'a> {
    graph: &'a Graph,
    exact: &'a [&'a str],
    states: Vec<BTreeMap<String, HostTensor>>,
    /// States that depend on integers of which the reference does not have all bits.
    beyond: BTreeSet<Tensor>,
    seed: u64,
}

impl<'a> Reference<'a> {
    /// Before the first run; `exact` names the ops that only move and choose.
    pub fn new(graph: &'a Graph, exact: &'a [&'a str], seed: u64) -> Self {
        Self { graph, exact, states: vec![BTreeMap::new(); RUNS.len()], beyond: BTreeSet::new(), seed }
    }

    /// The next run: what each output should be, by name, and the plain reference of every tensor.
    pub fn run(
        &mut self,
        leaves: &BTreeMap<String, HostTensor>,
        extents: &Extents,
    ) -> trefoil_graph::Result<(BTreeMap<String, Expected>, BTreeMap<Tensor, HostTensor>)> {
        let mut all: Vec<BTreeMap<Tensor, HostTensor>> = Vec::new();
        let mut locals: BTreeMap<Tensor, Local> = BTreeMap::new();
        for (moved, how) in RUNS.into_iter().enumerate() {
            let mut numbers = Numbers::new(self.seed ^ moved as u64);
            let mut given = leaves.clone();
            given.extend(self.states[moved].clone());
            let mut values = BTreeMap::new();
            for node in 0..self.graph.nodes().len() {
                let made = match all.first().and_then(|first| self.known(node, first, &values)) {
                    Some(known) => known,
                    None => evaluate_node(self.graph, node, &given, &values, extents)?,
                };
                for (port, mut value) in made.into_iter().enumerate() {
                    let name = tensor(self.graph, node, port);
                    if moved == 0 {
                        let read = self.graph.nodes()[node].inputs.iter();
                        let inputs: Vec<HostTensor> = read.map(|input| values[input].clone()).collect();
                        locals.insert(name, local(self.graph, node, port, self.exact, &inputs, &value.values));
                    } else if let Some(local) = locals.get(&name) {
                        let element = self.graph.nodes()[node].outputs[port].element;
                        for value in value.values.iter_mut().filter(|_| element.is_float()) {
                            let by = local.at(*value);
                            if by > 0.0 {
                                *value = how.apply(*value, by, element, &mut numbers);
                            }
                        }
                    }
                    values.insert(name, value);
                }
            }
            for state in self.graph.states() {
                let name = self.graph.nodes()[state.found.node()].name.clone();
                self.states[moved].insert(name, values[&state.left].clone());
            }
            all.push(values);
        }
        let beyond = self.beyond(&all[0]);
        let left = self.graph.states().iter().filter(|state| beyond.contains(&state.left));
        self.beyond = left.map(|state| state.found).collect();
        let mut expected = BTreeMap::new();
        for (name, tensor) in self.graph.outputs() {
            let value = all[0][tensor].clone();
            let element = self.graph.nodes()[tensor.node()].outputs[tensor.port()].element;
            let (own, rounded) = (&locals[tensor], rounding(element));
            let tolerance = value.values.iter().enumerate().map(|(index, wanted)| {
                let mut spread = 0f64;
                for moved in &all[1..] {
                    let other = moved[tensor].values[index];
                    let apart = (other - wanted).abs();
                    // Both NaN, or the same infinity, are as near as can be.
                    let alike = other == *wanted || other.is_nan() && wanted.is_nan();
                    spread = spread.max(if alike {
                        0.0
                    } else if apart.is_nan() {
                        f64::INFINITY
                    } else {
                        apart
                    });
                }
                if spread.is_infinite() || beyond.contains(tensor) {
                    return f64::INFINITY;
                }
                own.at(*wanted) + rounded.at(*wanted) + REACH * spread
            });
            let tolerance = tolerance.collect();
            expected.insert(name.clone(), Expected { value, tolerance });
        }
        Ok((expected, all.swap_remove(0)))
    }

    /// What a node gave in the first run, which moves nothing, if it reads the same bits now; leaves, which read nothing, are given anew.
    fn known(
        &self,
        node: usize,
        first: &BTreeMap<Tensor, HostTensor>,
        values: &BTreeMap<Tensor, HostTensor>,
    ) -> Option<Vec<HostTensor>> {
        let info = &self.graph.nodes()[node];
        if info.inputs.is_empty() || !info.inputs.iter().all(|input| alike(&first[input], &values[input])) {
            return None;
        }
        Some((0..info.outputs.len()).map(|port| first[&tensor(self.graph, node, port)].clone()).collect())
    }

    /// Tensors that are, or depend on, integers beyond what `f64` holds exactly.
    fn beyond(&self, values: &BTreeMap<Tensor, HostTensor>) -> BTreeSet<Tensor> {
        let mut all = self.beyond.clone();
        for (node, info) in self.graph.nodes().iter().enumerate() {
            let reads = info.inputs.iter().any(|input| all.contains(input));
            for (port, ty) in info.outputs.iter().enumerate() {
                let name = tensor(self.graph, node, port);
                let wide = !ty.element.is_float() && ty.element.bytes() == 8;
                if reads || wide && values[&name].values.iter().any(|value| value.abs() > EXACT) {
                    all.insert(name);
                }
            }
        }
        all
    }
}
