//! A graph that fails, made smaller as long as it fails: fewer outputs, and nodes replaced by inputs with the values that the reference has for them.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use trefoil_graph::graph::{Leaf, LeafKind};
use trefoil_graph::{Graph, HostTensor, Tensor};

use super::bounds::Reference;
use super::draw::{Drawn, constant, tensor};

/// Graphs that are tried, at most.
const TRIES: usize = 300;

/// The smallest graph found that still fails, as `fails` says.
pub fn reduced(drawn: &Drawn, fails: impl Fn(&Drawn) -> bool) -> Drawn {
    let mut tries = 0;
    let mut holds = |candidate: &Option<Drawn>| {
        tries += 1;
        tries <= TRIES && candidate.as_ref().is_some_and(&fails)
    };
    let mut best = drawn.clone();
    let names = |drawn: &Drawn| drawn.graph.outputs().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    // One output, if one is enough; else without each.
    let single = names(&best).into_iter().find_map(|name| {
        let candidate = rebuilt(&best, &[name], None);
        if holds(&candidate) { candidate } else { None }
    });
    if let Some(single) = single {
        best = single;
    } else {
        for name in names(&best) {
            let others: Vec<String> = names(&best).into_iter().filter(|other| *other != name).collect();
            if let Some(candidate) = Some(rebuilt(&best, &others, None)).filter(&mut holds).flatten() {
                best = candidate;
            }
        }
    }
    // Cuts, from the outputs on.
    let mut at = best.graph.nodes().len();
    while at > 0 {
        at -= 1;
        let op: &dyn Any = &*best.graph.nodes()[at].op;
        if op.is::<Leaf>() {
            continue;
        }
        if let Some(candidate) = Some(rebuilt(&best, &names(&best), Some(at))).filter(&mut holds).flatten() {
            best = candidate;
            at = at.min(best.graph.nodes().len());
        }
    }
    best
}

/// The graph with these outputs alone, and with inputs for what the node at `cut` gives.
fn rebuilt(drawn: &Drawn, outputs: &[String], cut: Option<usize>) -> Option<Drawn> {
    let old = &drawn.graph;
    let mut needed = BTreeSet::new();
    let wanted = old.outputs().iter().filter(|(name, _)| outputs.contains(name));
    let mut waiting: Vec<usize> = wanted.clone().map(|(_, tensor)| tensor.node()).collect();
    // What a state's newest version needs is needed in the next run.
    let mut is_needed = |waiting: &mut Vec<usize>| {
        while let Some(node) = waiting.pop() {
            if needed.insert(node) && Some(node) != cut {
                waiting.extend(old.nodes()[node].inputs.iter().map(|input| input.node()));
                let of_state = old.states().iter().find(|state| state.found.node() == node);
                waiting.extend(of_state.map(|state| state.left.node()));
            }
        }
    };
    is_needed(&mut waiting);
    let values = cut.map(|_| plain(drawn));
    let mut new = Drawn { graph: Graph::new(), updates: BTreeMap::new(), ..drawn.clone() };
    let mut made: BTreeMap<Tensor, Tensor> = BTreeMap::new();
    for node in needed {
        let info = &old.nodes()[node];
        let op: &dyn Any = &*info.op;
        let graph = &mut new.graph;
        let ports: Vec<Tensor> = if Some(node) == cut {
            let mut ports = Vec::new();
            for (port, ty) in info.outputs.iter().enumerate() {
                let name = format!("cut {} of {}", info.name, ports.len());
                let runs = values.as_ref()?.iter().map(|run| run[&tensor(old, node, port)].clone()).collect();
                ports.push(graph.input(&name, ty.element, ty.shape.clone()).ok()?);
                new.cut.insert(name, runs);
            }
            ports
        } else if let Some(leaf) = op.downcast_ref::<Leaf>() {
            let (name, ty) = (&info.name, &leaf.ty);
            if !matches!(leaf.kind, LeafKind::Constant(_) | LeafKind::State) && !new.cut.contains_key(name) {
                // The values that it had under its old number.
                let runs = drawn.runs().into_iter().enumerate().filter_map(|(run, extents)| {
                    drawn
                        .given(run, &extents)
                        .into_iter()
                        .find(|(known, _)| known == name)
                        .map(|(_, values)| values.host())
                });
                new.cut.insert(name.clone(), runs.collect());
            }
            vec![match &leaf.kind {
                LeafKind::Input => graph.input(name, ty.element, ty.shape.clone()).ok()?,
                LeafKind::Seed => graph.seed().ok()?,
                LeafKind::Param => graph.param(name, ty.element, ty.shape.clone()).ok()?,
                LeafKind::State => graph.state(name, ty.element, ty.shape.clone()).ok()?,
                LeafKind::Constant(bytes) => constant(graph, ty, bytes).ok()?,
            }]
        } else {
            let inputs: Vec<Tensor> =
                info.inputs.iter().map(|input| made.get(input).copied()).collect::<Option<_>>()?;
            let at = graph.nodes().len();
            match drawn.updates.get(&node) {
                Some(part) => {
                    new.updates.insert(at, part.clone());
                    match part {
                        Some((axis, position)) => {
                            vec![graph.update(inputs[0], inputs[1], *axis as isize, position.clone()).ok()?]
                        }
                        None => {
                            graph.feed(inputs[0], inputs[1]).ok()?;
                            vec![tensor(graph, at, 0)]
                        }
                    }
                }
                None => graph.add_shared(&info.op, &inputs).ok()?,
            }
        };
        for (port, new) in ports.into_iter().enumerate() {
            made.insert(tensor(old, node, port), new);
        }
    }
    for (name, output) in wanted {
        new.graph.output(name, *made.get(output)?).ok()?;
    }
    (new.graph.nodes().len() <= old.nodes().len()).then_some(new)
}

/// What the plain reference says of every tensor, run by run.
fn plain(drawn: &Drawn) -> Vec<BTreeMap<Tensor, HostTensor>> {
    let mut reference = Reference::new(&drawn.graph, &[], drawn.seed);
    let mut runs = Vec::new();
    for (run, extents) in drawn.runs().iter().enumerate() {
        let leaves = drawn.given(run, extents).into_iter().map(|(leaf, values)| (leaf, values.host())).collect();
        match reference.run(&leaves, extents) {
            Ok((_, values)) => runs.push(values),
            Err(_) => return runs,
        }
    }
    runs
}

/// A graph as a list of its nodes.
pub fn listing(drawn: &Drawn) -> String {
    let graph = &drawn.graph;
    let mut text = format!("seed {}, runs with {:?}\n", drawn.seed, drawn.runs());
    for (index, node) in graph.nodes().iter().enumerate() {
        let inputs: Vec<_> = node.inputs.iter().map(|input| format!("{}.{}", input.node(), input.port())).collect();
        let types: Vec<_> = node.outputs.iter().map(ToString::to_string).collect();
        let attributes: Vec<_> = node.op.attributes().iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let part = drawn.updates.get(&index).map(|part| format!(" {part:?}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{index}: `{}` {}({}) [{}]{part} -> {}",
            node.name,
            node.op.name(),
            inputs.join(", "),
            attributes.join(", "),
            types.join(", ")
        );
        if let Some(values) = drawn.cut.get(&node.name) {
            let _ = writeln!(text, "    given {:?}", values.iter().map(|run| &run.values).collect::<Vec<_>>());
        }
    }
    for (name, tensor) in graph.outputs() {
        let _ = writeln!(text, "{name}: {}.{}", tensor.node(), tensor.port());
    }
    text
}
