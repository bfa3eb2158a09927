//! What may be written over: an operand that nobody looks at after the op that reads it. Its memory becomes that of the op's result where a candidate can do with that ([`Slot::Over`]), and nothing is copied.
//!
//! Works that read the operand before are done before, as for versions of states (`Work::replaces`); what reads it afterwards, or looks at its memory when the run is over, stands against it.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{Located, Origin, Program, ValueId, Work};
use crate::graph::Graph;
use crate::op::{Implementation, Slot};

/// The outputs that take over the memory of inputs, each with its input.
pub(super) fn taken_over(implementation: &Implementation) -> BTreeSet<(usize, usize)> {
    let over = implementation.slots().filter_map(|slot| match slot {
        Slot::Over { output, input } => Some((*output, *input)),
        Slot::Input(_) | Slot::Output(_) | Slot::Scratch(_) | Slot::Counters(_) | Slot::Empty => None,
    });
    over.collect()
}

/// The last work that reads each value.
pub(super) struct Readers {
    last: BTreeMap<ValueId, (usize, u32)>,
}

/// The readers as a work sees them.
#[derive(Clone, Copy)]
pub(super) struct ReadersAt<'a> {
    readers: &'a Readers,
    index: usize,
}

impl Readers {
    pub(super) fn new(works: &[Work]) -> Self {
        let mut last = BTreeMap::new();
        for (index, work) in works.iter().enumerate() {
            last.extend(work.reads().map(|read| (read.value, (index, work.node()))));
        }
        Self { last }
    }

    pub(super) fn at(&self, index: usize) -> ReadersAt<'_> {
        ReadersAt { readers: self, index }
    }
}

impl ReadersAt<'_> {
    /// The node that reads a value after this work.
    fn later(self, value: ValueId) -> Option<u32> {
        self.readers.last.get(&value).filter(|(index, _)| *index > self.index).map(|(_, node)| *node)
    }
}

/// Why the memory of an input must stay as it is.
pub(super) fn kept(
    graph: &Graph,
    program: &Program,
    inputs: &[Located],
    position: usize,
    readers: ReadersAt<'_>,
) -> Option<String> {
    let Located { value, ty, layout, .. } = &inputs[position];
    let info = &program.values[*value];
    match &info.origin {
        Origin::Param => return Some("it is a param".to_owned()),
        Origin::Constant(_) => return Some("it is a constant".to_owned()),
        Origin::State | Origin::Version(_) => return Some("it is a state".to_owned()),
        Origin::Counters => return Some("it is what kernels count in".to_owned()),
        Origin::Input if program.resident.contains(value) => {
            return Some("it is an input that stays for the next run".to_owned());
        }
        Origin::Input | Origin::Computed | Origin::Over(_) => {}
    }
    if let Some((name, _)) = program.outputs.iter().find(|(_, output)| output.value == *value) {
        return Some(format!("it is output `{name}`"));
    }
    if let Some(node) = readers.later(*value) {
        return Some(format!("`{}` reads it later", graph.nodes()[node as usize].name));
    }
    if inputs.iter().filter(|other| other.value == *value).count() > 1 {
        return Some("it is read as another operand too".to_owned());
    }
    if !layout.is_contiguous(&ty.shape) || ty.bytes() != info.bytes {
        return Some(format!("it is a part or another arrangement of `{}`", info.name));
    }
    None
}
