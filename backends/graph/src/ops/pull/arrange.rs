//! Elements repeated, turned round, and taken at steps.

use super::{along, at, attribute_error, constants, each, has_axis, of_axis, pull_op, span};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind, View};
use crate::ops::support::{expect_inputs, symbols_of};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::{Layout, TensorType};

/// A tensor repeated along its axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// How often, for each axis.
    pub repeats: Vec<Dim>,
}

/// Elements moved along axes; those that leave at an end come in at the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roll {
    /// How far, for each axis; negative toward the front.
    pub shifts: Vec<Dim>,
}

/// Axes in the opposite order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// Which, in ascending order.
    pub axes: Vec<usize>,
}

/// Every so many positions of an axis, from its first on: a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Every {
    /// The axis.
    pub axis: usize,
    /// From one position to the next.
    pub step: u32,
}

/// The largest coordinate.
const MOST: i64 = i32::MAX as i64;

fn one_for_each_axis(attribute: &'static str, given: &[Dim], x: &TensorType) -> Result<(), OpError> {
    if given.len() == x.rank() {
        return Ok(());
    }
    let expected = format!("a number for each of the {} axes of {x}", x.rank());
    Err(attribute_error(attribute, format!("{given:?}"), expected))
}

impl Op for Tile {
    pull_op!(moves, "tile", repeats);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(&self.repeats)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        let x = &inputs[0];
        one_for_each_axis("repeats", &self.repeats, x)?;
        if let Some(negative) = self.repeats.iter().find(|times| times.bounds().0 < 0) {
            return Err(attribute_error("repeats", negative, "numbers that are not negative"));
        }
        let shape = x.shape.iter().zip(&self.repeats).map(|(extent, times)| extent * times);
        Ok(vec![TensorType { element: x.element, shape: shape.collect() }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let x = &inputs[0];
        each(&outputs[0], |position| {
            let source: Vec<i64> = position.iter().zip(&x.shape).map(|(to, extent)| to % *extent as i64).collect();
            at(x, &source).unwrap_or(f64::NAN)
        })
    }
}

impl Moves for Tile {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let (lead, tail) = span(output.rank(), |axis| !self.repeats[axis].is(1));
        let (numbers, distances) = along((lead..output.rank() - tail).map(|axis| [inputs[0].shape[axis].clone()]));
        Frame { lead, tail, numbers, distances, in_blocks: true, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let source = given.at.iter().enumerate().map(|(axis, to)| {
            let [extent] = of_axis(&given, axis);
            *to % extent
        });
        machine.read(0, &source.collect::<Vec<_>>())
    }
}

impl Op for Roll {
    pull_op!(moves, "roll", shifts);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(&self.shifts)
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        one_for_each_axis("shifts", &self.shifts, &inputs[0])?;
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let Some(shifts) = constants(&self.shifts) else { return Vec::new() };
        let mut moved = vec![HostTensor { shape: outputs[0].clone(), values: vec![0.0; inputs[0].values.len()] }];
        let shape = &outputs[0];
        // Each element is put where it goes.
        each(shape, |position| {
            let linear = position.iter().zip(shape).zip(&shifts).fold(0i64, |linear, ((from, extent), shift)| {
                let extent = *extent as i64;
                linear * extent + (from + shift.rem_euclid(extent)) % extent
            });
            let value = at(&inputs[0], position).unwrap_or(f64::NAN);
            moved[0].values[linear as usize] = value;
            value
        });
        moved
    }
}

impl Moves for Roll {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let (lead, tail) = span(output.rank(), |axis| !self.shifts[axis].is(0));
        let middle = lead..output.rank() - tail;
        let (numbers, distances) = along(middle.map(|axis| {
            let (extent, shift) = (&inputs[0].shape[axis], &self.shifts[axis]);
            // As it is it may tell more of how the axis is cut into blocks.
            let is_counted = shift.bounds().1 <= MOST && extent.bounds().1.saturating_sub(shift.bounds().0) <= MOST;
            let shift = if is_counted { shift.clone() } else { shift.remainder(&extent.maximum(&Dim::from(1i64))) };
            [extent.clone(), shift]
        }));
        Frame { lead, tail, numbers, distances, in_blocks: true, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let source = given.at.iter().enumerate().map(|(axis, to)| {
            let [extent, shift] = of_axis(&given, axis);
            machine.modulo(*to - shift, extent)
        });
        machine.read(0, &source.collect::<Vec<_>>())
    }
}

impl Op for Reverse {
    pull_op!(moves, "reverse", axes);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        self.axes.iter().try_for_each(|axis| has_axis(&inputs[0], *axis))?;
        if !self.axes.is_sorted_by(|before, after| before < after) {
            return Err(attribute_error("axes", format!("{:?}", self.axes), "axes in ascending order, each once"));
        }
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            for axis in &self.axes {
                source[*axis] = outputs[0][*axis] as i64 - 1 - source[*axis];
            }
            at(&inputs[0], &source).unwrap_or(f64::NAN)
        })
    }
}

impl Moves for Reverse {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let (lead, tail) = span(output.rank(), |axis| self.axes.contains(&axis));
        let numbers = inputs[0].shape[lead..output.rank() - tail].to_vec();
        Frame { lead, tail, numbers, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        // The first axis that the op works on is the first that it turns.
        let first = self.axes.first().copied().unwrap_or(0);
        let source = given.at.iter().zip(given.numbers).enumerate().map(|(axis, (to, extent))| {
            if self.axes.contains(&(first + axis)) { *extent - machine.constant(1) - *to } else { *to }
        });
        machine.read(0, &source.collect::<Vec<_>>())
    }
}

