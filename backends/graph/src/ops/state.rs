//! States: tensors that live in an executable from run to run, and the versions of them that a run makes.
//!
//! A state is a value. An update gives its new version and leaves the old one what it was: whoever reads a version reads what it holds, wherever the reading stands in the graph. Versions follow one
//! after the other, so that there is one newest, which the next run finds. The scheduler makes a version in the state's own memory by writing what is new alone, after everything that reads the old version; what
//! can only be read later reads a copy (`compile::keep`).

use std::any::Any;

use super::pull::pull_op;
use super::support::{expect_element, expect_inputs, shape_error, symbols_of};
use crate::dim::{Dim, Extents, Symbol};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphError, LeafKind, Tensor};
use crate::op::{HostTensor, Op, OpError, OpKind};
use crate::pull::{Frame, Given, Machine, Moves};
use crate::types::{Layout, TensorType};

/// A state with a part of it replaced; [`Graph::update`] alone makes it. However it is added to a graph, that knows it as a version of the state.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Update {
    /// What is replaced; all of the state, if it is not given.
    part: Option<Part>,
}

/// Positions of an axis, as many as the value has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// The axis.
    pub axis: usize,
    /// The first position, which each run gives.
    pub position: Dim,
}

impl Update {
    /// What is replaced, if it is not all.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.part.as_ref()
    }

    /// Where the value's elements go in the state's memory.
    pub(crate) fn target(&self, state: &TensorType) -> Layout {
        let whole = Layout::contiguous(&state.shape);
        match &self.part {
            Some(Part { axis, position }) => {
                Layout { offset: position * &whole.strides[*axis], strides: whole.strides }
            }
            None => whole,
        }
    }

    /// The new version's values; `name` is the state's.
    ///
    /// # Errors
    /// The position has no value, or lies outside the state.
    pub(crate) fn replaced(
        &self,
        name: &str,
        state: &HostTensor,
        value: &HostTensor,
        extents: &Extents,
    ) -> Result<HostTensor> {
        let Some(Part { axis, position }) = &self.part else {
            return Ok(HostTensor { shape: state.shape.clone(), values: value.values.clone() });
        };
        let (position, [length, extent]) = (position.eval(extents)?, [value, state].map(|of| of.shape[*axis]));
        let first = usize::try_from(position).ok().filter(|first| first + length <= extent);
        let Some(first) = first else {
            let [length, extent] = [length, extent].map(|count| count as i64);
            return Err(Error::Position { state: name.to_owned(), axis: *axis, position, length, extent });
        };
        let mut values = state.values.clone();
        let inner: usize = state.shape[axis + 1..].iter().product();
        for (index, new) in value.values.iter().enumerate() {
            let (line, within) = (index / (length * inner), index % (length * inner));
            values[line * extent * inner + first * inner + within] = *new;
        }
        Ok(HostTensor { shape: state.shape.clone(), values })
    }
}

impl Op for Update {
    fn name(&self) -> &'static str {
        "update"
    }

    fn attributes(&self) -> Vec<(&'static str, String)> {
        let part = self.part.as_ref();
        vec![
            ("axis", part.map_or("all".to_owned(), |part| part.axis.to_string())),
            ("position", part.map_or("0".to_owned(), |part| part.position.to_string())),
        ]
    }

    fn symbols(&self) -> Vec<Symbol> {
        symbols_of(self.part.iter().map(|part| &part.position))
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 2..=2)?;
        let (state, value) = (&inputs[0], &inputs[1]);
        expect_element("value", value, state.element)?;
        let Some(Part { axis, position }) = &self.part else {
            return if value.shape == state.shape {
                Ok(vec![state.clone()])
            } else {
                Err(shape_error("value", value, format!("all of {state}")))
            };
        };
        if *axis >= state.rank() {
            let expected = format!("an axis below {}, of {state}", state.rank());
            return Err(OpError::Attribute { attribute: "axis", given: axis.to_string(), expected });
        }
        let others = |ty: &TensorType| {
            let mut shape = ty.shape.clone();
            shape.remove(*axis);
            shape
        };
        let extent = &state.shape[*axis];
        let fits = value.rank() == state.rank()
            && others(value) == others(state)
            && (extent - &value.shape[*axis]).bounds().1 >= 0;
        if !fits {
            let expected = format!("the extents of {state}, but along axis {axis}, where it may have fewer");
            return Err(shape_error("value", value, expected));
        }
        let room = extent - &value.shape[*axis] - position;
        if position.bounds().1 < 0 || room.bounds().1 < 0 {
            let expected = format!("a position at which axis {axis} of {state} holds {value}");
            return Err(OpError::Attribute { attribute: "position", given: position.to_string(), expected });
        }
        Ok(vec![state.clone()])
    }

    /// For a position that is the same in every run; [`crate::reference::evaluate`] knows the run's.
    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        self.replaced("state", &inputs[0], &inputs[1], &Extents::new()).into_iter().collect()
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> Dim {
        Dim::from(0i64)
    }

    fn kind(&self) -> OpKind<'_> {
        OpKind::Update(self)
    }
}

/// How an update moves its value: as it lies. The scheduler says where to.
#[derive(Debug)]
pub(crate) struct Move;

