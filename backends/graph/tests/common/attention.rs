//! Attentions with their operands, and how they are held against the reference.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::collections::{BTreeMap, BTreeSet};

use half::{bf16, f16};
use trefoil_dsl::device::Device;
use trefoil_graph::ops::{Attention, AttentionLayout, AttentionOperands, Scores};
use trefoil_graph::{
    Dim, ElementType, Error, Executable, Extents, Graph, GraphError, HostTensor, Model, Options, reference,
};

use crate::common::{Values, compare, computes, devices, numbers, tolerance};

use AttentionLayout::{Bhsd, Bshd};
use ElementType::{BF16, F16, F32, F64};

/// An attention with its operands.
#[derive(Clone, Debug)]
pub struct Row {
    pub element: ElementType,
    pub batch: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub elements: usize,
    pub value_elements: usize,
    /// The shapes of a mask and of a bias.
    pub mask: Option<Vec<usize>>,
    pub bias: Option<Vec<usize>>,
    pub lengths: Option<Vec<u32>>,
    pub sinks: bool,
    pub op: Attention,
    pub scores: Scores,
}

/// Rows of one head, plain otherwise.
pub fn row(queries: usize, keys: usize, elements: usize) -> Row {
    Row {
        element: F32,
        batch: 1,
        heads: 1,
        key_heads: 1,
        queries,
        keys,
        elements,
        value_elements: elements,
        mask: None,
        bias: None,
        lengths: None,
        sinks: false,
        op: Attention::new(Bhsd, 0.3),
        scores: Scores::Nothing,
    }
}

pub fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// Values in the type of the floats.
pub fn floats(element: ElementType, values: Vec<f32>) -> Values {
    match element {
        F16 => Values::F16(values.into_iter().map(f16::from_f32).collect()),
        BF16 => Values::BF16(values.into_iter().map(bf16::from_f32).collect()),
        F64 => Values::F64(values.into_iter().map(f64::from).collect()),
        _ => Values::F32(values),
    }
}

pub type Inputs = Vec<(&'static str, Values)>;

impl Row {
    pub fn graph(&self) -> Result<(Graph, Inputs), GraphError> {
        let (mut graph, mut inputs) = (Graph::new(), Vec::new());
        let mut input = |graph: &mut Graph, name: &'static str, extents: &[usize], values: Values| {
            let tensor = graph.input(name, values.element(), shape(extents));
            inputs.push((name, values));
            tensor
        };
        let random = |extents: &[usize], seed| floats(self.element, numbers(extents.iter().product(), seed, 1.0));
        let arranged = |heads, positions, elements| match self.op.layout {
            Bhsd => [self.batch, heads, positions, elements],
            Bshd => [self.batch, positions, heads, elements],
        };
        let of_q = arranged(self.heads, self.queries, self.elements);
        let q = input(&mut graph, "q", &of_q, random(&of_q, 1))?;
        // Keys and values are parts of one tensor, as a fused projection leaves them.
        let both = arranged(self.key_heads, self.keys, self.elements + self.value_elements);
        let kv = input(&mut graph, "kv", &both, random(&both, 2))?;
        let k = graph.narrow(kv, 3, 0, self.elements as i64)?;
        let v = graph.narrow(kv, 3, self.elements as i64, self.value_elements as i64)?;
        let mut operands = AttentionOperands::default();
        if let Some(extents) = &self.mask {
            // The first row sees nothing, of every other row some keys are hidden.
            let columns = extents.last().copied().unwrap_or(1);
            let rows = extents.iter().product::<usize>() / columns.max(1);
            let values = (0..rows * columns).map(|at| (rows == 1 || at >= columns) && at % 5 != 3).collect();
            operands.mask = Some(input(&mut graph, "mask", extents, Values::Bool(values))?);
        }
        if let Some(extents) = &self.bias {
            let mut values = numbers(extents.iter().product(), 3, 2.0);
            values.iter_mut().skip(2).step_by(5).for_each(|value| *value = f32::NEG_INFINITY);
            operands.bias = Some(input(&mut graph, "bias", extents, floats(self.element, values))?);
        }
        if let Some(lengths) = &self.lengths {
            operands.lengths = Some(input(&mut graph, "lengths", &[self.batch], Values::U32(lengths.clone()))?);
        }
        if self.sinks {
            operands.sinks = Some(input(&mut graph, "sinks", &[self.heads], random(&[self.heads], 4))?);
        }
        if self.scores == Scores::Nothing {
            let y = graph.attention(q, k, v, operands, self.op)?;
            graph.output("y", y)?;
        } else {
            let (y, scores) = graph.attention_with_scores(q, k, v, operands, self.op, self.scores)?;
            graph.output("y", y)?;
            graph.output("scores", scores)?;
        }
        Ok((graph, inputs))
    }

    pub fn reference(&self) -> BTreeMap<String, HostTensor> {
        let (graph, inputs) = self.graph().unwrap();
        let leaves = inputs.iter().map(|(name, values)| ((*name).to_owned(), values.host())).collect();
        reference::evaluate(&graph, &leaves, &Extents::new()).unwrap()
    }
}

