//! The order of steps, in groups between which barriers stand: steps that need nothing of each other stand together.
//!
//! Memory is planned after the order, by groups: what a group touches is there until all of the group is done, so that places which are used again never bring a barrier into it. That memory must not
//! grow by this, so the order is sought within the bytes that are alive at once in the order given, and is only taken if its plan takes no more than the plan of that, and if it has fewer barriers.
//!
//! A group begins with the first step that is left. Others join it that are ready and at least as urgent, which means that as many must follow them, one after the other: what is not urgent would only be in memory for longer.
//! The processor does one command after the other, in the order given.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tracing::debug_span;
use trefoil_dsl::device::{DeviceKind, Properties};

use super::plan::{Buffer, Plan, lifetimes, plan, taken};
use super::program::{Program, ValueId};
use super::record::touches;
use super::schedule::{Reason, barriers};
use super::steps::{Part, Step};
use crate::error::Result;

/// Steps in their order.
pub(super) struct Ordered {
    pub(super) steps: Vec<Step>,
    pub(super) plan: Plan,
    /// Why a barrier stands before each step.
    pub(super) barriers: Vec<Vec<Reason>>,
}

/// Orders the steps and plans their memory.
///
/// # Errors
/// A value is larger than the device allows in one allocation or binding.
pub(super) fn ordered(program: &Program, steps: Vec<Step>, device: &Properties) -> Result<Ordered> {
    let moments: Vec<usize> = (1..=steps.len()).collect();
    let given = Ordered::new(program, steps, &moments, device)?;
    if device.kind == DeviceKind::Cpu || given.count() == 0 {
        return Ok(given);
    }
    let (order, moments) = groups(&needs(program, &given.steps), &given.held(program, &moments));
    let moved = order.iter().map(|step| given.steps[*step].clone()).collect();
    let grouped = Ordered::new(program, moved, &moments, device)?;
    let is_better = grouped.count() < given.count() && grouped.bytes() <= given.bytes();
    Ok(if is_better { grouped } else { given })
}

impl Ordered {
    fn new(program: &Program, steps: Vec<Step>, moments: &[usize], device: &Properties) -> Result<Self> {
        let planned = || plan(program, &steps, moments, &device.limits, &device.name);
        let plan = debug_span!("plan").in_scope(planned)?;
        let barriers = debug_span!("schedule").in_scope(|| {
            let touched: Vec<_> = steps.iter().map(|step| touches(program, &plan, step)).collect();
            barriers(&touched)
        });
        Ok(Self { steps, plan, barriers })
    }

    fn count(&self) -> usize {
        self.barriers.iter().filter(|reasons| !reasons.is_empty()).count()
    }

    /// Bytes of activations.
    fn bytes(&self) -> u64 {
        let sizes = self.plan.buffers.iter().map(|buffer| match buffer {
            Buffer::Activations(bytes) => *bytes,
            Buffer::Param(_) | Buffer::Constant(_) | Buffer::State(_) | Buffer::Counters(_) => 0,
        });
        sizes.sum()
    }

    /// What lies in activation memory.
    fn held(&self, program: &Program, moments: &[usize]) -> Vec<Held> {
        let lifetimes = lifetimes(program, &self.steps, moments);
        let mut touching: BTreeMap<ValueId, BTreeSet<usize>> = BTreeMap::new();
        for (at, step) in self.steps.iter().enumerate() {
            for used in &step.uses {
                touching.entry(program.home_of(used.value)).or_default().insert(at);
            }
        }
        let held = lifetimes.iter().map(|(value, lifetime)| Held {
            bytes: taken(lifetime),
            steps: touching.get(value).into_iter().flatten().copied().collect(),
            given: lifetime.born == 0,
            stays: lifetime.dies > self.steps.len(),
        });
        held.collect()
    }
}

/// A value in activation memory.
#[derive(Clone, Debug)]
struct Held {
    bytes: u64,
    /// The steps that touch it, in the order given.
    steps: Vec<usize>,
    /// Whether it is there before the first step.
    given: bool,
    /// Whether it is there after the last one.
    stays: bool,
}

impl Held {
    /// The steps during which it is there, of so many that are done at these moments, counted from 0.
    fn during(&self, count: usize, moment: impl Fn(usize) -> usize) -> Range<usize> {
        let moments = || self.steps.iter().map(|step| moment(*step));
        let first = if self.given { 0 } else { moments().min().unwrap_or(0) };
        first..if self.stays { count } else { moments().max().map_or(0, |last| last + 1) }
    }
}

