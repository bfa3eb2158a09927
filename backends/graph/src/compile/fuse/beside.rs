//! Small regions that could run at the same time run in one kernel: a launch costs more than their work.
//!
//! **What may.** Regions of equally many elements, of which none needs another: they are as far from the program's beginning as each other, counted in groups of which each reads what the one before makes. All that they read and make is small, so that it
//! matters to nobody how long it stays in memory; what is there anyway, such as params, may be of any size. An invocation computes its element of each.
//!
//! Regions are looked for after kernels have taken those that they can: within a kernel they cost no launch at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::kernel::describe;
use super::{MOST_MAPS, Stage};
use crate::compile::Options;
use crate::compile::program::MapWork;
use crate::dim::Dim;
use crate::error::Result;

/// Bytes of a value that is small: what a kernel moves in a fraction of the time that its launch takes.
pub const SMALL: i64 = 1 << 18;
/// Regions in a kernel, at most: its code grows with each, and 16 launches that are one cost little as it is.
pub const MOST: usize = 16;
/// What [`Options::forbid`] takes, so that each region stays a kernel of its own.
pub const NAME: &str = "beside";

/// Small regions of which one kernel was made, for `explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The maps of each.
    pub regions: Vec<String>,
    /// How many elements each has.
    pub elements: Dim,
    /// Why those after them, of as many elements, are not among them, if there are such.
    pub full: Option<String>,
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { regions, elements, full } = self;
        write!(f, "beside each other, of {elements} elements: {}", regions.join("; "))?;
        full.as_ref().map_or(Ok(()), |full| write!(f, "; no more, since {full}"))
    }
}

impl Stage<'_> {
    /// Puts small regions beside each other.
    ///
    /// # Errors
    /// Groups read each other in a circle.
    pub(super) fn beside_all(&mut self, options: &Options) -> Result<Vec<Beside>> {
        if options.forbid.contains(NAME) {
            return Ok(Vec::new());
        }
        let mut alike: BTreeMap<(usize, Dim), BTreeSet<usize>> = BTreeMap::new();
        for (group, level) in self.levels()? {
            if self.is_region(group) && self.is_small(group) {
                alike.entry((level, self.elements_of(group))).or_default().insert(group);
            }
        }
        let mut told = Vec::new();
        for ((_, elements), groups) in alike {
            let mut groups = groups.into_iter().peekable();
            while let Some(first) = groups.next() {
                let mut regions = vec![self.named(first)];
                let mut full = None;
                while let Some(next) = groups.peek().copied() {
                    let buffers = self.buffers(&[first, next]);
                    if buffers > self.max_buffers {
                        full = Some(format!(
                            "they would bind {buffers} buffers, of which there may be {}",
                            self.max_buffers
                        ));
                    } else if regions.len() == MOST {
                        full = Some(format!("a kernel takes {MOST}"));
                    } else if self.members[&first].len() + self.members[&next].len() > MOST_MAPS {
                        full = Some(format!("a kernel takes {MOST_MAPS} maps"));
                    }
                    if full.is_some() {
                        break;
                    }
                    groups.next();
                    regions.push(self.named(next));
                    self.join(first, next);
                }
                if regions.len() > 1 {
                    told.push(Beside { regions, elements: elements.clone(), full });
                }
            }
        }
        Ok(told)
    }

    /// Each group, and the most groups that it stands behind.
    fn levels(&self) -> Result<Vec<(usize, usize)>> {
        let mut levels: BTreeMap<usize, usize> = BTreeMap::new();
        let order = self.in_order()?;
        for group in &order {
            let next = levels.get(group).map_or(1, |level| level + 1);
            for successor in self.successors(*group) {
                let level = levels.entry(successor).or_default();
                *level = next.max(*level);
            }
        }
        Ok(order.into_iter().map(|group| (group, levels.get(&group).copied().unwrap_or(0))).collect())
    }

    fn is_small(&self, group: usize) -> bool {
        let values = self.maps(group).flat_map(|map| map.inputs.iter().map(|read| read.value).chain([map.output]));
        values
            .map(|value| &self.program.values[value])
            .all(|value| value.origin.is_given() || value.bytes.bounds().1 <= SMALL)
    }

    fn named(&self, group: usize) -> String {
        describe(&self.maps(group).cloned().collect::<Vec<MapWork>>())
    }
}
