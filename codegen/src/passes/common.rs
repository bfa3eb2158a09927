//! Common subexpressions: what is computed several times, one of them where it dominates the others, gets a name there.
//!
//! Occurrences of one number are gathered behind the first that can lead them: all that follow it in its block. A local of the author that has the value is the name, if it
//! is the first; otherwise a new local is declared before the statement. Larger expressions are looked at before their parts, which count once where the whole has become a name.
//!
//! Naming has a price, in registers and for readers, so that only what is dear or frequent gets a name: see [`is_worth`].

use std::cmp::Reverse;

use super::values::{Occurrence, Values};
use crate::ir::{Function, Module, Scalar};

/// Occurrences of one value that one of them computes.
pub struct Group {
    /// The one that is computed.
    pub leader: usize,
    /// Those that are read from its name.
    pub members: Vec<usize>,
}

/// Cost times repetitions from which on a value gets a name.
const LEAST_GAIN: u32 = 4;
/// The same of what is a single cheap operation, or a condition.
const LEAST_TRIVIAL_GAIN: u32 = 8;

/// What is to be computed once; with `common` not only what moves out of loops.
pub fn groups(module: &Module, function: &Function, values: &mut Values, common: bool) -> Vec<Group> {
    let mut order: Vec<(Reverse<u32>, usize)> =
        values.occurrences.iter().enumerate().map(|(index, occurrence)| (Reverse(occurrence.number), index)).collect();
    order.sort_unstable();
    let mut gone = vec![false; values.occurrences.len()];
    let mut groups = Vec::new();
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        if same.len() == 1 && !values.occurrences[same[0].1].moves {
            continue;
        }
        let mut left: Vec<usize> = same.iter().map(|(_, index)| *index).filter(|index| !gone[*index]).collect();
        if !common {
            left.retain(|index| values.occurrences[*index].moves);
        }
        left.sort_by_key(|index| (values.occurrences[*index].lead, *index));
        while let Some(first) = left.iter().position(|index| values.occurrences[*index].leads) {
            let leader = left[first];
            let Occurrence { lead, block, expression, .. } = values.occurrences[leader];
            let dominated = lead..values.ends[block as usize];
            let mut members = Vec::new();
            left.retain(|index| {
                let is_member = *index != leader && dominated.contains(&values.occurrences[*index].position);
                if is_member {
                    members.push(*index);
                }
                !is_member && *index != leader
            });
            let is_condition = module.types[function.expressions[expression].ty].scalar() == Some(Scalar::Bool);
            if !is_worth(&values.occurrences, leader, &members, is_condition) {
                continue;
            }
            for member in &members {
                let mut parts = Vec::new();
                function.tree(values.occurrences[*member].expression, &mut |part| parts.push(part));
                parts.pop();
                for part in parts {
                    if let Some(part) = gone.get_mut(values.of[part.index()] as usize) {
                        *part = true;
                    }
                }
            }
            let mut parts = Vec::new();
            function.tree(expression, &mut |part| parts.push(part));
            for part in parts {
                // Parts are computed where the whole is.
                if let Some(part) = values.occurrences.get_mut(values.of[part.index()] as usize)
                    && part.lead > lead
                {
                    (part.position, part.lead, part.block) = (lead, lead, block);
                }
            }
            groups.push(Group { leader, members });
        }
    }
    groups
}

/// Whether a name for a value is worth having.
fn is_worth(occurrences: &[Occurrence], leader: usize, members: &[usize], is_condition: bool) -> bool {
    let leader = &occurrences[leader];
    // Out of a loop.
    if leader.moves || members.iter().any(|member| occurrences[*member].moves) {
        return true;
    }
    let repetitions = members.len() as u32;
    let gain = leader.weight * repetitions;
    if is_condition {
        gain >= LEAST_TRIVIAL_GAIN
    } else if leader.local.is_some() {
        // There is a name already.
        repetitions > 0
    } else {
        gain >= if leader.weight == 1 { LEAST_TRIVIAL_GAIN } else { LEAST_GAIN }
    }
}
