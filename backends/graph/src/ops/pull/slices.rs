//! Parts of a tensor that start where indices say: taken out, or replaced.
//!
//! Starts are integers of any type; one that is negative or behind the axis is no place, and nothing is read or written there.

use super::{at, attribute_error, constants, each, expect_integers, pull_op};
use crate::dim::{Dim, Symbol};
use crate::graph::{Graph, GraphError, Tensor};
use crate::op::{HostTensor, Op, OpError};
use crate::ops::support::{expect_element, expect_inputs, shape_error, symbols_of};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::TensorType;

/// A part of `x` of fixed extents; its starts are an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicSlice {
    /// So many axes in front are those of the starts too.
    pub batch_axes: usize,
    /// The part's extents along the axes behind them.
    pub extents: Vec<Dim>,
}

/// What becomes of the part of an update that reaches behind the end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overhang {
    /// It is left out.
    Dropped,
    /// It goes on at the axis's beginning.
    Wrapped,
}

/// `x` with a part of it replaced by an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpdateSlice {
    /// So many axes in front are those of the starts too.
    pub batch_axes: usize,
    /// Where the part starts along the axes behind them; otherwise an input tells.
    pub starts: Option<Vec<Dim>>,
    /// What becomes of what reaches behind the end of an axis.
    pub overhang: Overhang,
}

/// How many axes starts are for.
fn named(starts: &TensorType, x: &TensorType, batch_axes: usize) -> Result<usize, OpError> {
    expect_integers("starts", starts)?;
    let named = starts.shape.last().and_then(Dim::constant).and_then(|count| usize::try_from(count).ok());
    match named {
        Some(named)
            if starts.rank().checked_sub(1) == Some(batch_axes)
                && x.rank().checked_sub(batch_axes).is_some_and(|behind| named <= behind) =>
        {
            if starts.shape[..batch_axes] == x.shape[..batch_axes] {
                return Ok(named);
            }
            Err(shape_error("starts", starts, format!("the first {batch_axes} extents of {x}")))
        }
        _ => {
            let expected = format!("{batch_axes} axes of {x}, and one of fixed extent, a start for each axis behind");
            Err(shape_error("starts", starts, expected))
        }
    }
}

/// The start that a reference reads.
fn start(starts: &HostTensor, batch: &[i64], axis: usize) -> i64 {
    let place: Vec<i64> = batch.iter().copied().chain([axis as i64]).collect();
    at(starts, &place).filter(|start| (0.0..2f64.powi(31)).contains(start)).map_or(-1, |start| start as i64)
}

/// The same start on a machine.
fn start_on<M: Machine>(machine: M, input: usize, batch: &[M::Index], axis: usize) -> M::Index {
    let place: Vec<_> = batch.iter().copied().chain([machine.constant(axis as i32)]).collect();
    machine.index(input, &place)
}

impl Op for DynamicSlice {
    pull_op!(moves, "dynamic_slice", batch_axes, extents);

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (x, starts) = (&inputs[0], &inputs[1]);
        let named = named(starts, x, self.batch_axes)?;
        let extents = &x.shape[self.batch_axes..self.batch_axes + named];
        let fits = |(all, own): (&Dim, &Dim)| own.bounds().0 >= 0 && (all - own).bounds().0 >= 0;
        if self.extents.len() != named || !extents.iter().zip(&self.extents).all(fits) {
            let expected = format!("{named} extents that {x} has behind its first {} axes", self.batch_axes);
            return Err(attribute_error("extents", format!("{:?}", self.extents), expected));
        }
        let mut shape = x.shape.clone();
        shape.splice(self.batch_axes..self.batch_axes + named, self.extents.iter().cloned());
        Ok(vec![TensorType { element: x.element, shape }])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            for axis in 0..self.extents.len() {
                match start(&inputs[1], &position[..self.batch_axes], axis) {
                    -1 => return 0.0,
                    start => source[self.batch_axes + axis] += start,
                }
            }
            at(&inputs[0], &source).unwrap_or(0.0)
        })
    }
}

