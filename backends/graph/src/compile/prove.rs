//! The proof: a simulation of what every byte range holds, from the graph and the recorded steps alone.
//!
//! It shares no code with the planner or the scheduler. A step says which nodes it computes; the graph says what those read. The proof fails if a step reads
//! bytes that do not hold the value wanted, if an update writes into other bytes than those that hold the version before, or a step over an operand into others than the operand's, if two steps that conflict have no barrier between them, if a node is computed before what it needs, if a step of a node's several is missing or out of order, or if an output,
//! the newest version of a state or a node's counters are not where they are looked for at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::program::Meaning;
use super::steps::{Claim, Part};
use crate::graph::{Graph, Tensor};
use crate::op::OpKind;

/// Bytes that a step binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The piece of memory.
    pub buffer: usize,
    /// The first byte bound.
    pub offset: u64,
    /// How many bytes the step may touch.
    pub bytes: u64,
    /// Whether the kernel reads.
    pub reads: bool,
    /// Whether the kernel writes.
    pub writes: bool,
    /// What the bytes are meant to be.
    pub meaning: Meaning,
    /// What they must be before, where the kernel writes over it and leaves in place what it does not write.
    pub over: Option<Meaning>,
}

/// One thing that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A barrier.
    Barrier,
    /// A dispatch or a function of the host.
    Step {
        /// Its label.
        label: String,
        /// What it computes.
        claims: Vec<Claim>,
        /// Which of the steps it is that compute it.
        part: Part,
        /// What it binds.
        accesses: Vec<Access>,
    },
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// What is in memory before the first command.
    pub given: Vec<Access>,
    /// The commands.
    pub events: Vec<Event>,
    /// What must be there after the last command, with the graph's name for it: outputs, and inputs that stay for the next run.
    pub taken: Vec<(Tensor, Access)>,
}

/// Contents of a byte range: the byte after its last, what it holds, and who wrote it.
#[derive(Clone, Debug)]
struct Held {
    end: u64,
    meaning: Meaning,
}

/// The memory: for each buffer, ranges by their first bytes.
#[derive(Default)]
struct Memory(BTreeMap<usize, BTreeMap<u64, Held>>);

impl Memory {
    fn write(&mut self, buffer: usize, start: u64, end: u64, meaning: Meaning) {
        if start >= end {
            return;
        }
        let ranges = self.0.entry(buffer).or_default();
        let touched: Vec<u64> =
            ranges.range(..end).filter(|(_, held)| held.end > start).map(|(from, _)| *from).collect();
        for from in touched {
            if let Some(held) = ranges.remove(&from) {
                if from < start {
                    ranges.insert(from, Held { end: start, meaning: held.meaning });
                }
                if held.end > end {
                    ranges.insert(end, held);
                }
            }
        }
        ranges.insert(start, Held { end, meaning });
    }

    /// Whether all bytes of a range hold `wanted`; otherwise what is there instead.
    fn holds(&self, buffer: usize, start: u64, end: u64, wanted: Meaning) -> Result<(), String> {
        let mut at = start;
        while at < end {
            let ranges = self.0.get(&buffer);
            let held = ranges.and_then(|ranges| ranges.range(..=at).next_back()).filter(|(_, held)| held.end > at);
            match held {
                Some((_, held)) if held.meaning == wanted => at = held.end,
                Some((_, held)) => return Err(format!("byte {at} of buffer {buffer} holds {:?}", held.meaning)),
                None => return Err(format!("byte {at} of buffer {buffer} holds nothing")),
            }
        }
        Ok(())
    }
}

/// Nodes of several steps, some of which are done: the node, how many are, and of how many.
#[derive(Default)]
struct Begun(BTreeMap<u32, Part>);

impl Begun {
    /// Checks that a node's steps come in their order, and that nobody reads what a node has only begun.
    fn step(&mut self, claims: &[Claim], part: Part, accesses: &[Access]) -> Result<(), String> {
        let own = |node: u32| claims.contains(&Claim::Node(node));
        for access in accesses.iter().filter(|access| access.reads && access.bytes > 0) {
            let read = match access.meaning {
                Meaning::Tensor(tensor) => tensor.node,
                Meaning::Scratch { node, .. } | Meaning::Counters { node } => node,
                Meaning::Copy(_) => continue,
            };
            if let Some(begun) = self.0.get(&read)
                && !own(read)
            {
                return Err(format!("it reads {:?} after {} of {} steps", access.meaning, begun.index, begun.of));
            }
        }
        for claim in claims {
            let Claim::Node(node) = claim else { continue };
            let next = self.0.remove(node).map_or(0, |begun| begun.index);
            if part.index != next {
                return Err(format!("it is step {} of {}, where step {next} should stand", part.index, part.of));
            }
            if part.index + 1 < part.of {
                self.0.insert(*node, Part { index: next + 1, ..part });
            }
        }
        Ok(())
    }

