//! Atomic operations, one lane after the other, and what their orders tell of.
//!
//! Of ordered operations it is known which workgroups one has learned of, and in a stretch which lanes: a plain access of such is no race. At which point
//! of its run the other released is not looked at, and a kernel with fences counts as if all its atomics were ordered, so that a race of a kernel that
//! orders memory by itself may go unseen; what is reported is one.

use super::lanes::Lanes;
use super::machine::{Frame, Machine, Run};
use super::math;
use super::scalar;
use crate::ir::{
    AtomicFunction, BinaryOperator, Expression, Handle, MathFunction, Ordering, Place, Root, Scalar, Scope,
};

/// What an atomic holds after an operation.
fn after(function: AtomicFunction, scalar: Scalar, old: u64, value: u64, compare: u64) -> u64 {
    use AtomicFunction as A;
    let binary = |operator| scalar::binary(operator, scalar, old, value);
    match function {
        A::Load => old,
        A::Store | A::Exchange => value,
        A::Add => binary(BinaryOperator::Add),
        A::Subtract => binary(BinaryOperator::Subtract),
        A::And => binary(BinaryOperator::And),
        A::Or => binary(BinaryOperator::Or),
        A::Xor => binary(BinaryOperator::Xor),
        A::Min => math::lanewise(MathFunction::Min, scalar, &[old, value]),
        A::Max => math::lanewise(MathFunction::Max, scalar, &[old, value]),
        A::CompareExchange => {
            if old == compare {
                value
            } else {
                old
            }
        }
    }
}

impl<'m> Machine<'m> {
    pub(super) fn atomic(
        &mut self,
        frame: &Frame<'m>,
        place: &'m Place,
        function: AtomicFunction,
        [value, compare]: [Option<Handle<Expression>>; 2],
        ordering: Ordering,
        lanes: &Lanes,
    ) -> Run<Vec<u64>> {
        let span = self.here;
        let writes = function != AtomicFunction::Load;
        let (at, _) = self.element(frame, place, lanes, (span, writes))?;
        let operand = |machine: &mut Self, operand: Option<Handle<Expression>>| match operand {
            Some(operand) => machine.value(frame, operand, lanes),
            None => Ok(machine.take(machine.count)),
        };
        let values = operand(self, value)?;
        let compares = operand(self, compare)?;
        let ty = match place.root {
            Root::Workgroup(variable) => self.module.workgroup[variable].element,
            root => self.module.bindings[Self::number(root) as usize / 4].element,
        };
        let scalar = self.scalar(ty);
        let mut out = self.take(self.count);
        for lane in lanes.iter().copied() {
            let Some(at) = at[lane as usize] else { continue };
            let now = self.now;
            let memory = match place.root {
                Root::Workgroup(variable) => &mut self.workgroup[variable.index()],
                root => &mut self.bindings[Self::number(root) as usize / 4],
            };
            let old = memory.words[at];
            let new = after(function, scalar, old, values[lane as usize], compares[lane as usize]);
            out[lane as usize] = old;
            memory.words[at] = new;
            // A first value that no barrier orders before is none for all that the invocation knows.
            let beside = match memory.cells.get(at) {
                Some(cell) if !memory.shared => cell.begun_beside(now, lane),
                _ => None,
            };
            let unwritten = !memory.shared && memory.cells.get(at).is_some_and(|cell| !cell.is_written(now));
            if writes && let Some(cell) = memory.cells.get_mut(at) {
                cell.atomic(now, lane, span);
            }
            if self.program.orders_memory {
                let fails = function == AtomicFunction::CompareExchange && new != values[lane as usize];
                self.order(place.root, at, lane, ordering, writes && !fails);
            }
            let unordered = beside.is_some_and(|first| !self.learned_lanes.contains(&(lane, first)));
            if (unwritten || unordered) && function != AtomicFunction::Store && self.options.uninitialised {
                self.uninitialised(frame, place.root, at as u64, lane, span)?;
            }
        }
        self.give(values);
        self.give(compares);
        Ok(out)
    }

    /// What an operation lets others learn, and what it learns.
    fn order(&mut self, root: Root, at: usize, lane: u32, ordering: Ordering, wrote: bool) {
        let fenced = !self.program.fences.is_empty();
        // A workgroup's own scope holds no other workgroup.
        let holds_all = ordering.scope.at(root) == Scope::Device || self.program.fences.contains(&Scope::Device);
        // Workgroup memory is another one for each workgroup.
        let group = matches!(root, Root::Workgroup(_)).then_some(self.group);
        let key = (group, Self::number(root) as usize, at as u64);
        if (fenced || ordering.order.acquires())
            && let Some(released) = self.released.get(&key)
        {
            if holds_all {
                self.learned.extend(released.groups.iter().filter(|group| **group != self.group));
            }
            if released.stretch == self.now.stretch {
                self.learned_lanes.extend(released.lanes.iter().map(|other| (lane, *other)));
            }
        }
        if wrote && (fenced || ordering.order.releases()) {
            let released = self.released.entry(key).or_default();
            if holds_all {
                released.groups.insert(self.group);
                released.groups.extend(&self.learned);
            }
            if released.stretch != self.now.stretch {
                released.stretch = self.now.stretch;
                released.lanes.clear();
            }
            // Whoever learns of this lane learns of all of whom it has learned.
            let before = self.learned_lanes.range((lane, 0)..=(lane, u32::MAX)).map(|(_, other)| *other);
            released.lanes.extend(before.chain([lane]));
        }
    }
}