impl Moves for DynamicSlice {
    fn frame(&self, inputs: &[TensorType], _: &TensorType) -> Frame {
        let behind = self.batch_axes + self.extents.len();
        let numbers = inputs[0].shape[self.batch_axes..behind].to_vec();
        Frame { tail: inputs[0].rank() - behind, indices: 1, numbers, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let zero = machine.constant(0);
        let batch = &given.at[..self.batch_axes];
        let mut source = batch.to_vec();
        let mut inside = machine.equal(zero, zero);
        for (axis, extent) in given.numbers.iter().enumerate() {
            let start = start_on(machine, 1, batch, axis);
            let from = start + given.at[self.batch_axes + axis];
            inside = inside & !machine.less(start, zero) & machine.within(from, *extent);
            source.push(from);
        }
        machine.read_if(inside, 0, &source)
    }
}

impl UpdateSlice {
    /// How many axes starts are for.
    fn named(&self, inputs: &[TensorType]) -> Result<usize, OpError> {
        match &self.starts {
            Some(starts) => Ok(starts.len()),
            None => named(&inputs[2], &inputs[0], self.batch_axes),
        }
    }
}

impl Op for UpdateSlice {
    pull_op!(moves, "update_slice", batch_axes, starts, overhang);

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.starts.iter().flatten())
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        let count = if self.starts.is_some() { 2 } else { 3 };
        expect_inputs(inputs, count..=count)?;
        let (x, update) = (&inputs[0], &inputs[1]);
        expect_element("update", update, x.element)?;
        let behind = self.batch_axes.saturating_add(self.named(inputs)?);
        if behind > x.rank() {
            let expected = format!("at most one start for each axis of {x} behind its first {}", self.batch_axes);
            return Err(attribute_error("starts", format!("{:?}", self.starts), expected));
        }
        let fits = |axis: usize| {
            let room = &x.shape[axis] - &update.shape[axis];
            if (self.batch_axes..behind).contains(&axis) { room.bounds().0 >= 0 } else { room.is(0) }
        };
        if update.rank() != x.rank() || !(0..x.rank()).all(fits) {
            let expected = format!("the extents of {x}, or less along axes {} to before {behind}", self.batch_axes);
            return Err(shape_error("update", update, expected));
        }
        for (start, axis) in self.starts.iter().flatten().zip(self.batch_axes..) {
            let room = &x.shape[axis] - &update.shape[axis] - start;
            if start.bounds().0 < 0 || self.overhang == Overhang::Dropped && room.bounds().0 < 0 {
                let expected = format!("a start at which {x} holds the update, {update}, along axis {axis}");
                return Err(attribute_error("starts", start, expected));
            }
        }
        Ok(vec![x.clone()])
    }

    fn reference(&self, inputs: &[HostTensor], outputs: &[Vec<usize>]) -> Vec<HostTensor> {
        let (x, update) = (&inputs[0], &inputs[1]);
        let known = match self.starts.as_ref().map(constants) {
            Some(Some(starts)) => Some(starts),
            Some(None) => return Vec::new(),
            None => None,
        };
        let axes = match &known {
            Some(starts) => starts.len(),
            None => inputs[2].shape.last().copied().unwrap_or(0),
        };
        each(&outputs[0], |position| {
            let mut source = position.to_vec();
            for axis in 0..axes {
                let start = match &known {
                    Some(starts) => starts[axis],
                    None => start(&inputs[2], &position[..self.batch_axes], axis),
                };
                let place = &mut source[self.batch_axes + axis];
                let extent = x.shape[self.batch_axes + axis] as i64;
                *place = match start {
                    -1 => -1,
                    start => match self.overhang {
                        Overhang::Dropped => *place - start,
                        Overhang::Wrapped => (*place - start).rem_euclid(extent),
                    },
                };
            }
            at(update, &source).or_else(|| at(x, position)).unwrap_or(0.0)
        })
    }
}

