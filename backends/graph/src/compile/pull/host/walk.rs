//! Positions in order: their coordinates, and where each reads and writes.

use std::ops::Range;

use super::coordinates::Whole;
use super::lanes::LANES;
use super::{Numbers, Plan};

/// All positions of a run.
pub(super) struct Walk<'r> {
    plan: &'r Plan,
    numbers: &'r Numbers,
    /// The axes along which positions are counted: all but the run.
    extents: &'r [i64],
    /// How many positions there are.
    pub(super) positions: i64,
    /// Units that each moves.
    pub(super) run: i64,
}

/// Positions that are evaluated together. What is found for lanes beyond their number is not used.
pub(super) struct Batch {
    /// How many there are.
    pub(super) count: usize,
    /// Coordinates along the axes that the op works on.
    pub(super) middle: Vec<Whole>,
    /// For each moved input, the unit at the coordinates along the others.
    pub(super) through: Vec<Whole>,
    /// The output's unit.
    pub(super) to: Whole,
}

impl<'r> Walk<'r> {
    pub(super) fn new(plan: &'r Plan, numbers: &'r Numbers) -> Self {
        let counted = plan.axes.len() - usize::from(plan.run);
        let extents = &numbers.extents[..counted];
        let run = if plan.run { numbers.extents[counted] } else { 1 };
        Self { plan, numbers, extents, positions: extents.iter().product(), run }
    }

    /// Whether each position writes behind all that those before it write.
    pub(super) fn ascends(&self) -> bool {
        let mut reach = self.run;
        self.extents.iter().zip(&self.numbers.strides).rev().filter(|(extent, _)| **extent > 1).all(
            |(extent, strides)| {
                let ascends = strides[0] >= reach;
                reach += (extent - 1) * strides[0];
                ascends
            },
        )
    }

    /// The output's first unit of a position.
    pub(super) fn output(&self, position: i64) -> i64 {
        let at = self.coordinates(position);
        at.iter().zip(&self.numbers.strides).fold(self.numbers.offset, |to, (at, strides)| to + at * strides[0])
    }

    fn coordinates(&self, position: i64) -> Vec<i64> {
        let mut left = position;
        let mut at: Vec<i64> = self
            .extents
            .iter()
            .rev()
            .map(|extent| {
                let coordinate = left % extent;
                left /= extent;
                coordinate
            })
            .collect();
        at.reverse();
        at
    }

    fn passes(&self, axis: usize) -> bool {
        axis < self.plan.lead || axis >= self.plan.lead + self.plan.middle
    }

    /// Some positions, several at a time.
    pub(super) fn batches(&self, positions: Range<i64>) -> Batches<'_, 'r> {
        Batches { walk: self, at: self.coordinates(positions.start), left: positions.end - positions.start }
    }
}

/// Positions that are left.
pub(super) struct Batches<'w, 'r> {
    walk: &'w Walk<'r>,
    at: Vec<i64>,
    left: i64,
}

impl Batches<'_, '_> {
    /// Rows of the last axis that are at least as long are taken one after the other, so that all other coordinates are the same; of shorter ones several at once.
    const ROW: i64 = 3 * LANES as i64 / 4;

    fn of_row(&mut self, extent: i64) -> (Vec<Whole>, usize) {
        let last = self.at.len() - 1;
        let count = self.left.min(LANES as i64).min(extent - self.at[last]);
        let mut coordinates: Vec<_> = self.at.iter().map(|at| Whole::of(*at)).collect();
        coordinates[last] = Whole::Line { first: self.at[last], step: 1 };
        self.at[last] += count - 1;
        self.step();
        (coordinates, count as usize)
    }

    fn of_several_rows(&mut self) -> (Vec<Whole>, usize) {
        let count = self.left.min(LANES as i64) as usize;
        if count == 1 {
            return (self.at.iter().map(|at| Whole::of(*at)).collect(), 1);
        }
        // Lanes beyond the last position repeat it.
        let mut lanes = vec![[0i64; LANES]; self.at.len()];
        for lane in 0..LANES {
            lanes.iter_mut().zip(&self.at).for_each(|(lanes, at)| lanes[lane] = *at);
            if lane + 1 < count {
                self.step();
            }
        }
        self.step();
        let alike = |lanes: [i64; LANES]| match lanes.iter().all(|at| *at == lanes[0]) {
            true => Whole::of(lanes[0]),
            false => Whole::Each(lanes),
        };
        (lanes.into_iter().map(alike).collect(), count)
    }

    /// Goes to the next position.
    fn step(&mut self) {
        for (at, extent) in self.at.iter_mut().zip(self.walk.extents).rev() {
            *at += 1;
            if *at < *extent {
                return;
            }
            *at = 0;
        }
    }

    /// The next positions.
    pub(super) fn next(&mut self) -> Option<Batch> {
        if self.left <= 0 {
            return None;
        }
        let (walk, numbers) = (self.walk, self.walk.numbers);
        let (coordinates, count) = match walk.extents.last() {
            Some(extent) if *extent >= Self::ROW => self.of_row(*extent),
            _ => self.of_several_rows(),
        };
        self.left -= count as i64;
        let along = |start: i64, place: usize, axes: &mut dyn Iterator<Item = usize>| {
            axes.fold(Whole::of(start), |sum, axis| sum + coordinates[axis] * Whole::of(numbers.strides[axis][place]))
        };
        let axes = 0..coordinates.len();
        let moved = walk.plan.inputs.iter().zip(&numbers.inputs).filter(|(input, _)| input.moved);
        let through = moved
            .enumerate()
            .map(|(input, (_, known))| along(known[0], 1 + input, &mut axes.clone().filter(|axis| walk.passes(*axis))));
        let through = through.collect();
        let middle = axes.clone().filter(|axis| !walk.passes(*axis)).map(|axis| coordinates[axis]).collect();
        Some(Batch { count, middle, through, to: along(numbers.offset, 0, &mut axes.clone()) })
    }
}