/// For each step, those before it that must be done when it begins.
fn needs(program: &Program, steps: &[Step]) -> Vec<BTreeSet<usize>> {
    let mut written: BTreeMap<ValueId, usize> = BTreeMap::new();
    let mut read: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
    let mut all = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let mut needs = BTreeSet::new();
        // All that lies in one memory, as versions of a state do, counts as one.
        let uses =
            || step.uses.iter().map(|used| (program.state_of(program.home_of(used.value)), used.access.writes()));
        for (home, writes) in uses() {
            needs.extend(written.get(&home));
            if writes {
                needs.extend(read.get(&home).into_iter().flatten());
            }
        }
        for (home, writes) in uses() {
            if writes {
                written.insert(home, at);
                read.remove(&home);
            }
        }
        for (home, _) in uses().filter(|(_, writes)| !writes) {
            read.entry(home).or_default().push(at);
        }
        all.push(needs);
    }
    // The steps of a node stand next to each other. They stay in their order, and begin when everything that any of them needs is done.
    for (at, Part { index, of }) in steps.iter().map(|step| step.part).enumerate().filter(|(_, part)| part.of > 1) {
        if index > 0 {
            all[at].insert(at - 1);
        } else {
            let later: Vec<usize> = all[at..(at + of).min(steps.len())].iter().flatten().copied().collect();
            all[at].extend(later.into_iter().filter(|need| *need < at));
        }
    }
    all
}