impl Moves for UpdateSlice {
    fn frame(&self, inputs: &[TensorType], output: &TensorType) -> Frame {
        let named = self.named(inputs).unwrap_or(0);
        let behind = self.batch_axes + named;
        // Extents of x and of the update, and then starts that are known.
        let mut numbers = inputs[0].shape[self.batch_axes..behind].to_vec();
        numbers.extend(inputs[1].shape[self.batch_axes..behind].iter().cloned());
        numbers.extend(self.starts.iter().flatten().cloned());
        let indices = usize::from(self.starts.is_none());
        Frame { tail: output.rank() - behind, indices, numbers, ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, given: Given<'_, M::Index>) -> M::Value {
        let zero = machine.constant(0);
        let batch = &given.at[..self.batch_axes];
        let named = given.at.len() - self.batch_axes;
        let mut source = batch.to_vec();
        let mut inside = machine.equal(zero, zero);
        for axis in 0..named {
            let (extent, own) = (given.numbers[axis], given.numbers[named + axis]);
            let start = match &self.starts {
                Some(_) => given.numbers[2 * named + axis],
                None => start_on(machine, 2, batch, axis),
            };
            let behind = given.at[self.batch_axes + axis] - start;
            let from = match self.overhang {
                Overhang::Dropped => behind,
                Overhang::Wrapped => machine.modulo(behind, extent),
            };
            inside = inside & !machine.less(start, zero) & machine.within(from, own);
            source.push(from);
        }
        machine.choose(inside, || machine.read(1, &source), || machine.read(0, given.at))
    }
}

#[trefoil_graph_macros::eager]
impl Graph {
    /// A part of `x` that starts where `starts` says: a row of integers of any type, one for each of the axes behind the first `batch_axes`, which `starts` has in front of it; `extents` are the part's along
    /// these axes, and others it has whole. What lies behind an axis's end, and all of it for a negative start, reads 0. For starts that each run gives as a number, [`Graph::narrow`] is a view.
    ///
    /// ```
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// let x = g.input("x", ElementType::F32, [8, 100, 64])?;
    /// let starts = g.input("starts", ElementType::U32, [8, 1])?;
    /// // Ten rows of each of eight matrices.
    /// let y = g.dynamic_slice(x, starts, 1, &[10.into()])?;
    /// assert_eq!(g.type_of(y)?.to_string(), "f32[8, 10, 64]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The starts are no integers or do not fit `x`, or the part is larger than `x`.
    pub fn dynamic_slice(
        &mut self,
        x: Tensor,
        starts: Tensor,
        batch_axes: usize,
        extents: &[Dim],
    ) -> Result<Tensor, GraphError> {
        self.add_one(DynamicSlice { batch_axes, extents: extents.to_vec() }, &[x, starts])
    }

    /// `x` with a part of it replaced by `update`, at starts as those of [`Graph::dynamic_slice`]. `overhang` says what becomes of what reaches behind an axis's end; for a negative start nothing is
    /// replaced. What stays on the device from run to run, and is updated there without a copy, is a state ([`Graph::update`]).
    ///
    /// ```
    /// use trefoil_graph::ops::Overhang;
    /// use trefoil_graph::{ElementType, Graph};
    /// let mut g = Graph::new();
    /// // A cache of keys, to which each sequence adds its own from where it is.
    /// let cache = g.input("cache", ElementType::F16, [4, 2048, 128])?;
    /// let keys = g.input("keys", ElementType::F16, [4, 1, 128])?;
    /// let lengths = g.input("lengths", ElementType::U32, [4, 1])?;
    /// let cache = g.update_slice(cache, keys, lengths, 1, Overhang::Dropped)?;
    /// assert_eq!(g.type_of(cache)?.to_string(), "f16[4, 2048, 128]");
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// The starts are no integers or do not fit `x`, the elements differ, or the update is larger than `x` or, along another axis, not as large.
    pub fn update_slice(
        &mut self,
        x: Tensor,
        update: Tensor,
        starts: Tensor,
        batch_axes: usize,
        overhang: Overhang,
    ) -> Result<Tensor, GraphError> {
        self.add_one(UpdateSlice { batch_axes, starts: None, overhang }, &[x, update, starts])
    }

    /// `x` with a part of it replaced by `update`, from known `starts` along the first axes on, or from what each run decides.
    ///
    /// # Errors
    /// The elements differ, or `x` does not hold the update there.
    pub fn update_slice_at(&mut self, x: Tensor, update: Tensor, starts: &[Dim]) -> Result<Tensor, GraphError> {
        let op = UpdateSlice { batch_axes: 0, starts: Some(starts.to_vec()), overhang: Overhang::Dropped };
        self.add_one(op, &[x, update])
    }
}
