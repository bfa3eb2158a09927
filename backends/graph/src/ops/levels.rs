//! Axes as kernels walk them: those that follow on each other in memory are one *level*, and levels that are not walked by invocations side by side are handed over as lists.

use crate::dim::Dim;
use crate::op::ParamValue;

/// An axis, or several that are one: its extent, and each tensor's stride along it.
#[derive(Clone, Debug)]
pub struct Level<const N: usize> {
    /// How many elements it has.
    pub extent: Dim,
    /// From one element to the next, in elements.
    pub strides: [Dim; N],
}

impl<const N: usize> Level<N> {
    /// One with one element.
    pub fn one() -> Self {
        Self { extent: Dim::from(1i64), strides: std::array::from_fn(|_| Dim::from(0i64)) }
    }

    /// This level and the one inside it as one, if they follow on each other in each of these tensors.
    pub fn joined(&self, inner: &Self, tensors: impl IntoIterator<Item = usize>) -> Option<Self> {
        let follow = |tensor: usize| self.strides[tensor] == &inner.strides[tensor] * &inner.extent;
        let all = tensors.into_iter().all(follow);
        all.then(|| Self { extent: &self.extent * &inner.extent, strides: inner.strides.clone() })
    }
}

/// Levels, the outermost first, with neighbours made one where `joined` does so.
pub fn merged<L>(levels: impl IntoIterator<Item = L>, mut joined: impl FnMut(&L, &L) -> Option<L>) -> Vec<L> {
    let mut result: Vec<L> = Vec::new();
    for level in levels {
        match result.last_mut() {
            Some(outer) => match joined(outer, &level) {
                Some(both) => *outer = both,
                None => result.push(level),
            },
            None => result.push(level),
        }
    }
    result
}

/// Levels of more than one element, made one where they follow on each other in all tensors.
pub fn merged_in_all<const N: usize>(levels: impl IntoIterator<Item = Level<N>>) -> Vec<Level<N>> {
    merged(levels.into_iter().filter(|level| !level.extent.is(1)), |outer, inner| outer.joined(inner, 0..N))
}

/// How many elements levels have together.
pub fn count<const N: usize>(levels: &[Level<N>]) -> Dim {
    levels.iter().map(|level| level.extent.clone()).product()
}

/// A number of each level as kernels take them: the innermost first, filled up to `most`.
pub fn innermost_first<L>(levels: &[L], most: usize, of: impl Fn(&L) -> Dim) -> ParamValue {
    let mut values: Vec<_> = levels.iter().rev().map(of).collect();
    values.resize(most, Dim::from(1i64));
    ParamValue::Dims(values)
}