    fn ended(&self) -> Result<(), String> {
        match self.0.first_key_value() {
            Some((node, begun)) => Err(format!("node {node} ends after {} of {} steps", begun.index, begun.of)),
            None => Ok(()),
        }
    }
}

/// Runs the proof.
///
/// # Errors
/// The first defect, with the step's label.
pub fn prove(graph: &Graph, trace: &Trace) -> Result<(), String> {
    let mut memory = Memory::default();
    for given in &trace.given {
        memory.write(given.buffer, given.offset, given.offset + given.bytes, given.meaning);
    }
    let mut since_barrier: Vec<(&str, &Access)> = Vec::new();
    let mut computed: BTreeSet<Claim> = BTreeSet::new();
    let mut begun = Begun::default();
    for event in &trace.events {
        let Event::Step { label, claims, part, accesses } = event else {
            since_barrier.clear();
            continue;
        };
        let wrong = |what: String| Err(format!("`{label}`: {what}"));
        for access in accesses {
            for (earlier, other) in &since_barrier {
                let overlap = access.buffer == other.buffer
                    && access.offset.max(other.offset) < (access.offset + access.bytes).min(other.offset + other.bytes);
                if overlap && (access.writes || other.writes) {
                    return wrong(format!(
                        "no barrier stands between it and `{earlier}`, and they touch the same bytes"
                    ));
                }
            }
        }
        for (index, access) in accesses.iter().enumerate() {
            for other in &accesses[..index] {
                let overlap = access.buffer == other.buffer
                    && access.offset.max(other.offset) < (access.offset + access.bytes).min(other.offset + other.bytes);
                if overlap && (access.writes || other.writes) {
                    return wrong("it writes bytes that it binds twice".to_owned());
                }
            }
        }
        begun.step(claims, *part, accesses).or_else(wrong)?;
        let makes: BTreeSet<Meaning> = claims.iter().flat_map(|claim| made_by(graph, *claim)).collect();
        for access in accesses {
            let continues = match access.meaning {
                Meaning::Scratch { .. } => true,
                Meaning::Counters { node } => claims.contains(&Claim::Node(node)),
                Meaning::Tensor(_) | Meaning::Copy(_) => makes.contains(&access.meaning),
            };
            if access.reads {
                // What a step itself makes may also be read and written in one binding; then it need not hold anything before.
                let started = memory.holds(access.buffer, access.offset, access.offset + access.bytes, access.meaning);
                let counts = matches!(access.meaning, Meaning::Counters { .. });
                if let Err(found) = started
                    && (counts || !(continues && access.writes))
                {
                    return wrong(format!("it reads {:?}, but {found}", access.meaning));
                }
            }
            if access.writes && !continues {
                return wrong(format!("it writes {:?}, which it does not compute", access.meaning));
            }
        }
        needs(graph, claims, *part, accesses, &computed).or_else(wrong)?;
        continues_version(graph, claims, accesses, &memory).or_else(wrong)?;
        continues_operand(graph, claims, accesses, &memory).or_else(wrong)?;
        for access in accesses.iter().filter(|access| access.writes) {
            memory.write(access.buffer, access.offset, access.offset + access.bytes, access.meaning);
        }
        computed.extend(claims);
        since_barrier.extend(accesses.iter().map(|access| (label.as_str(), access)));
    }
    begun.ended()?;
    for state in graph.states() {
        let found = Meaning::Tensor(state.found);
        let Some(place) = trace.given.iter().find(|given| given.meaning == found) else {
            return Err(format!("the state {:?} has no memory", state.found));
        };
        memory
            .holds(place.buffer, place.offset, place.offset + place.bytes, Meaning::Tensor(state.left))
            .map_err(|instead| format!("the next run would not find {:?}: {instead}", state.left))?;
    }
    for counters in trace.given.iter().filter(|given| matches!(given.meaning, Meaning::Counters { .. })) {
        memory
            .holds(counters.buffer, counters.offset, counters.offset + counters.bytes, counters.meaning)
            .map_err(|instead| format!("the next run would not find {:?}: {instead}", counters.meaning))?;
    }
    let mut missing: BTreeSet<Tensor> = graph.outputs().iter().map(|(_, tensor)| *tensor).collect();
    for (tensor, access) in &trace.taken {
        if !stands_for(graph, *tensor).contains(&access.meaning) {
            return Err(format!("{tensor:?} is taken from {:?}", access.meaning));
        }
        memory
            .holds(access.buffer, access.offset, access.offset + access.bytes, access.meaning)
            .map_err(|found| format!("{tensor:?} is taken at the end, but {found}"))?;
        missing.remove(tensor);
    }
    match missing.first() {
        Some(tensor) => Err(format!("{tensor:?} is an output and is never taken")),
        None => Ok(()),
    }
}

