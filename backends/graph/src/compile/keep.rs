//! States are updated in their own memory, so what reads an older version comes first, or reads a copy.
//!
//! A work that reads a version must be done before the one that replaces it. That is an edge from the reader to the update, unless the update, by whatever way, comes before the reader: then the version is copied
//! first, and the reader reads the copy. Edges stay without circles, so that an order is left in which all can be done.

use std::collections::BTreeSet;

use super::program::{Kept, Program, ValueId, Work};
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Puts the works in an order in which every version of a state is read before it is replaced, with copies where there is none.
///
/// # Errors
/// A fault of this stage.
pub fn keep(graph: &Graph, mut program: Program) -> Result<Program> {
    if program.works.iter().all(|work| work.replaces().is_empty()) {
        return Ok(program);
    }
    let mut order = Order::new(&program);
    for update in 0..order.next.len() {
        let Some(old) = program.works[update].replaces().first().copied() else { continue };
        let after = order.reach(update);
        let mut late = Vec::new();
        for reader in (0..order.next.len()).filter(|reader| *reader != update) {
            if !program.works[reader].reads().any(|read| read.value == old) {
                continue;
            }
            if after.contains(&reader) {
                late.push(reader);
            } else {
                order.next[reader].insert(update);
            }
        }
        let given_out = program.outputs.iter().any(|(_, output)| output.value == old);
        if !late.is_empty() || given_out {
            copy(graph, &mut program, &mut order, update, old, &late)?;
        }
    }
    order.apply(&mut program)?;
    Ok(program)
}

/// Copies a version before `update` replaces it, and has `late` and outputs read the copy.
fn copy(
    graph: &Graph,
    program: &mut Program,
    order: &mut Order,
    update: usize,
    old: ValueId,
    late: &[usize],
) -> Result<()> {
    let Work::Update(work) = &program.works[update] else { return Ok(()) };
    let (node, source, by) = (work.node, work.inputs[0].clone(), work.output);
    let (made, located) = program.copy(node, &source);
    let copy = program.works.len();
    program.works.push(Work::Map(made));
    // It reads what the update replaces, and the others read it.
    let mut next: BTreeSet<usize> = late.iter().copied().collect();
    next.insert(update);
    order.next.push(next);
    if let Some(maker) = order.producer(program, old) {
        order.next[maker].insert(copy);
    }
    let mut readers = Vec::new();
    for reader in late {
        readers.push(graph.nodes()[program.works[*reader].node() as usize].name.clone());
        for read in program.works[*reader].reads_mut().iter_mut().filter(|read| read.value == old) {
            read.value = located.value;
        }
    }
    for (name, output) in program.outputs.iter_mut().filter(|(_, output)| output.value == old) {
        readers.push(format!("output `{name}`"));
        output.value = located.value;
    }
    let state = program.state_of(old);
    program.kept.push(Kept { state, by, copy: located.value, readers });
    Ok(())
}

/// What must come before what.
struct Order {
    /// For each work, those that come after it.
    next: Vec<BTreeSet<usize>>,
}

impl Order {
    /// The order in which values are made and read.
    fn new(program: &Program) -> Self {
        let mut maker = vec![None; program.values.len()];
        let mut next = vec![BTreeSet::new(); program.works.len()];
        for (index, work) in program.works.iter().enumerate() {
            for read in work.reads() {
                if let Some(before) = maker[read.value] {
                    let before: &mut BTreeSet<usize> = &mut next[before];
                    before.insert(index);
                }
            }
            for value in work.writes() {
                maker[*value] = Some(index);
            }
        }
        Self { next }
    }

    fn producer(&self, program: &Program, value: ValueId) -> Option<usize> {
        program.works.iter().position(|work| work.writes().contains(&value))
    }

    /// What comes after a work, by any way.
    fn reach(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(work) = open.pop() {
            open.extend(self.next[work].iter().filter(|next| reached.insert(**next)));
        }
        reached
    }

    /// Sorts the works: each as early as those before it allow, otherwise as they stood.
    fn apply(&self, program: &mut Program) -> Result<()> {
        let mut waiting = vec![0usize; self.next.len()];
        for next in self.next.iter().flatten() {
            waiting[*next] += 1;
        }
        let mut ready: BTreeSet<usize> = (0..waiting.len()).filter(|work| waiting[*work] == 0).collect();
        let mut works: Vec<Option<Work>> = std::mem::take(&mut program.works).into_iter().map(Some).collect();
        while let Some(work) = ready.pop_first() {
            program.works.extend(works[work].take());
            for next in &self.next[work] {
                waiting[*next] -= 1;
                if waiting[*next] == 0 {
                    ready.insert(*next);
                }
            }
        }
        if program.works.len() != works.len() {
            return Err(Error::Stage { stage: "keep", defect: "works wait for each other in a circle".to_owned() });
        }
        Ok(())
    }
}
