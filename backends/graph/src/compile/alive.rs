//! Values by when they are alive: who looks for room beside some looks at no others.

use std::ops::Range;

use super::plan::Lifetime;

/// Values that have places.
pub(super) struct Alive {
    /// The moments of births, in order. Those of them at which a value is alive follow on each other.
    births: Vec<usize>,
    /// The values born at each.
    born: Vec<Vec<usize>>,
    /// A binary tree over the births, the root at 1 and the leaves last: at each node the values that are alive throughout it, but not throughout its parent.
    nodes: Vec<Vec<usize>>,
}

impl Alive {
    /// None of the values with these lifetimes has a place yet.
    pub(super) fn new(lifetimes: &[Lifetime]) -> Self {
        let mut births: Vec<usize> = lifetimes.iter().map(|lifetime| lifetime.born).collect();
        births.sort_unstable();
        births.dedup();
        let count = births.len();
        Self { births, born: vec![Vec::new(); count], nodes: vec![Vec::new(); 2 * count] }
    }

    /// The births at which a value is alive.
    fn during(&self, lifetime: &Lifetime) -> Range<usize> {
        let first = self.births.partition_point(|birth| *birth < lifetime.born);
        first..self.births.partition_point(|birth| *birth <= lifetime.dies).max(first + 1)
    }

    /// Adds a value of those with whose lifetimes this was made.
    pub(super) fn place(&mut self, value: usize, lifetime: &Lifetime) {
        let during = self.during(lifetime);
        self.born[during.start].push(value);
        let leaves = self.births.len();
        let (mut start, mut end) = (during.start + leaves, during.end + leaves);
        while start < end {
            if start % 2 == 1 {
                self.nodes[start].push(value);
                start += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                self.nodes[end].push(value);
            }
            (start, end) = (start / 2, end / 2);
        }
    }

    /// The values that may be alive together with one: those that are when it is born, and those that are born after it.
    pub(super) fn about(&self, lifetime: &Lifetime) -> impl Iterator<Item = usize> {
        let during = self.during(lifetime);
        let leaf = during.start + self.births.len();
        let path = std::iter::successors(Some(leaf), |node| Some(node / 2).filter(|parent| *parent > 0));
        let there = path.flat_map(move |node| &self.nodes[node]);
        there.chain(self.born[during.start + 1..during.end].iter().flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_that_are_alive_together_are_found(
            lifetimes in proptest::collection::vec((0usize..40, 0usize..15), 1..60),
        ) {
            let lifetimes: Vec<Lifetime> =
                lifetimes.into_iter().map(|(born, length)| Lifetime { bytes: 1, born, dies: born + length }).collect();
            let mut alive = Alive::new(&lifetimes);
            for (value, lifetime) in lifetimes.iter().enumerate() {
                let mut found: Vec<usize> = alive.about(lifetime).collect();
                found.sort_unstable();
                let together = |other: &usize| {
                    lifetime.born <= lifetimes[*other].dies && lifetimes[*other].born <= lifetime.dies
                };
                prop_assert_eq!(found, (0..value).filter(together).collect::<Vec<_>>());
                alive.place(value, lifetime);
            }
        }
    }
}
