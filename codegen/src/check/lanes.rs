//! Lanes: the invocations of a workgroup that take part, which branches divide and joins put together.

use std::rc::Rc;

/// The lanes that take part, ascending.
pub(super) type Lanes = Rc<Vec<u32>>;

/// Puts the words of some lanes in the place of others, for each scalar.
pub(super) fn blend(to: &mut [u64], from: &[u64], lanes: &[u32], count: usize) {
    if lanes.len() == count {
        to.copy_from_slice(from);
        return;
    }
    for (to, from) in to.chunks_exact_mut(count).zip(from.chunks_exact(count)) {
        for lane in lanes {
            to[*lane as usize] = from[*lane as usize];
        }
    }
}

/// Lanes for which something holds, and the others.
pub(super) fn split(lanes: &Lanes, holds: impl Fn(u32) -> bool) -> (Lanes, Lanes) {
    let yes = lanes.iter().filter(|lane| holds(**lane)).count();
    if yes == lanes.len() {
        return (lanes.clone(), Rc::default());
    }
    if yes == 0 {
        return (Rc::default(), lanes.clone());
    }
    let (yes, no): (Vec<u32>, Vec<u32>) = lanes.iter().partition(|lane| holds(**lane));
    (Rc::new(yes), Rc::new(no))
}

/// Lanes whose word is true, and the others.
pub(super) fn divide(words: &[u64], lanes: &Lanes) -> (Lanes, Lanes) {
    split(lanes, |lane| words[lane as usize] != 0)
}

/// All of two lists without common lanes.
pub(super) fn join(a: &Lanes, b: &Lanes) -> Lanes {
    match (a.is_empty(), b.is_empty()) {
        (_, true) => a.clone(),
        (true, _) => b.clone(),
        _ => Rc::new(sorted(a.iter().chain(b.iter()).copied().collect())),
    }
}

/// Lanes in their order.
pub(super) fn sorted(mut lanes: Vec<u32>) -> Vec<u32> {
    lanes.sort_unstable();
    lanes
}