impl Op for Every {
    fn name(&self) -> &'static str {
        "every"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        vec![("axis", self.axis.to_string()), ("step", self.step.to_string())]
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        has_axis(&inputs[0], self.axis)?;
        if self.step == 0 {
            return Err(attribute_error("step", 0, "a number other than 0"));
        }
        let mut output = inputs[0].clone();
        output.shape[self.axis] = output.shape[self.axis].quotient_up(i64::from(self.step));
        Ok(vec![output])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            source[self.axis] *= i64::from(self.step);
            at(&inputs[0], &source).unwrap_or(f64::NAN)
        })
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::View(self)
    }
}

impl View for Every {
    fn layout(&self, _: &TensorType, layout: &Layout, _: &TensorType) -> Option<Layout> {
        let mut layout = layout.clone();
        layout.strides[self.axis] = layout.strides[self.axis].clone() * i64::from(self.step);
        Some(layout)
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// `x` repeated along its axes; with more numbers than axes, axes of extent 1 are put in front.
    ///
    /// # Errors
    /// There are fewer numbers than axes, or one is negative.
    pub fn tile(&mut self, x: Tensor, repeats: &[Dim]) -> Result<Tensor, GraphError> {
        let mut x = x;
        while self.operand("tile", x)?.rank() < repeats.len() {
            x = self.unsqueeze(x, 0)?;
        }
        self.add_one(Tile { repeats: repeats.to_vec() }, &[x])
    }

    /// Each position of an axis so many times, one behind the other.
    ///
    /// # Errors
    /// There is no such axis, or the number is negative.
    pub fn repeat_interleave(&mut self, x: Tensor, times: impl Into<Dim>, axis: isize) -> Result<Tensor, GraphError> {
        let times = times.into();
        let axis = self.axes("repeat_interleave", x, &[axis])?[0];
        let ty = self.operand("repeat_interleave", x)?.clone();
        if times.bounds().0 < 0 {
            let error = attribute_error("times", times, "a number that is not negative");
            return Err(GraphError::Op { op: format!("repeat_interleave({ty})"), error });
        }
        let (mut repeated, mut merged) = (ty.shape.clone(), ty.shape);
        repeated.insert(axis + 1, times.clone());
        merged[axis] = merged[axis].clone() * times;
        let x = self.unsqueeze(x, axis as isize + 1)?;
        let x = self.expand(x, repeated)?;
        self.reshape(x, merged)
    }

    /// Elements moved along some axes, each by its shift, toward the end where that is positive; those that leave at one end come in at the other.
    ///
    /// # Errors
    /// There is no such axis, or one is named twice.
    pub fn roll(&mut self, x: Tensor, shifts: &[(isize, Dim)]) -> Result<Tensor, GraphError> {
        let mut all = vec![Dim::from(0i64); self.operand("roll", x)?.rank()];
        let named: Vec<isize> = shifts.iter().map(|(axis, _)| *axis).collect();
        self.axes("roll", x, &named)?;
        for (axis, shift) in shifts {
            all[self.axis("roll", x, *axis, 0)?] = shift.clone();
        }
        self.add_one(Roll { shifts: all }, &[x])
    }

    /// Axes in the opposite order; negative ones count from the last.
    ///
    /// # Errors
    /// There is no such axis, or one is named twice.
    pub fn reverse(&mut self, x: Tensor, axes: &[isize]) -> Result<Tensor, GraphError> {
        let axes = self.axes("reverse", x, axes)?;
        self.add_one(Reverse { axes }, &[x])
    }

    /// The positions `start`, `start + step` and so on of an axis, as long as they are before `end`, or with a negative step, as long as they are behind it: -1 as the end
    /// leaves the first in. A positive step is a view.
    ///
    /// # Errors
    /// There is no such axis, the step is 0, or a position may be out of range.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::U8, [10, 3])?;
    /// let odd = g.slice(x, 0, 1, 10, 2)?;
    /// let back = g.slice(x, 0, 9, -1, -3)?;
    /// assert_eq!(g.type_of(odd)?.to_string(), "u8[5, 3]");
    /// assert_eq!(g.type_of(back)?.to_string(), "u8[4, 3]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    pub fn slice(
        &mut self,
        x: Tensor,
        axis: isize,
        start: impl Into<Dim>,
        end: impl Into<Dim>,
        step: i32,
    ) -> Result<Tensor, GraphError> {
        let (start, end) = (start.into(), end.into());
        let zero = Dim::from(0i64);
        let (first, length) = match step < 0 {
            true => (end.clone() + 1i64, (start - end).maximum(&zero)),
            false => (start.clone(), (end - start).maximum(&zero)),
        };
        // Nothing lies nowhere.
        let first = if length.is(0) { zero } else { first };
        let mut part = self.narrow(x, axis, first, length)?;
        if step < 0 {
            part = self.reverse(part, &[axis])?;
        }
        if step == 1 {
            return Ok(part);
        }
        let axis = self.axis("slice", part, axis, 0)?;
        self.add_one(Every { axis, step: step.unsigned_abs() }, &[part])
    }
}
