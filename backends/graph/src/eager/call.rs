//! A call of an op: its key, which tells everything on which its executable depends, and how tensors on the device stand for tensors of a graph.
//!
//! A call that was made before costs its key and a look into a table: no graph is built, no shape inferred. The key holds the method's name, the form of every operand and the `Debug` texts of all other arguments. Operands
//! get their names in the graph before there is one: [`Call::run`] builds the graph on which these are right, if the key is new, and has the graph's own method add its ops to it.

use std::fmt::{Debug, Write};

use super::single::Single;
use super::{Eager, EagerTensor};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphError, Tensor};

/// Arguments of one call so far.
pub(crate) struct Call<'e> {
    eager: &'e Eager,
    op: &'static str,
    key: String,
    operands: Vec<EagerTensor>,
    names: Vec<&'static str>,
    /// How many nodes the operands are.
    nodes: u32,
    /// The first operand that does not belong here.
    stranger: Option<Error>,
}

/// What begins an operand in a key, and what ends an attribute: neither stands in the text of either.
const OPERAND: char = '\u{1}';
const END: char = '\u{2}';

impl Eager {
    /// Begins a call.
    pub(crate) fn call(&self, op: &'static str) -> Call<'_> {
        let mut key = String::with_capacity(128);
        key.push_str(op);
        key.push(END);
        Call { eager: self, op, key, operands: Vec::new(), names: Vec::new(), nodes: 0, stranger: None }
    }
}

impl Call<'_> {
    /// Adds something that is no tensor. Its text must tell it from every other value.
    pub fn attribute(&mut self, value: &(impl Debug + ?Sized)) {
        // Writing to a string does not fail.
        let _ = write!(self.key, "{value:?}{END}");
    }

    /// Adds a tensor, and gives what stands for it in the graph.
    pub fn operand(&mut self, name: &'static str, tensor: &EagerTensor) -> Tensor {
        if !tensor.eager().is(self.eager) && self.stranger.is_none() {
            self.stranger = Some(Error::OtherEager {
                op: self.op,
                argument: name,
                device: tensor.eager().device().properties().label(),
                expected: self.eager.device().properties().label(),
            });
        }
        self.key.push(OPERAND);
        self.key.push_str(&tensor.0.form.key);
        self.operands.push(tensor.clone());
        self.names.push(name);
        // A view is two nodes: its memory, and where its elements lie.
        self.nodes += if tensor.is_strided() { 2 } else { 1 };
        Graph::traced(self.nodes - 1)
    }

    /// Runs it: through the executable of its key, which what `build` adds to a graph makes if there is none yet.
    ///
    /// # Errors
    /// An operand is of another [`Eager`]; the graph does not take the arguments; or it cannot be compiled or run.
    pub fn run<R: Results>(self, build: impl FnOnce(&mut Graph) -> Result<R, GraphError>) -> Result<R::Eager> {
        let Self { eager, op, key, operands, names, stranger, .. } = self;
        if let Some(error) = stranger {
            return Err(error);
        }
        let single = match eager.known(&key) {
            Some(single) => single,
            None => {
                let forms: Vec<_> = operands.iter().map(|operand| operand.0.form.clone()).collect();
                let single = Single::compile(eager, op, &forms, &names, |graph| Ok(build(graph)?.tensors()))?;
                eager.remember(key, single)
            }
        };
        let made = eager.launch(op, &single, &operands)?;
        R::of(&mut made.into_iter())
            .ok_or_else(|| Error::Stage { stage: "eager", defect: format!("`{op}` gives too few tensors") })
    }
}

/// Arguments with tensors on the device, of which a graph's method takes the like with its own.
pub(crate) trait Operands {
    /// The same with tensors of a graph.
    type OfGraph;

    /// Adds each tensor to a call, under the name of the argument or field.
    fn take(self, name: &'static str, call: &mut Call<'_>) -> Self::OfGraph;
}

impl Operands for &EagerTensor {
    type OfGraph = Tensor;

    fn take(self, name: &'static str, call: &mut Call<'_>) -> Tensor {
        call.operand(name, self)
    }
}

impl<O: Operands> Operands for Option<O> {
    type OfGraph = Option<O::OfGraph>;

    fn take(self, name: &'static str, call: &mut Call<'_>) -> Self::OfGraph {
        self.map(|operand| operand.take(name, call))
    }
}

impl<O: Operands, const N: usize> Operands for [O; N] {
    type OfGraph = [O::OfGraph; N];

    fn take(self, name: &'static str, call: &mut Call<'_>) -> Self::OfGraph {
        self.map(|operand| operand.take(name, call))
    }
}

impl<A: Operands, B: Operands> Operands for (A, B) {
    type OfGraph = (A::OfGraph, B::OfGraph);

    fn take(self, name: &'static str, call: &mut Call<'_>) -> Self::OfGraph {
        (self.0.take(name, call), self.1.take(name, call))
    }
}

impl<O: Operands + Copy> Operands for &[O] {
    type OfGraph = Vec<O::OfGraph>;

    fn take(self, name: &'static str, call: &mut Call<'_>) -> Self::OfGraph {
        self.iter().map(|operand| operand.take(name, call)).collect()
    }
}

/// What a graph's method gives, and the like with tensors on the device.
pub(crate) trait Results {
    /// The same with tensors on the device.
    type Eager;

    /// Its tensors.
    fn tensors(&self) -> Vec<Tensor>;

    /// The same with the tensors that stand for them, in their order; none if there are too few.
    fn of(made: &mut dyn Iterator<Item = EagerTensor>) -> Option<Self::Eager>;
}

impl Results for Tensor {
    type Eager = EagerTensor;

    fn tensors(&self) -> Vec<Tensor> {
        vec![*self]
    }

    fn of(made: &mut dyn Iterator<Item = EagerTensor>) -> Option<EagerTensor> {
        made.next()
    }
}

impl Results for (Tensor, Tensor) {
    type Eager = (EagerTensor, EagerTensor);

    fn tensors(&self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }

    fn of(made: &mut dyn Iterator<Item = EagerTensor>) -> Option<Self::Eager> {
        Some((made.next()?, made.next()?))
    }
}

impl Results for Vec<Tensor> {
    type Eager = Vec<EagerTensor>;

    fn tensors(&self) -> Vec<Tensor> {
        self.clone()
    }

    fn of(made: &mut dyn Iterator<Item = EagerTensor>) -> Option<Self::Eager> {
        Some(made.collect())
    }
}
