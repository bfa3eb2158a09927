//! What stands between groups, which decides whether two of them may be one.
//!
//! Groups have places in an order in which each stands behind those that it needs, and keep such places as they are merged: so a search for the ways from one group to another ends at the other's place.
//! The positions of a group's first and last work would not bound it: what needs the last work of a group may stand behind work that needs only its first.

use std::collections::BTreeSet;

use super::Stage;

/// The places of groups.
#[derive(Debug)]
pub(super) struct Places {
    /// For each group its place.
    of: Vec<usize>,
    /// For each place its group; none where one was merged into another.
    at: Vec<Option<usize>>,
}

impl Places {
    /// Groups of one work each, which are in such an order.
    pub(super) fn new(works: usize) -> Self {
        Self { of: (0..works).collect(), at: (0..works).map(Some).collect() }
    }
}

impl Stage<'_> {
    /// The groups that read what a group makes, or replace what it reads, once for each time that they do.
    fn next_to(&self, group: usize) -> impl Iterator<Item = usize> {
        let works = self.members[&group].iter().flat_map(move |member| &self.after[*member]);
        works.filter_map(move |work| self.group[*work]).filter(move |next| *next != group)
    }

    /// The same, each once.
    pub(super) fn successors(&self, group: usize) -> BTreeSet<usize> {
        self.next_to(group).collect()
    }

    /// The groups that need `first` and have places in front of that of `last`.
    fn between(&self, first: usize, last: usize) -> BTreeSet<usize> {
        let end = self.places.of[last];
        let (mut found, mut open) = (BTreeSet::new(), vec![first]);
        while let Some(group) = open.pop() {
            let next = self.next_to(group).filter(|next| self.places.of[*next] < end);
            open.extend(next.filter(|next| found.insert(*next)));
        }
        found
    }

    /// Whether `second` also needs `first` by way of a third group: then they cannot be one.
    pub(super) fn roundabout(&self, first: usize, second: usize) -> bool {
        self.between(first, second).into_iter().any(|group| self.next_to(group).any(|next| next == second))
    }

    /// Makes one of two groups between which nothing stands; it is named as the first.
    pub(super) fn merge(&mut self, first: usize, second: usize) {
        let mut ends = [first, second];
        ends.sort_unstable_by_key(|group| self.places.of[*group]);
        let [low, high] = ends;
        let (start, end) = (self.places.of[low], self.places.of[high]);
        // What needs the one in front goes behind both; nothing of it is needed by the other.
        let needing = self.between(low, high);
        let others = self.places.at[start..=end].iter().flatten().copied().filter(|group| !ends.contains(group));
        let (behind, before): (Vec<_>, Vec<_>) = others.partition(|group| needing.contains(group));
        self.places.at[start..=end].fill(None);
        // Close to what follows, with which they are merged next.
        let line = before.into_iter().chain([first]).chain(behind).rev();
        for (place, group) in (start..=end).rev().zip(line) {
            self.places.at[place] = Some(group);
            self.places.of[group] = place;
        }
        self.join(first, second);
    }

    /// The same where nobody asks any more what stands between groups: they lose their places.
    pub(super) fn join(&mut self, first: usize, second: usize) {
        let moved = self.members.remove(&second).unwrap_or_default();
        for member in &moved {
            self.group[*member] = Some(first);
        }
        let members = self.members.entry(first).or_default();
        members.extend(moved);
        members.sort_unstable();
    }

    /// That every group stands behind those that it needs.
    pub(super) fn check_places(&self) -> Result<(), String> {
        for group in self.members.keys() {
            let place = self.places.of[*group];
            if self.places.at[place] != Some(*group) {
                return Err(format!("group {group} has lost its place"));
            }
            if let Some(next) = self.next_to(*group).find(|next| self.places.of[*next] <= place) {
                return Err(format!("group {next} needs group {group} and has a place in front of it"));
            }
        }
        Ok(())
    }
}