impl Op for Move {
    pull_op!(moves, "update");

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, OpError> {
        expect_inputs(inputs, 1..=1)?;
        Ok(inputs.to_vec())
    }

    fn reference(&self, inputs: &[HostTensor], _: &[Vec<usize>]) -> Vec<HostTensor> {
        inputs.to_vec()
    }
}

impl Moves for Move {
    fn frame(&self, _: &[TensorType], output: &TensorType) -> Frame {
        Frame { tail: output.rank(), ..Frame::default() }
    }

    fn element<M: Machine>(&self, machine: M, _: Given<'_, M::Index>) -> M::Value {
        machine.read(0, &[])
    }
}

impl Graph {
    /// The new version of a state: `value` stands at positions `position` to `position + value.shape[axis]` of `axis`, and the rest is as it was. `state` is what [`Graph::state`] gave, or the newest version of it; a negative
    /// axis counts from the last. The position may be a number, a symbol whose value each run gives, or an expression of such; a run at which it lies outside the state is an error that changes nothing.
    ///
    /// What reads the new version reads what this run has just written, and what reads an older one what that holds. The newest version is what the next run finds. Only the value's rows are written, in the state's own
    /// memory, if everything that reads the old version can be done before; otherwise the old version is copied, and [`crate::Executable::explain`] says for whom.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph, Symbol};
    /// let mut g = Graph::new();
    /// // Keys of up to 1024 positions, in 8 heads. Each run brings those of one more, and sees all up to it.
    /// let at = Symbol::new("at", 0, 1023)?;
    /// let cache = g.state("keys", ElementType::F16, [8, 1024, 64])?;
    /// let keys = g.input("new", ElementType::F16, [8, 1, 64])?;
    /// let cache = g.update(cache, keys, 1, &at)?;
    /// let seen = g.narrow(cache, 1, 0, Dim::from(&at) + 1)?;
    /// assert_eq!(g.type_of(seen)?.to_string(), "f16[8, at + 1, 64]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `state` is no state or not its newest version; there is no such axis; or the value has other elements, other extents along the other axes, or can never stand at the position.
    pub fn update(
        &mut self,
        state: Tensor,
        value: Tensor,
        axis: isize,
        position: impl Into<Dim>,
    ) -> Result<Tensor, GraphError> {
        let axis = self.axis("update", state, axis, 0)?;
        self.version(Update { part: Some(Part { axis, position: position.into() }) }, state, value)
    }

    /// Gives the next run `value` as what it finds in a state, all of it; this run goes on reading what it found. A part of a state is fed by [`Graph::update`], and a part of an output by updating with a
    /// [`Graph::narrow`] of it.
    ///
    /// ```
    /// use trefoil_graph::{Dim, ElementType, Graph};
    /// let mut g = Graph::new();
    /// // A moving average: the next run starts from this one's.
    /// let mean = g.state("mean", ElementType::F32, vec![Dim::from(16)])?;
    /// let x = g.input("x", ElementType::F32, vec![Dim::from(16)])?;
    /// let half = g.scalar(0.5, ElementType::F32)?;
    /// let sum = g.add(mean, x)?;
    /// let next = g.mul(sum, half)?;
    /// g.feed(mean, next)?;
    /// # Ok::<(), trefoil_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// `state` is no state or not its newest version, or the value is of another type.
    pub fn feed(&mut self, state: Tensor, value: Tensor) -> Result<(), GraphError> {
        self.version(Update { part: None }, state, value).map(drop)
    }

    fn version(&mut self, update: Update, state: Tensor, value: Tensor) -> Result<Tensor, GraphError> {
        self.add_one(update, &[state, value])
    }

    /// Checks that a tensor of this graph is a state's newest version, which may be updated.
    ///
    /// # Errors
    /// It is no version of a state, or an older one.
    pub(crate) fn expect_newest(&self, state: Tensor) -> Result<(), GraphError> {
        let node = |tensor: Tensor| &self.nodes()[tensor.node as usize];
        let name = |tensor: Tensor| node(tensor).name.clone();
        if !self.states().iter().any(|known| known.left == state) {
            let Some(found) = self.state_of(state) else {
                return Err(GraphError::NoState { node: name(state) });
            };
            let newest = self.states().iter().find(|known| known.found == found).map_or(state, |known| known.left);
            let mut next = newest;
            while node(next).inputs.first().is_some_and(|older| *older != state) {
                next = node(next).inputs[0];
            }
            return Err(GraphError::OldVersion {
                state: name(found),
                given: name(state),
                by: name(next),
                newest: name(newest),
            });
        }
        Ok(())
    }

    /// The state that a tensor is a version of.
    pub(crate) fn state_of(&self, mut tensor: Tensor) -> Option<Tensor> {
        loop {
            let node = &self.nodes()[tensor.node as usize];
            let op: &dyn Any = &*node.op;
            if op.is::<Update>() {
                tensor = node.inputs[0];
                continue;
            }
            let is_state = node.leaf().is_some_and(|leaf| leaf.kind == LeafKind::State);
            return is_state.then_some(tensor);
        }
    }
}
