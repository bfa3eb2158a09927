//! Tensors made of their coordinates alone.

use super::masks::nearest_diagonal;
use super::{attribute_error, each, pull_op};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_inputs, symbols_of};
use crate::pull::{Calculator, Computes, Frame, Given, Machine, Made, Moves};
use crate::types::{ElementType, TensorType};

/// 1 on a diagonal of a matrix, 0 elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Eye {
    /// Its rows.
    pub rows: Dim,
    /// Its columns.
    pub columns: Dim,
    /// Which diagonal: so many columns to the right of the main one.
    pub diagonal: Dim,
    /// What its elements are.
    pub element: ElementType,
}

/// Numbers at equal steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The first.
    pub start: f64,
    /// The last, if it is given rather than the step.
    pub last: Option<f64>,
    /// From one to the next, if the last is not given.
    pub step: f64,
    /// How many.
    pub count: Dim,
    /// What they are.
    pub element: ElementType,
}

impl Op for Eye {
    pull_op!(moves, "eye", rows, columns, diagonal, element);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of([&self.rows, &self.columns, &self.diagonal])
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 0..=0)?;
        for (name, extent) in [("rows", &self.rows), ("columns", &self.columns)] {
            if extent.bounds().0 < 0 {
                return Err(attribute_error(name, extent, "an extent that is not negative"));
            }
        }
        Ok(vec![TensorType { element: self.element, shape: vec![self.rows.clone(), self.columns.clone()] }])
    }

    fn reference(&self, _: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        // References know numbers alone.
        let Some(diagonal) = self.diagonal.constant() else { return Vec::new() };
        each(&outputs[0], |position| f64::from(u8::from(position[1] - position[0] == diagonal)))
    }
}

impl Moves for Eye {
    fn frame(&self, _: &[TensorType], _: &TensorType) -> Frame {
        Frame { numbers: vec![nearest_diagonal(&self.diagonal, &self.rows, &self.columns)], ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let on = machine.equal(given.at[0] + given.numbers[0], given.at[1]);
        machine.choose(on, || machine.bits(self.element.bits(1.0)), || machine.bits(0))
    }
}

impl Steps {
    fn value(&self, position: f64, count: f64) -> f64 {
        match self.last {
            None => self.start + position * self.step,
            Some(last) if count > 1.0 => {
                // In halves, since the distance of the ends may be infinite.
                let half = (last / 2.0 - self.start / 2.0) / (count - 1.0) * position;
                self.start + half + half
            }
            Some(_) => self.start,
        }
    }
}

impl Op for Steps {
    pull_op!(computes, "steps", start, last, step, count, element);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 0..=0)?;
        if self.count.bounds().0 < 0 {
            return Err(attribute_error("count", &self.count, "an extent that is not negative"));
        }
        if !self.element.scalar().is_number() {
            return Err(attribute_error("element", self.element, "a type of numbers"));
        }
        if self.element.is_integer() {
            let [low, high] = self.element.scalar().limits();
            // As integers: floats round the last number, and the largest of 64 bits.
            let whole = |value: f64| (value.fract() == 0.0).then_some(value as i128);
            let fits = |value: Option<i128>| value.is_some_and(|value| (low..=high).contains(&value));
            let steps = (self.count.bounds().1 - 1).max(0);
            let [start, step] = [self.start, self.step].map(whole);
            let end = start.zip(step).and_then(|(start, step)| start.checked_add(step.checked_mul(steps.into())?));
            if !fits(start) || !fits(end) || self.last.is_some() {
                let given = format!("{} to {} by {}", self.start, self.value(steps as f64, 2.0), self.step);
                return Err(attribute_error("start", given, format!("integers that {} has", self.element)));
            }
        }
        Ok(vec![TensorType { element: self.element, shape: vec![self.count.clone()] }])
    }

    fn reference(&self, _: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let count = outputs[0][0] as f64;
        each(&outputs[0], |position| self.element.rounded(self.value(position[0] as f64, count)))
    }
}