/// What may lie in memory for a tensor: itself, if it is no view; what it is a view of; or a copy of anything on that way.
fn stands_for(graph: &Graph, tensor: Tensor) -> Vec<Meaning> {
    let (mut at, mut all) = (tensor, vec![Meaning::Copy(tensor)]);
    loop {
        let node = &graph.nodes()[at.node as usize];
        match node.op.kind() {
            OpKind::View(_) => {
                at = node.inputs[0];
                all.push(Meaning::Copy(at));
            }
            OpKind::Leaf
            | OpKind::Fill(_)
            | OpKind::Map(_)
            | OpKind::Pull(_)
            | OpKind::Update(_)
            | OpKind::Kernels(_) => {
                all.push(Meaning::Tensor(at));
                return all;
            }
        }
    }
}

/// Checks that what an update writes into holds the version before, since what it does not write stays.
fn continues_version(graph: &Graph, claims: &[Claim], accesses: &[Access], memory: &Memory) -> Result<(), String> {
    for claim in claims {
        let Claim::Node(node) = claim else { continue };
        if !matches!(graph.nodes()[*node as usize].op.kind(), OpKind::Update(_)) {
            continue;
        }
        let (old, new) = (graph.nodes()[*node as usize].inputs[0], Meaning::Tensor(graph.tensor(*node, 0)));
        for access in accesses.iter().filter(|access| access.writes && access.meaning == new) {
            memory
                .holds(access.buffer, access.offset, access.offset + access.bytes, Meaning::Tensor(old))
                .map_err(|found| format!("it updates {old:?}, but {found}"))?;
        }
    }
    Ok(())
}

/// Checks that what is written over holds an operand of the node, all of it.
fn continues_operand(graph: &Graph, claims: &[Claim], accesses: &[Access], memory: &Memory) -> Result<(), String> {
    for access in accesses {
        let Some(below) = access.over else { continue };
        let inputs = claims.iter().flat_map(|claim| read_by(graph, *claim));
        if !inputs.into_iter().any(|input| stands_for(graph, input).contains(&below)) {
            return Err(format!("it writes over {below:?}, which is none of its operands"));
        }
        memory
            .holds(access.buffer, access.offset, access.offset + access.bytes, below)
            .map_err(|found| format!("it writes over {below:?}, but {found}"))?;
    }
    Ok(())
}

fn made_by(graph: &Graph, claim: Claim) -> Vec<Meaning> {
    match claim {
        Claim::Copy(tensor) => vec![Meaning::Copy(tensor)],
        Claim::Node(node) => {
            let ports = graph.nodes()[node as usize].outputs.len() as u32;
            (0..ports).map(|port| Meaning::Tensor(graph.tensor(node, port))).collect()
        }
    }
}

fn read_by(graph: &Graph, claim: Claim) -> Vec<Tensor> {
    match claim {
        Claim::Copy(tensor) => vec![tensor],
        Claim::Node(node) => {
            let node = &graph.nodes()[node as usize];
            // The version before lies where the update writes: it is not bound a second time.
            let first = usize::from(matches!(node.op.kind(), OpKind::Update(_)));
            node.inputs[first..].to_vec()
        }
    }
}

/// Checks that a step has what its claims need: computed by an earlier claim of its own, bound by it, a fill, or, for one of several steps of a node, bound by another of them.
fn needs(
    graph: &Graph,
    claims: &[Claim],
    part: Part,
    accesses: &[Access],
    computed: &BTreeSet<Claim>,
) -> Result<(), String> {
    let mut own: BTreeSet<Meaning> = BTreeSet::new();
    let bound: BTreeSet<Meaning> = accesses.iter().filter(|access| access.reads).map(|access| access.meaning).collect();
    for claim in claims {
        let several = match claim {
            Claim::Node(node) => {
                part.of > 1 || matches!(graph.nodes()[*node as usize].op.kind(), OpKind::Kernels(_) | OpKind::Pull(_))
            }
            Claim::Copy(_) => part.of > 1,
        };
        for tensor in read_by(graph, *claim) {
            let choices = stands_for(graph, tensor);
            let here = choices.iter().any(|choice| bound.contains(choice) || own.contains(choice));
            let before = choices.iter().any(|choice| match choice {
                Meaning::Tensor(root) => {
                    matches!(graph.nodes()[root.node as usize].op.kind(), OpKind::Fill(_))
                        || several
                            && (computed.contains(&Claim::Node(root.node))
                                || matches!(graph.nodes()[root.node as usize].op.kind(), OpKind::Leaf))
                }
                Meaning::Copy(copied) => several && computed.contains(&Claim::Copy(*copied)),
                Meaning::Scratch { .. } | Meaning::Counters { .. } => false,
            });
            if !here && !before {
                return Err(format!("it computes {claim:?} but does not have {tensor:?}"));
            }
        }
        own.extend(made_by(graph, *claim));
    }
    Ok(())
}
