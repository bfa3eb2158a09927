//! Asynchronous copies: the elements move when the copy begins, and their shadow says that it is under way until its invocation has waited.

use super::lanes::Lanes;
use super::machine::{Frame, Machine, Run, Stop};
use super::memory::{Against, Touch};
use crate::ir::{Asynchronous, Root};

/// The copies of a workgroup that nobody has waited for.
#[derive(Default)]
pub(super) struct Copies {
    /// For each lane, how many groups it has committed.
    committed: Vec<u32>,
    pieces: Vec<Piece>,
}

/// A scalar on its way.
struct Piece {
    lane: u32,
    /// The group that it belongs to.
    group: u32,
    variable: usize,
    to: usize,
    /// The binding and the scalar of it that are read, but for what is past the end.
    from: Option<(u32, usize)>,
    span: u32,
}

impl Copies {
    /// Whether a copy that reads a binding is under way.
    pub(super) fn reads(&self, binding: u32) -> bool {
        self.pieces.iter().any(|piece| piece.from.is_some_and(|(from, _)| from == binding))
    }

    /// The copy under way that reads a scalar of a binding.
    pub(super) fn reader(&self, binding: u32, at: usize) -> Option<Against> {
        let piece = self.pieces.iter().find(|piece| piece.from == Some((binding, at)))?;
        Some(Against::Copy(Touch::under_way(piece.lane, piece.span), false))
    }
}

impl<'m> Machine<'m> {
    /// Forgets the copies of the workgroup that ran before.
    pub(super) fn forget_copies(&mut self) {
        for piece in self.copies.pieces.drain(..) {
            if let Some(cell) = self.workgroup[piece.variable].cells.get_mut(piece.to) {
                cell.forget();
            }
        }
        self.copies.committed.clear();
        self.copies.committed.resize(self.count, 0);
    }

    pub(super) fn asynchronous(&mut self, frame: &Frame<'m>, operation: &'m Asynchronous, lanes: &Lanes) -> Run<()> {
        match operation {
            Asynchronous::Copy { to, from, count } => {
                let (Root::Workgroup(variable), Root::Binding(binding)) = (to.root, from.root) else {
                    return Err(Stop::Broken("a copy that is not from a buffer to workgroup memory".to_owned()));
                };
                let targets = self.value(frame, Self::index_of(to)?, lanes)?;
                let sources = self.value(frame, Self::index_of(from)?, lanes)?;
                let counts = self.value(frame, *count, lanes)?;
                let last = self.module.index.largest();
                for lane in lanes.iter().copied() {
                    let of = lane as usize;
                    for next in 0..counts[of] {
                        // Behind the largest index comes the first, as in the loads and stores that it is elsewhere.
                        let ends = [sources[of], targets[of]].map(|first| first.wrapping_add(next) & last);
                        self.copy_element(frame, (binding, ends[0]), (variable.index(), ends[1]), to.root, lane)?;
                    }
                }
                [targets, sources, counts].into_iter().for_each(|words| self.give(words));
            }
            Asynchronous::Commit => lanes.iter().for_each(|lane| self.copies.committed[*lane as usize] += 1),
            Asynchronous::Wait(left) => {
                let words = self.value(frame, *left, lanes)?;
                let mut done = vec![0; self.count];
                for lane in lanes.iter().map(|lane| *lane as usize) {
                    let left = u32::try_from(words[lane]).unwrap_or(u32::MAX);
                    done[lane] = self.copies.committed[lane].saturating_sub(left);
                }
                self.give(words);
                let (now, workgroup, bindings) = (self.now, &mut self.workgroup, &mut self.bindings);
                self.copies.pieces.retain(|piece| {
                    let finished = piece.group < done[piece.lane as usize];
                    if finished && let Some(cell) = workgroup[piece.variable].cells.get_mut(piece.to) {
                        cell.finish(now, piece.lane);
                    }
                    // It may have been read as late as here; what changed it before was told of then.
                    if finished
                        && let Some((binding, at)) = piece.from
                        && let Some(cell) = bindings[binding as usize].cells.get_mut(at)
                    {
                        cell.read(now, piece.lane, piece.span, true);
                    }
                    !finished
                });
            }
        }
        Ok(())
    }

    /// Copies one element; what is past the end of the buffer is zero, which is what such copies are for.
    fn copy_element(
        &mut self,
        frame: &Frame<'m>,
        (binding, source): (u32, u64),
        (variable, target): (usize, u64),
        root: Root,
        lane: u32,
    ) -> Run<()> {
        self.work += 1;
        let (now, span) = (self.now, self.here);
        let length = self.workgroup[variable].length;
        if target >= length {
            return self.past_end(frame, root, (target, length), lane, (span, true));
        }
        let each = self.workgroup[variable].each;
        let mut against: Option<(Root, u64, bool, Against)> = None;
        for part in 0..each {
            let from = &mut self.bindings[binding as usize];
            let read = if source < from.length { Some(source as usize * each + part) } else { None };
            let word = read.map_or(0, |at| from.words[at]);
            if let Some(cell) = read.and_then(|at| from.cells.get_mut(at))
                && let Some(found) = cell.read(now, lane, span, true)
            {
                against.get_or_insert((Root::Binding(binding), source, false, found));
            }
            let to = &mut self.workgroup[variable];
            let at = target as usize * each + part;
            to.words[at] = word;
            if let Some(found) = to.cells.get_mut(at).and_then(|cell| cell.begin(now, lane, span)) {
                against.get_or_insert((root, target, true, found));
            }
            let group = self.copies.committed[lane as usize];
            let from = read.map(|at| (binding, at));
            self.copies.pieces.push(Piece { lane, group, variable, to: at, from, span });
        }
        match against {
            Some((root, element, writes, found)) => self.conflict(frame, root, element, (lane, span, writes), found),
            None => Ok(()),
        }
    }
}