/// The steps in groups: their order, and for each the number of its group, counted from 1.
fn groups(needs: &[BTreeSet<usize>], held: &[Held]) -> (Vec<usize>, Vec<usize>) {
    let count = needs.len();
    // Bytes that are there while each step runs, in the order given, and bytes that it makes; who touches what, and who is yet to.
    let (mut there, mut made, mut touched) = (vec![0; count], vec![0; count], vec![Vec::new(); count]);
    for (value, held) in held.iter().enumerate() {
        there[held.during(count, |step| step)].iter_mut().for_each(|there| *there += held.bytes);
        held.steps.iter().for_each(|step| touched[*step].push(value));
        if let (Some(first), false) = (held.steps.first(), held.given) {
            made[*first] += held.bytes;
        }
    }
    let most = there.iter().copied().max().unwrap_or(0);
    let mut untouched: Vec<usize> = held.iter().map(|held| held.steps.len()).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (step, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|need| after[*need].push(step));
    }
    // How many must follow a step, one after the other.
    let mut urgency = vec![0usize; count];
    for step in (0..count).rev() {
        urgency[step] = after[step].iter().map(|next| urgency[*next] + 1).max().unwrap_or(0);
    }
    let mut waits: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
    // By their urgency, so that those of too little are passed over at once.
    let mut ready: BTreeSet<(usize, usize)> =
        (0..count).filter(|step| waits[*step] == 0).map(|step| (urgency[step], step)).collect();
    let mut left: BTreeSet<usize> = (0..count).collect();
    let (mut order, mut moments) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut moment = 0;
    // What the first one left needs stands before it, and is done.
    while let Some(first) = left.first().copied() {
        moment += 1;
        let mut group = vec![first];
        let urgent = ready.range((urgency[first], 0)..).map(|(_, step)| *step);
        let mut joining: Vec<usize> = urgent.filter(|step| *step != first).collect();
        joining.sort_unstable();
        // The most bytes that are there from the first step to the last that was looked at.
        let (mut peak, mut looked_at) = (0, first);
        for step in joining {
            peak = there[looked_at..step].iter().copied().fold(peak, u64::max);
            looked_at = step;
            // What is made early is there in the meantime too.
            let bytes = made[step];
            if peak + bytes <= most {
                there[first..step].iter_mut().for_each(|there| *there += bytes);
                peak += bytes;
                group.push(step);
            }
        }
        for step in group {
            ready.remove(&(urgency[step], step));
            left.remove(&step);
            order.push(step);
            moments.push(moment);
            for next in &after[step] {
                waits[*next] -= 1;
            }
            for value in &touched[step] {
                untouched[*value] -= 1;
                if untouched[*value] == 0 && !held[*value].stays {
                    // What is done with early is not there in the meantime.
                    let last = held[*value].during(count, |step| step).end;
                    there[(first + 1).min(last)..last].iter_mut().for_each(|there| *there -= held[*value].bytes);
                }
            }
        }
        let done = &order[moments.partition_point(|known| *known < moment)..];
        let next = done.iter().flat_map(|step| &after[*step]).filter(|next| waits[**next] == 0);
        ready.extend(next.map(|next| (urgency[*next], *next)));
    }
    (order, moments)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values that each step makes one of, which those read that need it.
    fn values(needs: &[BTreeSet<usize>], bytes: &[u64]) -> Vec<Held> {
        let all = needs.iter().enumerate().map(|(made, _)| {
            let readers = (0..needs.len()).filter(|reader| needs[*reader].contains(&made));
            Held { bytes: bytes[made], steps: [made].into_iter().chain(readers).collect(), given: false, stays: false }
        });
        all.collect()
    }

    /// What is there beside everything else while a step runs.
    fn beside(step: usize, bytes: u64) -> Held {
        Held { bytes, steps: vec![step], given: false, stays: false }
    }

    fn chains(count: usize, length: usize, interleaved: bool) -> Vec<BTreeSet<usize>> {
        let step =
            |at: usize| if interleaved { at.checked_sub(count) } else { (!at.is_multiple_of(length)).then(|| at - 1) };
        (0..count * length).map(|at| step(at).into_iter().collect()).collect()
    }

    #[test]
    fn chains_go_side_by_side_where_memory_is_left() {
        for interleaved in [false, true] {
            let mut needs = chains(3, 5, interleaved);
            needs.push(BTreeSet::from(if interleaved { [12, 13, 14] } else { [4, 9, 14] }));
            let mut held = values(&needs, &[1; 16]);
            // As much as the chains need together is there at the end anyway.
            held.push(beside(15, 5));
            let (_, moments) = groups(&needs, &held);
            assert_eq!(moments.last(), Some(&6), "{moments:?}");
        }
        // Where it is not, one goes after the other.
        let needs = chains(3, 5, false);
        let (order, moments) = groups(&needs, &values(&needs, &[1; 15]));
        assert!(moments.last() > Some(&5), "{order:?} {moments:?}");
    }

    #[test]
    fn what_is_not_urgent_waits() {
        // Of a chain of five and a step beside it, another one makes something.
        let mut needs = chains(1, 5, false);
        needs.extend([BTreeSet::new(), BTreeSet::from([4, 5])]);
        let mut held = values(&needs, &[1; 7]);
        assert_eq!(groups(&needs, &held).1, [1, 2, 3, 4, 5, 5, 6]);
        // Without room, not even then.
        held.push(Held { stays: true, ..beside(4, 1) });
        held.push(beside(4, 2));
        assert_eq!(groups(&needs, &held).1, [1, 2, 3, 4, 5, 6, 7]);
    }

    proptest! {
        #[test]
        fn groups_keep_needs_and_memory(
            steps in proptest::collection::vec(
                (1u64..9, proptest::collection::vec(0usize..40, 0..4), proptest::bool::weighted(0.2)),
                1..40,
            )
        ) {
            let count = steps.len();
            let bytes: Vec<u64> = steps.iter().map(|(bytes, ..)| *bytes).collect();
            let needs: Vec<BTreeSet<usize>> = steps
                .iter()
                .enumerate()
                .map(|(at, (_, needs, _))| needs.iter().copied().filter(|need| *need < at).collect())
                .collect();
            let mut held = values(&needs, &bytes);
            for (held, (_, _, stays)) in held.iter_mut().zip(&steps) {
                held.stays = *stays;
            }
            // An input that every third step reads.
            held.push(Held { bytes: 3, steps: (0..count).step_by(3).collect(), given: true, stays: false });
            let (order, moments) = groups(&needs, &held);
            let mut moment = vec![None; count];
            for (step, at) in order.iter().zip(&moments) {
                prop_assert_eq!(moment[*step].replace(*at - 1), None);
            }
            let moment: Vec<usize> = moment.into_iter().map(|moment| moment.unwrap()).collect();
            prop_assert!(moments.is_sorted());
            for (step, needs) in needs.iter().enumerate() {
                prop_assert!(needs.iter().all(|need| moment[*need] < moment[step]));
            }
            let most = |count: usize, moment: &dyn Fn(usize) -> usize| {
                let mut there = vec![0; count];
                for held in &held {
                    there[held.during(count, moment)].iter_mut().for_each(|there| *there += held.bytes);
                }
                there.into_iter().max()
            };
            prop_assert!(most(moments[count - 1], &|step| moment[step]) <= most(count, &|step| step));
        }
    }
}