/// The candidates of a graph's attention.
pub fn candidates(graph: &Graph) -> BTreeSet<&'static str> {
    graph.nodes().iter().flat_map(|node| node.op.kind().ways()).collect()
}

/// The graph by each candidate that takes it on a device, with the candidate's name.
pub fn by_each_candidate(graph: &Graph, device: &Device) -> Vec<(&'static str, Executable)> {
    let by = |name: &'static str| {
        let options = Options { force: [("attention".to_owned(), name.to_owned())].into(), ..Options::default() };
        match Executable::compile(graph, &Model::new(), device, &options) {
            Ok(executable) => Some((name, executable)),
            Err(Error::NoCandidate { .. }) => None,
            Err(error) => panic!("{name} on {}: {error}", device.properties().name),
        }
    };
    let found: Vec<_> = candidates(graph).into_iter().filter_map(by).collect();
    assert!(!found.is_empty(), "no candidate takes it on {}", device.properties().name);
    found
}

/// Runs each row on every device, as chosen and with each candidate forced, after a run on NaN. Every device must take each row. Gives who took what.
pub fn check(rows: &[Row]) -> BTreeSet<&'static str> {
    let mut taken = BTreeSet::new();
    for device in devices() {
        for row in rows.iter().filter(|row| computes(&device, row.element)) {
            let (graph, inputs) = row.graph().unwrap();
            let place = format!("{row:?} on {}", device.properties().name);
            println!("{place}");
            let run = |force: Option<&str>| {
                let force = force.map(|name| ("attention".to_owned(), name.to_owned())).into_iter().collect();
                let options = Options { force, ..Options::default() };
                let executable = Executable::compile(&graph, &Model::new(), &device, &options)?;
                let poison: Vec<_> = inputs
                    .iter()
                    .map(|(name, values)| match values.element() {
                        F32 | F16 | BF16 | F64 => {
                            (*name, floats(values.element(), vec![f32::NAN; values.host().values.len()]))
                        }
                        _ => (*name, values.clone()),
                    })
                    .collect();
                let poison: Vec<_> = poison.iter().map(|(name, values)| (*name, values.data())).collect();
                executable.run(&poison, &Extents::new())?;
                compare(&graph, &executable, &inputs, &Extents::new(), tolerance(row.element));
                Ok(())
            };
            run(None).unwrap_or_else(|error: Error| panic!("{place}: {error}"));
            // A processor that plays a GPU takes long to compile what GPUs compile fast: half of the elements go through the chosen candidate alone.
            let every =
                if device.properties().software && row.element != F32 { BTreeSet::new() } else { candidates(&graph) };
            for name in every {
                match run(Some(name)) {
                    Ok(()) => {
                        println!("  {name}");
                        taken.insert(name);
                    }
                    Err(Error::NoCandidate { reasons, .. }) => assert!(reasons.contains(name), "{place}: {reasons}"),
                    Err(error) => panic!("{place}, {name}: {error}"),
                }
            }
        }
    }
    taken
}