impl Computes for Steps {
    fn frame(&self, _: &[TensorType], _: &TensorType) -> Frame {
        let reals = vec![self.start, self.last.unwrap_or(self.step)];
        Frame { numbers: vec![self.count.clone()], reals, ..Frame::default() }
    }

    fn computes_in(&self, _: &[TensorType], _: &TensorType) -> ElementType {
        self.element
    }

    fn element<C: Calculator>(&self, calculator: C, given: Given<'_, C::Index>) -> Made<C> {
        let (start, other) = match self.element.is_integer() {
            // Integers of 64 bits are no parameters of floats.
            true => (calculator.value(self.start), calculator.value(self.step)),
            false => (calculator.real(0), calculator.real(1)),
        };
        let Some(last) = self.last else {
            return Made::Value(start + calculator.of_index(given.at[0]) * other);
        };
        // From the nearer end, so that both ends are exact.
        let one = calculator.constant(1);
        let gaps = calculator.maximum(given.numbers[0] - one, one);
        let left = gaps - given.at[0];
        let lower = calculator.less(given.at[0], left);
        let [near, far] = [calculator.pick(lower, start, other), calculator.pick(lower, other, start)];
        let gone = calculator.pick(lower, calculator.of_index(given.at[0]), calculator.of_index(left));
        let share = gone / calculator.of_index(gaps);
        // Drivers multiply in the order that they like, so that no factor may stand for an infinite distance.
        Made::Value(match self.element.rounded(last - self.start).is_finite() {
            true => near + (far - near) * share,
            false => near * (calculator.value(1.0) - share) + far * share,
        })
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// `count` numbers from `start` on, each `step` more than the one before.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let y = g.arange(10.0, -2.0, 5, ElementType::I64)?;
    /// assert_eq!(g.type_of(y)?.to_string(), "i64[5]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The type is that of integers and does not have one of the numbers, or is bool.
    pub fn arange(
        &mut self,
        start: f64,
        step: f64,
        count: impl Into<Dim>,
        element: ElementType,
    ) -> Result<Tensor, GraphError> {
        let mut op = Steps { start, last: None, step, count: count.into(), element };
        // Integers of 64 bits are made of words where those hold them: every device has these.
        if element.scalar().is_wide() && element.is_integer() {
            op.element = if element.scalar().is_signed() { ElementType::I32 } else { ElementType::U32 };
            if op.infer(&[]).is_ok() {
                let words = self.add_one(op, &[])?;
                return self.cast(words, element);
            }
            op.element = element;
        }
        self.add_one(op, &[])
    }

    /// `count` floats from `start` to `last`, both of which are among them if there are two or more; `start` if there is one.
    ///
    /// # Errors
    /// The type is no float.
    pub fn linspace(
        &mut self,
        start: f64,
        last: f64,
        count: impl Into<Dim>,
        element: ElementType,
    ) -> Result<Tensor, GraphError> {
        self.add_one(Steps { start, last: Some(last), step: 0.0, count: count.into(), element }, &[])
    }

    /// A matrix of 1 on a diagonal, `diagonal` columns to the right of the main one, and 0 elsewhere.
    ///
    /// # Errors
    /// An extent may be negative.
    pub fn eye(
        &mut self,
        rows: impl Into<Dim>,
        columns: impl Into<Dim>,
        diagonal: impl Into<Dim>,
        element: ElementType,
    ) -> Result<Tensor, GraphError> {
        self.add_one(Eye { rows: rows.into(), columns: columns.into(), diagonal: diagonal.into(), element }, &[])
    }

    /// The identity matrix.
    ///
    /// # Errors
    /// The extent may be negative.
    pub fn identity(&mut self, extent: impl Into<Dim>, element: ElementType) -> Result<Tensor, GraphError> {
        let extent = extent.into();
        self.eye(extent.clone(), extent, 0, element)
    }
}
